package weirtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// A Target is what a script runs on. It tells the time by the [Clock] that
// [Run] is given. It is used by one goroutine.
type Target interface {
	// Policies puts these policies in force, in this order; what was used of those
	// of the same name stays used.
	Policies(ctx context.Context, policies []Policy) error
	// Load puts the rules of a file in force.
	Load(ctx context.Context, file string) error
	// Do makes one request. A refusal is an Answer; an error ends the script.
	Do(ctx context.Context, r Request) (Answer, error)
}

// ErrCannot is wrapped by the errors of a [Target] that has no such thing as was
// asked for. [RunScripts] skips the rest of a script that meets it.
var ErrCannot = errors.New("weirtest: the target cannot do this")

// An Answer is what a [Target] says of one request. That of Refund, Settle and
// Reset is not looked at.
type Answer struct {
	Allowed bool
	// Wait is how long an allowed request waits.
	Wait time.Duration
	// RetryAfter is that of a refused request; below 0 it is never.
	RetryAfter time.Duration
	// Limits are the policies that were asked.
	Limits []weir.ServiceLimit
	// Grain is what the times of this answer are rounded up to, for targets that
	// speak in whole seconds; 0 means that they are exact.
	Grain time.Duration
}

// Answered copies a decision into an [Answer].
func Answered(d *weir.Decision) Answer {
	return Answer{Allowed: d.Allowed, Wait: d.Wait, RetryAfter: d.RetryAfter, Limits: slices.Collect(d.Limits())}
}

// A Mismatch is a step whose answer is not the wanted one.
type Mismatch struct {
	File string
	Line int           // counted from 1
	Step string        // the line
	At   time.Duration // when the request was made
	Want string
	Got  string
}

func (e *Mismatch) Error() string {
	return fmt.Sprintf("%s:%d: %s\n\tat   %v\n\twant %s\n\tgot  %s", e.File, e.Line, e.Step, e.At, e.Want, e.Got)
}

// Run runs a script on a target whose time is clock's. It counts from where the
// clock stands and stops at the first step that goes wrong: with a [*Mismatch]
// if the answer is not the wanted one, or with the target's error, wrapped.
func Run(ctx context.Context, s *Script, clock *Clock, on Target) error {
	r := runner{script: s, clock: clock, start: clock.Since(), on: on}
	for i := range s.Steps {
		if err := r.step(ctx, &s.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

type runner struct {
	script   *Script
	clock    *Clock
	start    time.Duration
	on       Target
	policies []Policy
	pending  bool // the target does not know policies yet
}

func (r *runner) step(ctx context.Context, s *Step) error {
	if s.policy != nil {
		r.define(*s.policy)
		return nil
	}
	err := r.install(ctx)
	if err == nil && s.rules != "" {
		err = r.on.Load(ctx, s.rules)
	} else if err == nil {
		return r.ask(ctx, s)
	}
	return r.failed(s, err)
}

func (r *runner) failed(s *Step, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s:%d: %w", r.script.File, s.Line, err)
}

// define replaces the policy of that name or adds it. The target hears of all
// of them at once, before the next request.
func (r *runner) define(p Policy) {
	r.pending = true
	if i := slices.IndexFunc(r.policies, func(q Policy) bool { return q.Name == p.Name }); i >= 0 {
		r.policies[i] = p
		return
	}
	r.policies = append(r.policies, p)
}

func (r *runner) install(ctx context.Context) error {
	if !r.pending {
		return nil
	}
	r.pending = false
	return r.on.Policies(ctx, slices.Clone(r.policies))
}

// ask makes the requests of a step and compares what comes of them.
func (r *runner) ask(ctx context.Context, s *Step) error {
	var a Answer
	allowed, at := 0, s.at
	for i := range s.times {
		if err := ctx.Err(); err != nil {
			return r.failed(s, err)
		}
		at = s.at + time.Duration(i)*s.every
		r.clock.Set(r.start + at)
		var err error
		if a, err = r.on.Do(ctx, s.req); err != nil {
			return r.failed(s, err)
		}
		if a.Allowed {
			allowed++
		}
		if want := s.want.results; len(want) > 0 && a.Allowed != want[min(i, len(want)-1)] {
			got := a.String()
			if s.times > 1 {
				got = fmt.Sprintf("%s for request %d of %d", got, i+1, s.times)
			}
			return r.mismatch(s, at, result(!a.Allowed), got)
		}
	}
	if s.want.counted && allowed != s.want.allow {
		return r.mismatch(s, at, fmt.Sprintf("%d allowed of %d", s.want.allow, s.times), fmt.Sprintf("%d", allowed))
	}
	return r.clauses(s, at, &a)
}

func (r *runner) mismatch(s *Step, at time.Duration, want, got string) error {
	return &Mismatch{File: r.script.File, Line: s.Line, Step: s.Text, At: at, Want: want, Got: got}
}

// clauses compares what is wanted of the last answer.
func (r *runner) clauses(s *Step, at time.Duration, a *Answer) error {
	var by []string
	for _, c := range s.want.clauses {
		if c.what == "by" {
			by = append(by, c.of)
		} else if want, ok := a.is(c); !ok {
			return r.mismatch(s, at, want, a.String())
		}
	}
	if slices.Sort(by); len(by) > 0 && !slices.Equal(by, a.by()) {
		return r.mismatch(s, at, "refuse by "+strings.Join(by, " by "), a.String())
	}
	return nil
}

// is says whether a clause is true, and how to put it if not.
func (a *Answer) is(c clause) (want string, ok bool) {
	limits := a.Limits
	if c.of != "" {
		limits = slices.DeleteFunc(slices.Clone(limits), func(l weir.ServiceLimit) bool { return l.Policy.Name != c.of })
	} else {
		limits = slices.DeleteFunc(slices.Clone(limits), func(l weir.ServiceLimit) bool { return l.Shadow })
	}
	of := ""
	if c.of != "" {
		of = " of " + c.of
	}
	switch c.what {
	case "over":
		return "over " + c.of, len(limits) == 1 && !limits[0].OK
	case "wait":
		return fmt.Sprintf("wait %v", c.d), a.Allowed && a.Wait == a.round(c.d)
	case "remaining":
		least := int64(-1)
		for _, l := range limits {
			if least < 0 || l.Remaining < least {
				least = l.Remaining
			}
		}
		return fmt.Sprintf("remaining %d%s", c.n, of), least == c.n
	case "reset":
		longest := time.Duration(-1)
		for _, l := range limits {
			longest = max(longest, l.Reset)
		}
		return fmt.Sprintf("reset %v%s", c.d, of), longest == a.round(c.d)
	}
	got, refused := a.RetryAfter, !a.Allowed
	if c.of != "" {
		if refused = len(limits) == 1 && !limits[0].OK; refused {
			got = limits[0].RetryAfter
		}
	}
	if c.d < 0 {
		return "retry never" + of, refused && got < 0
	}
	return fmt.Sprintf("retry %v%s", c.d, of), refused && got == a.round(c.d)
}

// round is a wanted time as the target can tell it.
func (a *Answer) round(d time.Duration) time.Duration {
	if a.Grain <= 0 || d%a.Grain == 0 {
		return d
	}
	return d - d%a.Grain + a.Grain
}

// by names the enforced policies that refused, sorted.
func (a *Answer) by() (names []string) {
	if a.Allowed {
		return nil
	}
	for _, l := range a.Limits {
		if !l.OK && !l.Shadow {
			names = append(names, l.Policy.Name)
		}
	}
	slices.Sort(names)
	return names
}

// String puts the answer in the words of a script.
func (a Answer) String() string {
	var b strings.Builder
	b.WriteString(result(a.Allowed))
	switch {
	case a.Allowed && a.Wait > 0:
		fmt.Fprintf(&b, " wait %v", a.Wait)
	case !a.Allowed:
		for _, name := range a.by() {
			b.WriteString(" by " + name)
		}
		b.WriteString(" retry " + span(a.RetryAfter))
	}
	for _, l := range a.Limits {
		fmt.Fprintf(&b, " (%s: remaining %d, reset %v", l.Policy.Name, l.Remaining, l.Reset)
		if !l.OK {
			b.WriteString(", over, retry " + span(l.RetryAfter))
		}
		b.WriteString(")")
	}
	return b.String()
}

func span(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return d.String()
}

func result(ok bool) string {
	if ok {
		return "ok"
	}
	return "refuse"
}
