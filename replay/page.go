package replay

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
)

//go:embed page.html
var pageText string

// WriteHTML writes the report as one page that needs nothing else: no script, no
// font, no network. The title is any text, such as the names of the logs.
func (p *Report) WriteHTML(w io.Writer, title string) error {
	t, err := template.New("page").Funcs(template.FuncMap{"number": number, "percent": percent, "cell": cell}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, newPage(p, title))
}

// page is what the template shows.
type page struct {
	*Report
	Title, Span string
	WouldRefuse int64
	Notes       []string
	Charts      []ruleChart
}

// ruleChart is the section of one rule.
type ruleChart struct {
	*RuleReport
	ID     string // unique in the page
	Over   *overTime
	Top    []topBar
	Peaks  []histogram
	Note   string
	Worst  string // what Refused is called in this mode
	Unseen bool   // no request came
}

func newPage(p *Report, title string) page {
	g := page{Report: p, Title: title, Span: span(p.From, p.To), Notes: p.notes()}
	for i := range p.Rules {
		r := &p.Rules[i]
		g.WouldRefuse += r.WouldRefuse
		c := ruleChart{RuleReport: r, ID: fmt.Sprintf("r%d", i), Unseen: r.Asked == 0, Worst: "Refused"}
		if r.WouldRefuse > 0 && r.Refused == 0 {
			c.Worst = "Would refuse"
		}
		if !c.Unseen {
			c.Over = newOverTime(r)
		}
		if !c.Unseen && len(r.limits) > 0 {
			c.Top = topBars(r)
			c.Peaks = r.histograms()
		}
		if r.TopError > 0 {
			c.Note = r.topError()
		}
		g.Charts = append(g.Charts, c)
	}
	return g
}

// overTime is the chart of a Series: one column a step, in a box of N by 100.
type overTime struct {
	N           int
	Step        string
	Ticks       [3]string // of the vertical axis, from the top
	Times       []string
	Columns     []column
	WouldRefuse bool
}

// column is one step. Heights are in parts of 100, stacked: what was allowed, what
// a shadow would have refused of that, and what was refused.
type column struct {
	X                                   int
	When                                string
	Allowed, Refused, WouldRefuse       int64
	AllowedH, RefusedH, WouldRefuseH    float64
	AllowedAt, RefusedAt, WouldRefuseAt float64
}

func newOverTime(r *RuleReport) *overTime {
	s := &r.Series
	o := &overTime{N: len(s.Allowed), Step: rules.FormatWindow(time.Duration(s.Step) * time.Second), WouldRefuse: r.WouldRefuse > 0}
	most := int64(1)
	for i := range s.Allowed {
		most = max(most, s.Allowed[i]+s.Refused[i])
	}
	top := niceAbove(most)
	o.Ticks = [3]string{number(top), "", "0"}
	if top%2 == 0 {
		o.Ticks[1] = number(top / 2)
	}
	end := s.From.Add(time.Duration(s.Step*int64(o.N)) * time.Second)
	for i := range 4 {
		o.Times = append(o.Times, s.From.Add(time.Duration(i)*(end.Sub(s.From)/3)).Format("2 Jan 15:04"))
	}
	height := func(n int64) float64 { return math.Round(10000*float64(n)/float64(top)) / 100 }
	for i := range s.Allowed {
		c := column{X: i, Allowed: s.Allowed[i], Refused: s.Refused[i]}
		if o.WouldRefuse {
			c.WouldRefuse = s.WouldRefuse[i]
		}
		if c.Allowed+c.Refused == 0 {
			continue
		}
		c.When = s.From.Add(time.Duration(int64(i)*s.Step) * time.Second).Format("2006-01-02 15:04:05")
		c.AllowedH, c.WouldRefuseH, c.RefusedH = height(c.Allowed-c.WouldRefuse), height(c.WouldRefuse), height(c.Refused)
		c.AllowedAt = 100 - c.AllowedH
		c.WouldRefuseAt = c.AllowedAt - c.WouldRefuseH
		c.RefusedAt = c.WouldRefuseAt - c.RefusedH
		o.Columns = append(o.Columns, c)
	}
	return o
}

// niceAbove is a round number not below n.
func niceAbove(n int64) int64 {
	for power := int64(1); ; power *= 10 {
		for _, m := range [...]int64{1, 2, 3, 4, 5, 6, 8} {
			if m*power >= n {
				return m * power
			}
		}
	}
}

// topBar is a key in the list of the most refused ones. Widths are in per cent of
// the widest.
type topBar struct {
	KeyReport
	Stopped                    int64
	AllowedWidth, StoppedWidth float64
}

func topBars(r *RuleReport) []topBar {
	most := int64(1)
	for _, k := range r.Top {
		most = max(most, k.Asked)
	}
	width := func(n int64) float64 { return math.Round(1000*float64(n)/float64(most)) / 10 }
	var all []topBar
	for _, k := range r.Top {
		stopped := k.Refused + k.WouldRefuse
		all = append(all, topBar{k, stopped, width(k.Asked - stopped), width(stopped)})
	}
	return all
}

// histogram is the chart of how many keys have which peak in one window: one bar a
// bin, in a box of N by 100, heights logarithmic.
type histogram struct {
	Window    string
	N         int
	Bars      []bar
	Lines     []limitLine
	Quantiles []quantile
	Beyond    []string // limits that no key comes near
}

type bar struct {
	X     int
	Label string // from–to
	Tick  string // to, short
	Keys  int64
	Y, H  float64
	Over  bool // beyond the least limit
}

// limitLine is a limit drawn in, at X of N.
type limitLine struct {
	X     float64
	Label string
}

type quantile struct {
	Name string
	Peak int64
}

func (r *RuleReport) histograms() []histogram {
	var all []histogram
	for i, peaks := range r.peaks() {
		h := histogram{Window: windowNames[i]}
		for _, q := range quantiles {
			h.Quantiles = append(h.Quantiles, quantile{q.name, peaks.Quantile(q.share)})
		}
		upto, least := peaks.Max(), int64(math.MaxInt64)
		type drawn struct {
			at   int64
			text string
		}
		var lines []drawn
		for _, l := range r.limits {
			at, ok := inWindow(l, r.cost, int64(windows[i]))
			text := fmt.Sprintf("%s: %s in any %s", rules.LimitOf(l), number(at), windowNames[i])
			switch {
			case !ok:
			case at > 3*max(peaks.Max(), 5):
				h.Beyond = append(h.Beyond, text)
			default:
				lines = append(lines, drawn{at, text})
				upto, least = max(upto, at), min(least, at)
			}
		}
		bins := peaks.bins(upto)
		h.N = len(bins)
		most := int64(1)
		for _, b := range bins {
			most = max(most, b.keys)
		}
		for x, b := range bins {
			label := number(b.from)
			if b.to != b.from {
				label += "–" + number(b.to)
			}
			height := 0.0
			if b.keys > 0 {
				height = math.Round(1000*math.Log1p(float64(b.keys))/math.Log1p(float64(most))) / 10
			}
			h.Bars = append(h.Bars, bar{x, label, short(b.to), b.keys, 100 - height, height, b.from > least})
		}
		for _, l := range lines {
			for x, b := range bins {
				if l.at <= b.to {
					h.Lines = append(h.Lines, limitLine{float64(x) + float64(l.at-b.from+1)/float64(b.to-b.from+1), l.text})
					break
				}
			}
		}
		all = append(all, h)
	}
	return all
}

// short is a round number in few characters: 500, 2k, 10M.
func short(n int64) string {
	for _, unit := range [...]struct {
		size int64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= unit.size && n%unit.size == 0 {
			return number(n/unit.size) + unit.name
		}
	}
	return number(n)
}

// inWindow is how many requests a limit lets a steady key make in a window of so
// many seconds: the quota in proportion, and not less than what it lets through at
// once. A limit on requests that cost nothing is none.
func inWindow(l weir.Limit, cost, seconds int64) (n int64, ok bool) {
	if cost == 0 {
		return 0, false
	}
	n = l.Capacity()
	if span := time.Duration(seconds) * time.Second; span > l.Window {
		n = max(n, int64(float64(l.Quota)*(float64(span)/float64(l.Window))))
	}
	return n / cost, true
}
