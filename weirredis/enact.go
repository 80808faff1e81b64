package weirredis

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// enact computes the answers of a batch from what the script said: its instant, and
// each key's state before it. It decides by algo what the script has decided by the
// mirror of algo, in the same order, so that every Remaining, Reset and Retry comes out
// of one arithmetic; and it compares what was allowed.
type enact struct {
	now    int64
	keys   []held
	reply  reader
	logs   reader
	shared []algo.Verdict // of a request: without its charges
}

// held is the state of one key while a batch is enacted.
type held struct {
	state  algo.State
	ledger algo.Ledger
}

// ErrMirror is wrapped by the error of a decision whose script answered otherwise than
// the arithmetic does. It also is ErrUnavailable. It means that a fault is in Weir, or
// that something else writes to its keys.
var ErrMirror = fmt.Errorf("%w: redis decided otherwise than the arithmetic does", weir.ErrUnavailable)

var errShort = errors.New("weirredis: the script's reply is cut short")

// reader takes a reply apart. Beyond its end it reads zeros and remembers that.
type reader struct {
	text  string
	short bool
}

func (r *reader) bytes(n int) string {
	if n > len(r.text) {
		r.short, r.text = true, ""
		return ""
	}
	s := r.text[:n]
	r.text = r.text[n:]
	return s
}

func (r *reader) word(n int) int64 { return word(r.bytes(n)) }

// answer writes the answers of all jobs. On an error nothing of them is right.
func (e *enact) answer(b *batch, reply string) error {
	e.reply = reader{text: reply}
	e.now = e.reply.word(wordLen)
	said := e.reply // what was allowed, before the states
	for _, r := range b.requests {
		switch r.first.verb {
		case take, peek:
			e.reply.bytes(2)
		case lend:
			e.reply.bytes(wordLen * len(r.first.asks))
		}
	}
	e.keys = e.keys[:0]
	for range b.keys {
		var h held
		h.state, h.ledger, _ = state(e.reply.bytes(int(e.reply.word(1))))
		e.keys = append(e.keys, h)
	}
	e.logs = e.reply
	if e.reply.short {
		return errShort
	}
	for _, r := range b.requests {
		switch r.first.verb {
		case take, peek:
			if allowed := e.run(b, r); allowed != said.word(2) {
				return fmt.Errorf("%w: policy %s", ErrMirror, r.first.asks[0].policy.Name)
			}
		default:
			for i := range r.first.asks {
				a := &r.first.asks[i]
				g := e.change(r.first.verb, &e.keys[b.index[a.key]], a)
				if r.first.verb == lend {
					if g.Units != said.word(wordLen) {
						return fmt.Errorf("%w: loan of policy %s", ErrMirror, a.policy.Name)
					}
					r.first.answers[i].grant = g
				}
			}
		}
	}
	if e.logs.short || e.logs.text != "" {
		return errShort
	}
	return nil
}

// run decides a request or a run of equal ones, and returns how many were allowed; of a
// run, how many were OK.
func (e *enact) run(b *batch, r request) (allowed int64) {
	if p := r.first.asks[0].policy.Params(); r.times > 1 && p.Kind == algo.SlidingLog {
		return e.runLog(p, r)
	}
	for j := r.first; j != nil; j = j.next {
		e.request(b, j)
		if j.allowed && (r.times == 1 || j.answers[0].OK) {
			allowed++
		}
	}
	return allowed
}

// request decides one job as Store.Take and Peek say.
func (e *enact) request(b *batch, j *job) {
	j.allowed = true
	e.shared = e.shared[:0]
	for i := range j.asks {
		a, v := &j.asks[i], &j.answers[i]
		var d, without algo.Verdict
		at := e.now
		if p := a.policy.Params(); p.Kind == algo.SlidingLog {
			d, without, at = e.log(p, a.cost)
		} else {
			h := &e.keys[b.index[a.key]]
			h.age(p, e.now)
			d, without = h.decide(p, a, e.now)
			at = max(at, h.state.At)
		}
		v.Verdict = weir.VerdictOf(d, at)
		v.without = without
		j.allowed = j.allowed && (d.OK || a.shadow)
	}
	for i := range j.asks {
		a, v := &j.asks[i], &j.answers[i]
		if !v.OK || a.cost == 0 {
			continue
		}
		if j.verb == take && (j.allowed || a.shadow) {
			if p := a.policy.Params(); p.Kind != algo.SlidingLog {
				h := &e.keys[b.index[a.key]]
				h.state, _ = algo.Decide(p, h.state, e.now, a.cost, a.slack)
			}
			continue
		}
		v.Remaining, v.Reset = v.without.Remaining, v.without.Reset
	}
}

// age brings a bucket with its ledger up to now; the others are by Decide.
func (h *held) age(p *algo.Params, now int64) {
	if p.Kind == algo.Bucket && h.ledger != (algo.Ledger{}) {
		h.state, h.ledger = algo.Settle(p, h.state, h.ledger, now)
	}
}

// decide returns the verdict, and that of a look.
func (h *held) decide(p *algo.Params, a *ask, now int64) (d, without algo.Verdict) {
	aged, without := algo.Decide(p, h.state, now, 0, 0)
	if a.cost == 0 {
		h.state, d = algo.Decide(p, h.state, now, 0, a.slack)
		return d, without
	}
	h.state = aged
	_, d = algo.Decide(p, h.state, now, a.cost, a.slack)
	return d, without
}

// digest is what the script tells of a log.
type digest struct{ used, at, newest, leaves int64 }

func (e *enact) digest() digest {
	l := &e.logs
	return digest{l.word(wordLen), l.word(wordLen), l.word(wordLen) - 1, l.word(wordLen)}
}

// log is algo.DecideLog on a digest.
func (e *enact) log(p *algo.Params, cost int64) (d, without algo.Verdict, at int64) {
	g := e.digest()
	return g.decide(p, cost), g.without(p), g.at
}

func (g digest) decide(p *algo.Params, cost int64) algo.Verdict {
	d := g.without(p)
	switch {
	case cost > p.Cap:
		d.OK, d.Wait = false, algo.Never
	case cost > p.Cap-g.used:
		d.OK, d.Wait = false, g.leaves-g.at
	case cost > 0:
		d.OK, d.Remaining = true, max(p.Cap-g.used-cost, 0)
		d.Reset = g.at - g.at%max(p.Step, 1) + p.Window - g.at
	default:
		d.OK = true
	}
	return d
}

// without is what is left without a charge.
func (g digest) without(p *algo.Params) algo.Verdict {
	d := algo.Verdict{Remaining: max(p.Cap-g.used, 0)}
	if g.newest >= 0 {
		d.Reset = g.newest + p.Window - g.at
	}
	return d
}

// runLog decides a run of equal asks of one log: its digest before the run answers those
// that were allowed, and the one after it the others.
func (e *enact) runLog(p *algo.Params, r request) (allowed int64) {
	first, rest := e.digest(), e.digest()
	for j := r.first; j != nil; j = j.next {
		a, v := &j.asks[0], &j.answers[0]
		g := first
		if a.cost > p.Cap-g.used {
			g = rest
		}
		d := g.decide(p, a.cost)
		v.Verdict = weir.VerdictOf(d, g.at)
		v.without = g.without(p)
		j.allowed = d.OK || a.shadow
		switch {
		case !d.OK:
			continue
		case j.verb == peek && a.cost > 0:
			v.Remaining, v.Reset = v.without.Remaining, v.without.Reset
		case j.verb == take && a.cost > 0:
			first.used += a.cost
			first.newest = g.at - g.at%max(p.Step, 1)
		}
		allowed++
	}
	return allowed
}

// change does what adjust, reset and lend do to a state.
func (e *enact) change(v verb, h *held, a *ask) (g weir.Grant) {
	p := a.policy.Params()
	switch {
	case v == reset:
		*h = held{}
	case p.Kind == algo.SlidingLog: // the digests that follow know of it, and none is lent
		g.At = e.now
	case v == adjust:
		if p.Kind == algo.Bucket {
			h.state, h.ledger = algo.AdjustLent(p, h.state, h.ledger, e.now, a.at, a.cost)
		} else {
			h.state = algo.Adjust(p, h.state, e.now, a.at, a.cost)
		}
	case v == lend:
		h.state, h.ledger, g.Grant = algo.Lend(p, h.state, h.ledger, e.now, a.loan)
		g.At = h.state.At
	}
	return g
}
