package replay

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/accesslog"
	"github.com/weirhq/weir/rules"
)

// A Report is the outcome of a [Run]. Lines = Requests + Skipped + Empty, unless
// the run was interrupted, and Requests = Allowed + Refused.
type Report struct {
	// Lines is the number of lines read.
	Lines int64 `json:"lines"`
	// Requests is the number of requests replayed.
	Requests int64 `json:"requests"`
	// Skipped is the number of lines that were not: unreadable ones, and requests
	// that are not HTTP.
	Skipped int64 `json:"skipped"`
	// From and To are the times of the first and the last request, zero if there
	// were none.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Allowed and Refused count requests by the answer they would have got from all
	// rules together.
	Allowed int64 `json:"allowed"`
	Refused int64 `json:"refused"`
	// Rules are those of the document, in order.
	Rules []RuleReport `json:"rules"`

	// Empty is the number of empty lines.
	Empty int64 `json:"empty,omitempty"`
	// Late is the number of lines that came later than the reader's window allows; they
	// were replayed at the time of the line before.
	Late int64 `json:"late,omitempty"`
	// BadPaths is the number of requests whose path has no normal form. A gateway
	// answers them 400 before it asks a rule; here they were matched as logged.
	BadPaths int64 `json:"bad_paths,omitempty"`
	// SkippedBy splits Skipped by reason.
	SkippedBy map[string]int64 `json:"skipped_by,omitempty"`
	// Examples are some of the skipped lines.
	Examples []Example `json:"examples,omitempty"`
	// Overflow is the number of asks that shared a counter since the store was full,
	// beyond [Options].MaxKeys.
	Overflow int64 `json:"overflow,omitempty"`
}

// An Example is a line that was skipped. The excerpt is quoted.
type Example struct {
	File    string `json:"file"`
	Line    int64  `json:"line"`
	Reason  string `json:"reason"`
	Excerpt string `json:"excerpt"`
}

// A RuleReport is what one rule said. Asked = Allowed + Refused.
type RuleReport struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
	// Asked is the number of requests that the rule applied to, each once, however
	// many limits the rule has.
	Asked int64 `json:"asked"`
	// Allowed is the number of those that this rule did not refuse; another rule may
	// have.
	Allowed int64 `json:"allowed"`
	// Refused is the number that one of the rule's limits refused; 0 in shadow mode.
	Refused int64 `json:"refused"`
	// Keys is the number of different keys, KeysRefused of those refused at least
	// once.
	Keys        int64 `json:"keys"`
	KeysRefused int64 `json:"keys_refused"`
	// Top are the keys refused most, or that would be, then those asked most.
	Top []KeyReport `json:"top"`

	// WouldRefuse is the number of requests that a rule in shadow mode, or one that is
	// not rolled out to the key, would have refused. They are among the Allowed.
	WouldRefuse int64 `json:"would_refuse"`
	// KeysWouldRefuse is the number of keys with at least one of those.
	KeysWouldRefuse int64 `json:"keys_would_refuse"`
	// Match, Key and Limits are the rule's, as a document has them; Bounds are what
	// the limits really keep.
	Match  string   `json:"match,omitempty"`
	Key    string   `json:"key,omitempty"`
	Limits []string `json:"limits,omitempty"`
	Bounds []string `json:"bounds,omitempty"`
	// TopError is 0 if all keys were counted exactly. Otherwise there were more than
	// [Options].MaxKeys: every key in Top may have up to so many more requests and
	// refusals than it says, a key that is missing there had no more than that, and
	// the numbers of keys are estimates with a standard error of 0.8 %.
	TopError int64 `json:"top_error,omitempty"`
	// Second, Minute and Hour are the peaks of the keys in windows of those lengths.
	Second Peaks `json:"peaks_per_second"`
	Minute Peaks `json:"peaks_per_minute"`
	Hour   Peaks `json:"peaks_per_hour"`
	// Series is what came over time.
	Series Series `json:"series"`

	limits []weir.Limit
	cost   int64
}

// A KeyReport is what became of one key.
type KeyReport struct {
	// Key is the key for people: its value, or NAME=VALUE for each part of a composite
	// one; "no key" and what stood in for it; or "global". It is quoted, as Go does, if
	// it has characters that are not printable.
	Key         string `json:"key"`
	Asked       int64  `json:"asked"`
	Refused     int64  `json:"refused"`
	WouldRefuse int64  `json:"would_refuse,omitempty"`
}

// notHTTP is the reason of lines that hold no HTTP request.
const notHTTP = "not an HTTP request"

// report sums up.
func (r *run) report(read accesslog.Stats, store weir.MemoryStats, o Options) *Report {
	p := &Report{
		Lines: read.Lines, Empty: read.Empty, Late: read.Late,
		Requests: r.requests, Allowed: r.allowed, Refused: r.requests - r.allowed,
		BadPaths: r.badPaths, Overflow: store.Overflow + store.Refused,
	}
	if r.requests > 0 {
		p.From, p.To = time.UnixMicro(r.from).UTC(), time.UnixMicro(r.now).UTC()
	}
	skip := func(reason string, n int64) {
		if n <= 0 {
			return
		}
		if p.SkippedBy == nil {
			p.SkippedBy = make(map[string]int64)
		}
		p.SkippedBy[reason] += n
		p.Skipped += n
	}
	for reason, n := range read.Reasons {
		skip(string(reason), n)
	}
	skip(notHTTP, r.notHTTP)
	for _, e := range read.Examples {
		p.Examples = append(p.Examples, Example{e.File, e.Line, string(e.Reason), e.Excerpt})
	}
	p.Rules = make([]RuleReport, len(r.tallies))
	for i, t := range r.tallies {
		p.Rules[i] = r.rule(t, o)
	}
	return p
}

func (r *run) rule(t *tally, o Options) RuleReport {
	p := RuleReport{
		Name: t.rule.Name, Mode: t.compiled.Mode.String(), Key: strings.Join(t.rule.Key, ", "),
		Asked: t.asked, Allowed: t.asked - t.refused, Refused: t.refused, WouldRefuse: t.watched,
		Top: []KeyReport{}, Bounds: t.rule.Bounds(), TopError: t.keys.lost,
		Series: r.timeline.series(t.row), limits: t.compiled.Limits, cost: 1,
	}
	if m := t.rule.Match; m != nil {
		if p.Match = m.Pattern; p.Match == "" {
			p.Match = strings.TrimSpace(strings.Join(m.Methods, ", ") + " " + strings.Join(m.Hosts, ", ") + " " + strings.Join(m.Paths, ", "))
		}
	}
	if t.rule.Cost != nil {
		p.cost = *t.rule.Cost
	}
	for _, l := range t.compiled.Limits {
		p.Limits = append(p.Limits, rules.LimitOf(l).String())
	}
	p.Keys, p.KeysRefused, p.KeysWouldRefuse = t.keys.totals()
	for _, k := range t.keys.top(max(o.Top, 0)) {
		p.Top = append(p.Top, KeyReport{t.text(k), k.asked, k.refused, k.watched})
	}
	peaks := t.keys.peaks()
	p.Second, p.Minute, p.Hour = peaks[0], peaks[1], peaks[2]
	return p
}

// peaks are the distributions in the order of windows.
func (r *RuleReport) peaks() [len(windows)]Peaks {
	return [...]Peaks{r.Second, r.Minute, r.Hour}
}

// plain is a text as it is if it is printable on one line and has none of the odd
// characters, and quoted otherwise, so that no client can forge a line.
func plain(s, odd string) string {
	unfit := func(c rune) bool { return !unicode.IsPrint(c) || strings.ContainsRune(odd, c) }
	if s == "" || !utf8.ValidString(s) || strings.IndexFunc(s, unfit) >= 0 {
		return strconv.Quote(s)
	}
	return s
}
