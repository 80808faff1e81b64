package weirtest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// maxTimes bounds the requests of one step, so that a slip of the finger does
// not keep a machine busy for a day.
const maxTimes = 10_000_000

// Parse reads a script. File is only named in errors, which are [*SyntaxError].
func Parse(file string, text []byte) (*Script, error) {
	s := &Script{File: file}
	var p parser
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		words, err := split(line)
		if err == nil && len(words) > 0 {
			step := Step{Line: n, Text: strings.TrimSpace(line)}
			p.words = words
			if err = p.step(&step); err == nil && len(p.words) > 0 {
				err = fmt.Errorf("%q is one word too many", p.words[0])
			}
			s.Steps = append(s.Steps, step)
		}
		if err != nil {
			return nil, &SyntaxError{File: file, Line: n, Err: err}
		}
	}
	return s, nil
}

// split cuts a line into words and drops its comment.
func split(line string) (words []string, err error) {
	for {
		line = strings.TrimLeft(line, " \t\r\n")
		switch {
		case line == "" || line[0] == '#':
			return words, nil
		case line[0] == '\'' || line[0] == '"':
			end := strings.IndexByte(line[1:], line[0])
			if end < 0 {
				return nil, fmt.Errorf("%s has no closing quote", strings.TrimSpace(line))
			}
			words = append(words, line[1:1+end])
			line = line[end+2:]
		default:
			end := strings.IndexAny(line, " \t\r\n")
			if end < 0 {
				end = len(line)
			}
			words = append(words, line[:end])
			line = line[end:]
		}
	}
}

// parser reads the words of one line after the other.
type parser struct {
	words []string
	now   time.Duration // of the latest request
	begun bool          // a request has been made
}

// word takes the next word, "" at the end of the line.
func (p *parser) word() (w string) {
	if len(p.words) > 0 {
		w, p.words = p.words[0], p.words[1:]
	}
	return w
}

func (p *parser) next() string {
	if len(p.words) > 0 {
		return p.words[0]
	}
	return ""
}

// accept takes the next word if it is w.
func (p *parser) accept(w string) bool {
	if p.next() != w {
		return false
	}
	p.word()
	return true
}

// name takes a word that must be there.
func (p *parser) name(what string) (string, error) {
	if len(p.words) == 0 {
		return "", fmt.Errorf("%s is missing", what)
	}
	return p.word(), nil
}

func (p *parser) number(what string) (int64, error) {
	w := p.word()
	n, err := strconv.ParseInt(w, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is a whole number, not %q", what, w)
	}
	return n, nil
}

// cost takes a word such as x5, if that is next.
func (p *parser) cost() (n int64, ok bool, err error) {
	digits, ok := strings.CutPrefix(p.next(), "x")
	if !ok || digits == "" {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("a cost is written like x5, not %q", p.next())
	}
	p.word()
	return n, true, nil
}

// duration takes a span: one that [time.ParseDuration] reads, or days, as in 30d.
func (p *parser) duration(what string) (time.Duration, error) {
	w := p.word()
	const day = 24 * time.Hour
	if days, ok := strings.CutSuffix(w, "d"); ok {
		if n, err := strconv.ParseInt(days, 10, 32); err == nil && n >= 0 && n <= int64(math.MaxInt64/day) {
			return time.Duration(n) * day, nil
		}
	}
	d, err := time.ParseDuration(w)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s is a duration such as 1m30s, not %q", what, w)
	}
	return d, nil
}

func (p *parser) step(s *Step) (err error) {
	reload := p.accept("reload")
	switch {
	case p.next() == "policy" || p.next() == "rules":
		if p.begun && !reload {
			return fmt.Errorf("a %s line after a request is written: reload %[1]s …", p.next())
		}
		if p.word() == "rules" {
			s.rules, err = p.name("the name of a rule file")
			return err
		}
		s.policy, err = p.policy()
		return err
	case reload:
		return errors.New("reload is followed by: policy … or rules FILE")
	}
	p.begun = true
	if s.at, err = p.instant(); err != nil {
		return err
	}
	if s.req, err = p.request(); err != nil {
		return err
	}
	if s.times, s.every, err = p.times(); err != nil {
		return err
	}
	p.now = s.at + time.Duration(s.times-1)*s.every
	switch s.req.Verb {
	case Refund, Settle, Reset:
		return nil
	}
	s.want, err = p.outcome(s.times)
	return err
}

func (p *parser) policy() (*Policy, error) {
	var pol Policy
	var err error
	if pol.Name, err = p.name("the policy's name"); err != nil {
		return nil, err
	}
	if a, ok := weir.ParseAlgorithm(p.next()); ok {
		pol.Limit.Algorithm = a
		p.word()
	}
	if pol.Limit.Quota, err = p.number("a quota"); err != nil {
		return nil, err
	}
	if !p.accept("per") {
		return nil, fmt.Errorf("a quota is followed by: per DURATION, not %q", p.next())
	}
	if pol.Limit.Window, err = p.duration("a window"); err != nil {
		return nil, err
	}
	for len(p.words) > 0 && err == nil {
		switch w := p.word(); w {
		case "burst":
			pol.Limit.Burst, err = p.number(w)
		case "queue":
			pol.Limit.Queue, err = p.number(w)
		case "slices":
			var n int64
			n, err = p.number(w)
			pol.Limit.Slices = int(n)
		case "max_wait":
			pol.Limit.MaxWait, err = p.duration(w)
		case "warm_up":
			pol.Limit.WarmUp, err = p.duration(w)
		case "unit":
			pol.Unit, err = p.name("the unit's name")
		case "shadow":
			pol.Shadow = true
		case "shared":
			pol.Shared = true
		default:
			err = fmt.Errorf("a policy has no option %q; it has burst, queue, slices, max_wait, warm_up, unit, shadow and shared", w)
		}
	}
	if err != nil {
		return nil, err
	}
	if _, err := weir.NewPolicy(pol.Name, pol.Limit); err != nil {
		return nil, err
	}
	return &pol, nil
}

// instant reads when a step happens.
func (p *parser) instant() (at time.Duration, err error) {
	back := false
	switch {
	case p.accept("at"):
	case p.accept("back"):
		back = true
		if !p.accept("to") {
			return 0, errors.New("a clock that steps back is written: back to DURATION")
		}
	default:
		return p.now, nil
	}
	if at, err = p.duration("an instant"); err != nil {
		return 0, err
	}
	switch {
	case at < p.now && !back:
		return 0, fmt.Errorf("%v is before the last request, at %v; a clock that steps back is written: back to %[1]v", at, p.now)
	case at >= p.now && back:
		return 0, fmt.Errorf("%v is not before the last request, at %v; write: at %[1]v", at, p.now)
	}
	return at, nil
}

func (p *parser) request() (r Request, err error) {
	verbs := map[string]Verb{"take": Take, "peek": Peek, "refund": Refund, "settle": Settle, "reset": Reset}
	w := p.word()
	verb, ok := verbs[w]
	if !ok {
		if w == "" || strings.Trim(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return r, fmt.Errorf("a step is take, peek, refund, settle, reset or an HTTP method such as GET, not %q", w)
		}
		return p.send(w)
	}
	r = Request{Verb: verb, Cost: 1, Slack: -1}
	if r.Key, err = p.name("the key"); err != nil || verb == Refund || verb == Reset {
		return r, err
	}
	n, priced, err := p.cost()
	if err != nil {
		return r, err
	}
	if priced {
		r.Cost = n
	}
	switch {
	case verb == Settle && !priced:
		return r, errors.New("settle says what the last take has cost after all, as in: settle alice x3")
	case verb == Settle && p.accept("unit"):
		r.Unit, err = p.name("the unit's name")
	case verb != Settle && p.accept("slack"):
		r.Slack, err = p.duration("slack")
	}
	return r, err
}

// send reads a request with a method, a path and an origin.
func (p *parser) send(method string) (r Request, err error) {
	r = Request{Verb: Send, Method: method, Slack: -1}
	if r.Path, err = p.name("the path"); err == nil && r.Path[:min(len(r.Path), 1)] != "/" {
		err = fmt.Errorf("a path begins with /, unlike %q", r.Path)
	}
	for err == nil {
		switch {
		case p.accept("host"):
			r.Host, err = p.name("the host's name")
		case p.accept("from"):
			r.From, err = p.name("the client's address")
		case p.accept("header"):
			var h string
			if h, err = p.name("the header line"); err == nil {
				if name, _, ok := strings.Cut(h, ":"); !ok || name == "" {
					err = fmt.Errorf("a header is written like 'X-User: alice', not %q", h)
				}
			}
			r.Header = append(r.Header, h)
		default:
			if _, priced, _ := p.cost(); priced {
				return r, errors.New("the cost of a request is its rule's; to send it 6 times, write: 6 times")
			}
			if r.From == "" {
				return r, errors.New("a request comes from somewhere: write from ADDRESS")
			}
			return r, nil
		}
	}
	return r, err
}

// times reads how often a step is repeated.
func (p *parser) times() (n int, every time.Duration, err error) {
	if len(p.words) < 2 || p.words[1] != "times" {
		return 1, 0, nil
	}
	times, err := p.number("a number of times")
	if err == nil && (times < 1 || times > maxTimes) {
		err = fmt.Errorf("%d times is not within 1 and %d", times, maxTimes)
	}
	p.word()
	if err == nil && p.accept("every") {
		every, err = p.duration("the time between two requests")
		if err == nil && times > 1 && every > (1<<62-p.now)/time.Duration(times) {
			err = fmt.Errorf("%d times every %v takes too long", times, every)
		}
	}
	return int(times), every, err
}

func (p *parser) outcome(times int) (o outcome, err error) {
	if p.accept("allow") {
		n, err := p.number("the number of allowed requests")
		if err == nil && (n < 0 || n > int64(times)) {
			err = fmt.Errorf("%d of %d requests cannot be allowed", n, times)
		}
		if err != nil {
			return o, err
		}
		o.counted, o.allow = true, int(n)
	} else if o.results, err = p.results(times); err != nil {
		return o, err
	}
	for len(p.words) > 0 && err == nil {
		var c clause
		if c, err = p.clause(); err == nil {
			o.clauses = append(o.clauses, c)
		}
	}
	return o, err
}

// results reads ok and refuse, by themselves or in runs.
func (p *parser) results(times int) (results []bool, err error) {
	for {
		run, counted := int64(1), false
		if len(p.words) > 1 && (p.words[1] == "ok" || p.words[1] == "refuse") {
			if n, err := strconv.ParseInt(p.next(), 10, 64); err == nil {
				if n < 1 || n > int64(times-len(results)) {
					return nil, fmt.Errorf("%d %s are more results than the %d requests", n, p.words[1], times)
				}
				run, counted = n, true
				p.word()
			}
		}
		w := p.next()
		if w != "ok" && w != "refuse" {
			break
		}
		p.word()
		if len(results) == times && !counted {
			return nil, fmt.Errorf("more results than the %d requests", times)
		}
		for range run {
			results = append(results, w == "ok")
		}
	}
	switch len(results) {
	case 0:
		return nil, fmt.Errorf("what must come of it, ok or refuse, is missing before %q", p.next())
	case 1, times:
		return results, nil
	}
	return nil, fmt.Errorf("%d results for %d requests", len(results), times)
}

func (p *parser) clause() (c clause, err error) {
	switch c.what = p.word(); c.what {
	case "by", "over":
		c.of, err = p.name("the policy's name")
		return c, err
	case "wait":
		c.d, err = p.duration(c.what)
		return c, err
	case "remaining":
		c.n, err = p.number(c.what)
	case "reset":
		c.d, err = p.duration(c.what)
	case "retry":
		if c.d = -1; !p.accept("never") {
			c.d, err = p.duration(c.what)
		}
	default:
		return c, fmt.Errorf("what must be true is by, over, wait, remaining, reset or retry, not %q", c.what)
	}
	if err == nil && p.accept("of") {
		c.of, err = p.name("the policy's name")
	}
	return c, err
}
