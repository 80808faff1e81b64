package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/urlpath"
)

// AdviseOptions configure [Advise]. The zero value is usable.
type AdviseOptions struct {
	Options
	// Share is the share of the keys of each route that no limit may touch, above 0
	// and at most 1; 0 means 0.999.
	Share float64
	// Key is the partition key of the rules, as a document has it; empty means ip.
	Key rules.Key
	// Routes is how many routes get a rule of their own at most; 0 means 12.
	Routes int
	// Headroom is what the peak that is to be allowed is multiplied by, at least 1,
	// before it is rounded up to 1, 2 or 5 times a power of ten; 0 means 1.2.
	Headroom float64
}

// Advice is a proposal of rules, all in shadow mode, and what speaks for them.
type Advice struct {
	// Share is the share of keys that was to stay untouched.
	Share float64 `json:"share"`
	// Routes are the rules, in the order of the document; the last one catches all
	// that the others do not.
	Routes []RouteAdvice `json:"routes"`
	// Document holds the rules.
	Document *rules.Document `json:"-"`
	// Report is the replay of the Document over the same log.
	Report *Report `json:"-"`
}

// RouteAdvice is the proposal for one route. Its report is what came of the limit
// when it was replayed.
type RouteAdvice struct {
	RuleReport
	// Limit is the proposed limit, as a document has it.
	Limit string `json:"limit"`
	// Untouched is the share of the keys that it refuses nothing, 0 to 1.
	Untouched float64 `json:"untouched"`
	// Login is whether people seem to prove who they are here.
	Login bool `json:"login,omitempty"`
	// Why is the reason in words.
	Why string `json:"why"`
}

// CheckKey says what is wrong with a partition key that rules for logs cannot have.
func CheckKey(key rules.Key) error {
	limit := rules.LimitOf(weir.PerMinute(1))
	_, err := rules.Compile(&rules.Document{Rules: []rules.Rule{{Name: "key", Key: key, Limit: &limit}}}, Binding())
	var problems rules.Problems
	if errors.As(err, &problems) && len(problems) > 0 {
		return fmt.Errorf("replay: %s", problems[0].Msg)
	}
	return err
}

// ErrNoRequests is returned for a log that has nothing to learn from.
var ErrNoRequests = errors.New("replay: the log has no requests")

// Advise proposes a limit for each route of a log. It reads the log several times,
// by open: to find the routes, to see how fast each key asks for them, and to
// replay its proposal, which it loosens until the share holds. Records that are
// an io.Closer are closed.
//
// The routes are the busiest groups of requests by method and the first segments
// of the path, where segments that look like identifiers are one, and where people
// sign in. Each limit is a token bucket, which refuses nothing to a key whose
// peak in its window is within the quota: per hour if that is at most 20, per
// second if the minute would need 1000 or more, and otherwise per minute.
//
// Every rule is final, so that a request counts for one route only. The share is of
// each route's keys by themselves.
func Advise(ctx context.Context, open func() (Records, error), o AdviseOptions) (*Advice, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	var found []route
	err := reading(open, func(logs Records) (err error) {
		found, err = survey(ctx, logs, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	doc := draft(found, o)
	report, err := rerun(ctx, open, doc, o)
	if err != nil {
		return nil, err
	}
	why := make([]string, len(doc.Rules))
	for i := range doc.Rules {
		limit, reason := choose(&report.Rules[i], o)
		doc.Rules[i].Limit, why[i] = &limit, reason
	}
	// A bucket that covers the peaks refuses nothing, so one replay suffices, unless
	// the log has fractions of seconds, which the peaks do not see.
	for range 12 {
		if report, err = rerun(ctx, open, doc, o); err != nil {
			return nil, err
		}
		loosened := false
		for i := range report.Rules {
			r := &report.Rules[i]
			if float64(r.KeysWouldRefuse) > (1-o.Share)*float64(r.Keys)+1e-9 {
				doc.Rules[i].Limit.Quota = roundUp(doc.Rules[i].Limit.Quota + 1)
				loosened = true
			}
		}
		if !loosened {
			break
		}
	}
	a := &Advice{Share: o.Share, Document: doc, Report: report}
	for i, r := range report.Rules {
		advice := RouteAdvice{RuleReport: r, Limit: doc.Rules[i].Limit.String(), Untouched: 1, Why: why[i]}
		if r.Keys > 0 {
			advice.Untouched = 1 - float64(r.KeysWouldRefuse)/float64(r.Keys)
		}
		if i < len(found) {
			advice.Login = found[i].login
		}
		doc.Rules[i].Description = advice.describe()
		a.Routes = append(a.Routes, advice)
	}
	return a, nil
}

func (o *AdviseOptions) complete() error {
	if o.Share == 0 {
		o.Share = 0.999
	}
	if o.Headroom == 0 {
		o.Headroom = 1.2
	}
	if o.Routes == 0 {
		o.Routes = 12
	}
	if len(o.Key) == 0 {
		o.Key = rules.Key{"ip"}
	}
	if err := CheckKey(o.Key); err != nil {
		return err
	}
	switch {
	case !(o.Share > 0 && o.Share <= 1):
		return fmt.Errorf("replay: share %v is not above 0 and at most 1; write 0.999 for 99.9 %%", o.Share)
	case !(o.Headroom >= 1 && o.Headroom <= 100):
		return fmt.Errorf("replay: headroom %v is not within 1 and 100", o.Headroom)
	case o.Routes < 0 || o.Routes > 1000:
		return fmt.Errorf("replay: %d routes is not within 1 and 1000", o.Routes)
	}
	return nil
}

// reading opens a log, and closes it once it is read.
func reading(open func() (Records, error), read func(Records) error) error {
	logs, err := open()
	if err != nil {
		return err
	}
	err = read(logs)
	if c, ok := logs.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// rerun replays a document over the log. A report of half a log is no ground for
// advice.
func rerun(ctx context.Context, open func() (Records, error), doc *rules.Document, o AdviseOptions) (report *Report, err error) {
	err = reading(open, func(logs Records) (err error) {
		report, err = Run(ctx, logs, doc, o.Options)
		return err
	})
	if err == nil && report.Requests == 0 {
		err = ErrNoRequests
	}
	return report, err
}

// busy is the share of all requests that makes a route worth a rule.
const busy = 0.01

// survey finds the routes of a log.
func survey(ctx context.Context, logs Records, o AdviseOptions) ([]route, error) {
	var t routes
	for n := 1; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if n%progressEvery == 0 && o.Progress != nil {
			o.Progress(logs.Stats())
		}
		record, err := logs.Next()
		switch {
		case errors.Is(err, io.EOF) && t.total == 0:
			return nil, ErrNoRequests
		case errors.Is(err, io.EOF):
			return t.groups(busy, o.Routes), nil
		case err != nil:
			return nil, err
		case record.Method == "":
			continue
		}
		path, err := urlpath.Clean(record.Path)
		if err != nil {
			path = record.Path
		}
		t.add(record.Method, path)
	}
}

// draft writes a rule for each route and one for the rest. Their limits are still
// to be chosen.
func draft(found []route, o AdviseOptions) *rules.Document {
	doc := new(rules.Document)
	taken := map[string]bool{everythingElse: true}
	for _, r := range found {
		doc.Rules = append(doc.Rules, rules.Rule{Name: ruleName(r, taken),
			Match: &rules.Match{Pattern: r.method + " " + r.path}, Final: true})
	}
	doc.Rules = append(doc.Rules, rules.Rule{Name: everythingElse})
	for i := range doc.Rules {
		r := &doc.Rules[i]
		r.Key, r.Mode = slices.Clone(o.Key), rules.Mode(weir.Shadow)
		r.Limit = &rules.Limit{Quota: 1, Window: time.Second}
	}
	return doc
}

const everythingElse = "everything-else"

const (
	leastQuota   = 5    // below, a second window in a browser is refused
	mostPerHour  = 20   // above, an hour of patience is too much to ask for
	mostInMinute = 1000 // from here on, a minute's burst is a load by itself
)

// choose picks the window and the quota of a route, and says why.
func choose(r *RuleReport, o AdviseOptions) (rules.Limit, string) {
	peaks := r.peaks()
	quota := func(i int) int64 {
		return roundUp(max(int64(math.Ceil(float64(peaks[i].Quantile(o.Share))*o.Headroom)), leastQuota))
	}
	i := 1
	switch {
	case quota(2) <= mostPerHour:
		i = 2
	case quota(1) >= mostInMinute:
		i = 0
	}
	window := windowNames[i]
	limit := rules.Limit{Quota: quota(i), Window: time.Duration(windows[i]) * time.Second}
	why := fmt.Sprintf("%s of the keys ask at most %s times in any %s; times %v and rounded up that is %s",
		shareText(o.Share), number(peaks[i].Quantile(o.Share)), window, o.Headroom, number(limit.Quota))
	if limit.Quota == leastQuota {
		why = fmt.Sprintf("%s of the keys ask at most %s times in any %s; %d is the least that is advised",
			shareText(o.Share), number(peaks[i].Quantile(o.Share)), window, leastQuota)
	}
	return limit, why
}

// shareText is a share in per cent with as many digits as it has.
func shareText(share float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.6f", share*100), "0"), ".") + " %"
}

// describe is the reason in the rule's description.
func (a *RouteAdvice) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Replayed, it would refuse %s of %s requests and touch %s of %s keys.", a.Why,
		number(a.WouldRefuse), number(a.Asked), number(a.KeysWouldRefuse), number(a.Keys))
	for i, peaks := range a.peaks() {
		fmt.Fprintf(&b, " Most in any %s:", windowNames[i])
		for j, q := range quantiles {
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, " %s %s", q.name, number(peaks.Quantile(q.share)))
		}
		b.WriteByte('.')
	}
	if a.Login {
		b.WriteString(" " + loginAdvice)
	}
	return b.String()
}

// loginAdvice is what to think of where people sign in.
const loginAdvice = "People seem to sign in here: such traffic says what guessers try as well as what people need. " +
	"Consider 5/m, and a second rule keyed by the account, since guessers have many addresses."

// AppendYAML appends the proposal as a rule file that says where it is from.
func (a *Advice) AppendYAML(dst []byte) []byte {
	header := fmt.Sprintf(`Advised by weir from %s requests of %s keys,
%s.
Each limit leaves at least %s of its keys untouched. All rules are in shadow mode:
they count and refuse nothing. Watch them, then drop "mode: shadow". They are
final on purpose, so that each request counts for the first rule that matches.`,
		number(a.Report.Requests), strings.Join(a.Document.Rules[0].Key, ", "), span(a.Report.From, a.Report.To), shareText(a.Share))
	return a.Document.AppendYAML(dst, header)
}

// WriteText writes the proposal for people.
func (a *Advice) WriteText(w io.Writer, o TextOptions) error {
	out := &printer{colour: o.Colour}
	fmt.Fprintf(out, "%s requests, %s\n\n", out.paint(bold, number(a.Report.Requests)), span(a.Report.From, a.Report.To))
	rows := [][]string{{"RULE", "MATCH", "LIMIT", "REQUESTS", "WOULD REFUSE", "KEYS", "TOUCHED", "UNTOUCHED"}}
	for i := range a.Routes {
		r := &a.Routes[i]
		match := r.Match
		if match == "" {
			match = "everything else"
		}
		rows = append(rows, []string{r.Name, match, r.Limit, number(r.Asked), number(r.WouldRefuse), number(r.Keys),
			number(r.KeysWouldRefuse), fmt.Sprintf("%.2f %%", 100*r.Untouched)})
	}
	out.table("", rows, func(row, column int) string {
		switch {
		case column == 0 || column == 2:
			return bold
		case column == 4 && a.Routes[row-1].WouldRefuse > 0:
			return amber
		}
		return ""
	})
	for i := range a.Routes {
		r := &a.Routes[i]
		if r.Asked == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s  %s: %s\n", out.paint(bold, r.Name), out.paint(bold, r.Limit), r.Why)
		if r.Login {
			fmt.Fprintf(out, "  %s\n", out.paint(amber, loginAdvice))
		}
		r.writePeaks(out)
	}
	a.Report.writeNotes(out)
	_, err := io.WriteString(w, out.String())
	return err
}
