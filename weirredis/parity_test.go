package weirredis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
	"github.com/weirhq/weir/weirtest"
)

// The script and the arithmetic must be one: random batches of takes of one and of
// several policies, peeks, adjustments, resets and loans, with reloads and steps of the
// clock between them, on limits from the smallest to the largest. Every answer and every
// stored state is compared with what algo says, bit for bit.
func TestTheScriptIsTheArithmetic(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := dial(t, server(t))
	runs := 60
	if testing.Short() {
		runs = 10
	}
	for n := range runs {
		w := &walk{
			T:     t,
			rand:  rand.New(rand.NewPCG(seed, uint64(n))),
			wire:  c,
			keys:  make(map[string]*held),
			logs:  make(map[string][]algo.Entry),
			clock: new(weirtest.Clock),
		}
		w.store = New(c, Options{Prefix: fmt.Sprint("parity", n), Clock: w.clock, Timeout: time.Minute})
		for i := range algorithms {
			w.limits = append(w.limits, w.limit(algorithms[i]))
			w.policies = append(w.policies, w.policy(i))
		}
		for step := range 60 {
			w.step = step
			w.move()
			w.batch()
		}
		if s := w.store.Stats(); s.Mirror != 0 || s.Failed != 0 {
			t.Fatalf("%+v", s)
		}
	}
}

var algorithms = []weir.Algorithm{weir.TokenBucket, weir.TokenBucket, weir.LeakyQueue, weir.FixedWindow,
	weir.FixedWindowFirst, weir.SlidingWindow, weir.SlidingSlices, weir.SlidingLog}

// walk drives a store and its model.
type walk struct {
	*testing.T
	rand     *rand.Rand
	wire     *wire
	store    *Store
	clock    *weirtest.Clock
	step     int
	limits   []weir.Limit
	policies []*weir.Policy
	keys     map[string]*held
	logs     map[string][]algo.Entry
	before   map[string]held // of a batch: the keys that it did not change
	dirty    map[string]bool // and those that it did
	charges  []charge
	loans    []loan
	last     weir.Verdict
}

type charge struct {
	policy int
	key    string
	at     int64
	cost   int64
}

type loan struct {
	policy int
	key    string
	grant  weir.Grant
}

// limit draws one of any size.
func (w *walk) limit(a weir.Algorithm) weir.Limit {
	if w.rand.IntN(3) == 0 { // one as people write them
		windows := []time.Duration{time.Second, time.Minute, time.Hour}
		return weir.Limit{Algorithm: a, Quota: 1 + w.rand.Int64N(50), Window: windows[w.rand.IntN(len(windows))]}
	}
	for {
		l := weir.Limit{Algorithm: a, Window: time.Duration(1+w.upTo(1<<[]int{4, 24, 33, 51}[w.rand.IntN(4)])) * time.Microsecond}
		most := int64(algo.Max)
		if a == weir.SlidingLog {
			most = weir.MaxLogQuota
		}
		l.Quota = min(1+w.upTo(1<<[]int{2, 7, 20, 51}[w.rand.IntN(4)]), most)
		switch a {
		case weir.TokenBucket:
			l.Burst = w.upTo(l.Quota)
			if w.rand.IntN(2) == 0 {
				l.MaxWait = time.Duration(w.upTo(1<<30)) * time.Microsecond
			}
		case weir.LeakyQueue:
			l.Queue = w.upTo(l.Quota)
		case weir.SlidingSlices:
			l.Slices = 1 + w.rand.IntN(12)
			l.Window = (l.Window/time.Microsecond + 1) * time.Microsecond * time.Duration(l.Slices)
		}
		if _, err := weir.NewPolicy("x", l); err == nil {
			return l
		}
	}
}

// upTo is 0 to n, most often near one of them.
func (w *walk) upTo(n int64) int64 {
	switch v := w.rand.Int64N(n + 1); w.rand.IntN(6) {
	case 0:
		return 0
	case 1:
		return n
	case 2:
		return min(v, 3)
	case 3:
		return v >> w.rand.IntN(40)
	default:
		return v
	}
}

func (w *walk) policy(i int) *weir.Policy {
	p, err := weir.NewPolicy(fmt.Sprint("policy", i), w.limits[i])
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// move moves the clock to an edge, a little, far, or back; or reloads a rule.
func (w *walk) move() {
	var d int64
	switch w.rand.IntN(12) {
	case 0:
		d = w.last.Retry
	case 1:
		d = w.last.Retry - 1
	case 2:
		d = w.last.Reset
	case 3:
		d = w.last.Reset - 1
	case 4:
		d = w.upTo(1 << 34)
	case 5:
		d = 1
	case 6:
		d = -w.upTo(1 << 31)
	case 7, 8:
		i := w.rand.IntN(len(w.policies))
		if w.limits[i] = w.limit(algorithms[i]); w.rand.IntN(3) == 0 {
			w.limits[i].Window = min(w.limits[i].Window*2, 24*time.Hour)
		}
		if p, err := weir.NewPolicy(fmt.Sprint("policy", i), w.limits[i]); err == nil {
			w.policies[i] = p
		}
	}
	if d == algo.Never || d > 1<<45 {
		d = 1 << 45
	}
	at := w.clock.Since() + time.Duration(d)*time.Microsecond
	w.clock.Set(max(at, 0))
}

func (w *walk) now() int64 { return w.clock.Now().UnixMicro() }

// batch draws jobs, lets the script and the model do them, and compares.
func (w *walk) batch() {
	r := newRunner()
	plain := w.rand.IntN(3) == 0
	for range 1 + w.rand.IntN(12) {
		j := w.draw()
		if plain {
			j = w.drawPlain()
		}
		times := 1
		if w.rand.IntN(2) == 0 && !(plain && len(j.asks) > 1) {
			times += w.rand.IntN(20)
		}
		for range times {
			k := w.store.pool.get(j.verb, len(j.asks))
			copy(k.asks, j.asks)
			k.born = time.Now()
			r.jobs = append(r.jobs, k)
		}
	}
	jobs := slices.Clone(r.jobs)
	w.before, w.dirty = make(map[string]held), make(map[string]bool)
	w.store.run(context.Background(), r)
	for i, j := range jobs {
		if j.err != nil {
			w.Fatalf("step %d: %v", w.step, j.err)
		}
		w.compare(i, j)
	}
	for key, h := range w.before { // a look is not written
		*w.keys[key] = h
	}
	w.states(jobs)
}

// drawPlain draws what the script has a short way for: single units of buckets, of a key
// of one of them or of both.
func (w *walk) drawPlain() *job {
	n := 1 + w.rand.IntN(2)
	j := w.store.pool.get(take, n)
	key := []byte{byte('a' + w.rand.IntN(8))}
	for i, at := range w.rand.Perm(2)[:n] {
		p := w.policies[at]
		j.asks[i] = ask{policy: p, key: w.store.names.name(p.ID(), key), cost: 1}
	}
	return j
}

func (w *walk) draw() *job {
	verbs := []verb{take, take, take, take, take, peek, adjust, reset, lend, lend}
	v := verbs[w.rand.IntN(len(verbs))]
	n := 1
	if w.rand.IntN(3) == 0 {
		n += w.rand.IntN(4)
	}
	if v == reset && w.rand.IntN(3) > 0 {
		v = take
	}
	j := w.store.pool.get(v, n)
	j.asks = j.asks[:0]
	for _, i := range w.rand.Perm(len(w.policies))[:n] {
		p := w.policies[i]
		key := string(rune('a' + w.rand.IntN(2)))
		a := ask{policy: p, key: w.store.names.name(p.ID(), []byte(key)), cost: 1}
		most := p.Limit.Capacity()
		switch v {
		case take, peek:
			if w.rand.IntN(2) == 0 {
				a.cost = within([]int64{0, 1, w.upTo(most), most, most + 1, algo.Max + 1}[w.rand.IntN(6)])
			}
			if w.rand.IntN(3) == 0 {
				a.slack = within(w.upTo([]int64{10, 1 << 20, 1 << 30, algo.Max}[w.rand.IntN(4)]))
			}
			a.shadow = w.rand.IntN(4) == 0
		case adjust:
			a.cost, a.at = w.upTo(most), w.now()
			if w.rand.IntN(2) == 0 {
				a.cost = -a.cost
			}
			for _, c := range w.charges {
				if c.policy == i && w.rand.IntN(3) == 0 {
					a.key, a.at, a.cost = c.key, c.at, w.upTo(3)-c.cost
				}
			}
		case lend:
			a.loan = algo.Loan{Want: w.upTo(most)}
			for k, l := range w.loans {
				if l.policy == i && w.rand.IntN(2) == 0 {
					used := w.upTo(l.grant.Units)
					a.key = l.key
					a.loan.Name, a.loan.Used, a.loan.Back = l.grant.Name, used, w.upTo(l.grant.Units-used)
					w.loans = slices.Delete(w.loans, k, k+1)
					break
				}
			}
		}
		j.asks = append(j.asks, a)
	}
	return j
}

func (w *walk) held(a *ask) *held {
	h := w.keys[a.key]
	if h == nil {
		h = new(held)
		w.keys[a.key] = h
	}
	if _, ok := w.before[a.key]; !ok && !w.dirty[a.key] {
		w.before[a.key] = *h
	}
	return h
}

// changed says that the key of an ask is to be written.
func (w *walk) changed(a *ask) {
	delete(w.before, a.key)
	w.dirty[a.key] = true
}

// compare lets the model do a job that the store has done.
func (w *walk) compare(n int, j *job) {
	switch j.verb {
	case take, peek:
		out := make([]weir.Verdict, len(j.asks))
		allowed := w.take(j, out)
		if allowed != j.allowed {
			w.Fatalf("step %d, job %d: allowed %v, want %v", w.step, n, j.allowed, allowed)
		}
		for i := range out {
			a := &j.asks[i]
			if got := j.answers[i].Verdict; got != out[i] {
				w.Fatalf("step %d, job %d, ask %d (verb %d, %v %+v, cost %d, slack %d):\n got %+v\nwant %+v",
					w.step, n, i, j.verb, a.policy.Limit.Algorithm, *a.policy.Params(), a.cost, a.slack, got, out[i])
			}
			if out[i].OK && j.verb == take && (allowed || a.shadow) && a.cost > 0 {
				w.charges = append(w.charges, charge{w.index(a.policy), a.key, out[i].At + out[i].Wait, a.cost})
			}
			w.last = out[i]
		}
		w.charges = w.charges[max(len(w.charges)-40, 0):]
	default:
		for i := range j.asks {
			g := w.change(j.verb, &j.asks[i])
			if j.verb != lend {
				continue
			}
			if got := j.answers[i].grant; got != g {
				w.Fatalf("step %d, job %d: lent %+v, want %+v", w.step, n, got, g)
			}
			if g.Units > 0 {
				w.loans = append(w.loans, loan{w.index(j.asks[i].policy), j.asks[i].key, g})
			}
		}
	}
}

func (w *walk) index(p *weir.Policy) int {
	var i int
	if _, err := fmt.Sscanf(p.Name, "policy%d", &i); err != nil {
		w.Fatal(err)
	}
	return i
}

// take is the contract of weir.Store.Take and Peek by algo alone.
func (w *walk) take(j *job, out []weir.Verdict) bool {
	now, allowed := w.now(), true
	next := make([]algo.State, len(j.asks))
	for i := range j.asks {
		a := &j.asks[i]
		var v algo.Verdict
		next[i], v = w.decide(a, now, a.cost, a.slack)
		out[i] = weir.VerdictOf(v, next[i].At)
		allowed = allowed && (v.OK || a.shadow)
	}
	for i := range j.asks {
		a, v, h := &j.asks[i], &out[i], w.held(&j.asks[i])
		switch p := a.policy.Params(); {
		case !v.OK:
		case j.verb == peek || !allowed && !a.shadow:
			_, free := w.decide(a, now, 0, a.slack)
			v.Remaining, v.Reset = free.Remaining, free.Reset
		case a.cost == 0:
		case p.Kind == algo.SlidingLog:
			h.state, w.logs[a.key] = algo.Record(p, next[i], w.logs[a.key], a.cost)
			w.changed(a)
		default:
			h.state = next[i]
			w.changed(a)
		}
	}
	return allowed
}

func (w *walk) decide(a *ask, now, cost, slack int64) (algo.State, algo.Verdict) {
	p, h := a.policy.Params(), w.held(a)
	if p.Kind == algo.SlidingLog {
		return algo.DecideLog(p, h.state, w.logs[a.key], now, cost)
	}
	if h.ledger != (algo.Ledger{}) {
		h.state, h.ledger = algo.Settle(p, h.state, h.ledger, now)
	}
	return algo.Decide(p, h.state, now, cost, slack)
}

func (w *walk) change(v verb, a *ask) (g weir.Grant) {
	p, h, now := a.policy.Params(), w.held(a), w.now()
	switch {
	case v == reset:
		w.changed(a)
		*h = held{}
		delete(w.logs, a.key)
	case v == lend && p.Kind == algo.SlidingLog:
		g.At = now
	case v == lend:
		out := h.ledger
		if out != (algo.Ledger{}) {
			_, out = algo.Settle(p, h.state, h.ledger, now)
		}
		h.state, h.ledger, g.Grant = algo.Lend(p, h.state, h.ledger, now, a.loan)
		g.At = h.state.At
		if g.Units > 0 || h.ledger != out || a.loan.Back > 0 && p.Kind != algo.Bucket {
			w.changed(a)
		}
	default:
		w.changed(a)
		switch p.Kind {
		case algo.SlidingLog:
			h.state, w.logs[a.key] = algo.AdjustLog(p, h.state, w.logs[a.key], now, a.at, a.cost)
		case algo.Bucket:
			h.state, h.ledger = algo.AdjustLent(p, h.state, h.ledger, now, a.at, a.cost)
		default:
			h.state = algo.Adjust(p, h.state, now, a.at, a.cost)
		}
	}
	return g
}

// states compares what Redis has stored. Keys that are gone must equal fresh ones, and
// are forgotten by the model too.
func (w *walk) states(jobs []*job) {
	for _, j := range jobs {
		for i := range j.asks {
			a := &j.asks[i]
			raw := w.wire.do(w.T, "GET", a.key)
			if w.keys[a.key] == nil {
				continue
			}
			h := w.held(a)
			kept := *h // for a look changes nothing
			want, v := w.decide(a, w.now(), 0, 0)
			if raw == "" {
				if v.Reset != 0 || h.ledger.Holds(w.now()) != 0 {
					w.Fatalf("step %d: the state of %v is gone for %v ticks too early", w.step, a.policy.Limit.Algorithm, v.Reset)
				}
				delete(w.keys, a.key)
				delete(w.logs, a.key)
				continue
			}
			w.stored(a, raw, want)
			*h = kept
		}
	}
}

func (w *walk) stored(a *ask, raw string, want algo.State) {
	p, h := a.policy.Params(), w.held(a)
	if p.Kind == algo.SlidingLog {
		got, at, used := entries(raw)
		s := algo.State{At: at, Used: used}
		s, _ = algo.DecideLog(p, s, got, w.now(), 0)
		if got, log := got[s.Prev:], w.logs[a.key][want.Prev:]; s.Used != want.Used || s.At != want.At || !slices.Equal(got, log) {
			w.Fatalf("step %d: log %+v %v, want %+v %v", w.step, s, got, want, log)
		}
		return
	}
	s, l, ok := state(raw)
	if !ok {
		w.Fatalf("step %d: cannot read %q", w.step, raw)
	}
	if l != (algo.Ledger{}) {
		s, l = algo.Settle(p, s, l, w.now())
	}
	s, _ = algo.Decide(p, s, w.now(), 0, 0)
	if s != want || l != h.ledger {
		w.Fatalf("step %d: %v %+v: stored %+v %+v, want %+v %+v", w.step, a.policy.Limit.Algorithm, *p, s, l, want, h.ledger)
	}
}

// entries reads a stored log.
func entries(raw string) (log []algo.Entry, at, used int64) {
	count := int(raw[0]) - isLog
	at, used, raw = word(raw[1:8]), word(raw[8:15]), raw[15:]
	for ; len(raw) > 0; raw = raw[wordLen+count:] {
		log = append(log, algo.Entry{At: word(raw[:wordLen]), N: word(raw[wordLen : wordLen+count])})
	}
	return log, at, used
}
