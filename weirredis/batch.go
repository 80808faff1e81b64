package weirredis

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// batch is what one call of the script decides: requests in their order, on keys that
// are each named once. It is written as
//
//	policies: their number in 2 bytes, and for each the kind in 1 byte and Cap, Unit,
//	          Drain, Window, Step and the Life of its loans in 7 bytes each
//	requests: 5 bytes of verb, a, b
//	  take, peek   a: how many asks, b: how many equal requests of one ask. Each ask has
//	               5 bytes of key, policy, flags: 1 is shadow; above 1, cost and slack
//	               follow in 7 bytes each, and else are 1 and 0
//	  others       a: the policy, b: the key
//	  adjust       7 bytes of the charge's instant, 1 if the delta is negative, 7 of it
//	  lend         Want, Name, Used and Back in 7 bytes each
//
// where keys and policies are their places, and all that has no length given has 2
// bytes, little-endian. Wide numbers have 7 bytes, since 8 are more than a double holds.
type batch struct {
	keys     []string
	index    map[string]int
	latest   []int // by key: the request that may be joined, -1 if that is none
	policies []*weir.Policy
	indexOf  map[*weir.Policy]int
	requests []request
	jobs     int
	text     []byte
}

// request is a run of equal jobs: of one ask each, or a single one.
type request struct {
	first, last *job
	times       int
}

const (
	maxKeys  = 4000 // of a call; Lua's unpack has 8000 places
	maxTimes = 1 << 15
)

func (b *batch) clear() {
	clear(b.index)
	clear(b.indexOf)
	clear(b.policies)
	clear(b.requests)
	clear(b.keys)
	b.keys, b.latest, b.policies, b.requests = b.keys[:0], b.latest[:0], b.policies[:0], b.requests[:0]
	b.jobs, b.text = 0, b.text[:0]
}

func newBatch() *batch {
	return &batch{index: make(map[string]int), indexOf: make(map[*weir.Policy]int)}
}

// add joins a job to an equal one that came just before it on the same key, or appends
// it. What joins moves ahead of requests of other keys only, which it cannot touch.
func (b *batch) add(j *job) {
	b.jobs++
	single := len(j.asks) == 1 && j.verb <= peek
	if single {
		if k, ok := b.index[j.asks[0].key]; ok && b.latest[k] >= 0 {
			r := &b.requests[b.latest[k]]
			if f := r.first; f.verb == j.verb && f.asks[0] == j.asks[0] && r.times < maxTimes {
				r.last.next, r.last = j, j
				r.times++
				return
			}
		}
	}
	at := len(b.requests)
	b.requests = append(b.requests, request{first: j, last: j, times: 1})
	for i := range j.asks {
		k := b.key(j.asks[i].key)
		b.latest[k] = -1
		if single {
			b.latest[k] = at
		}
	}
}

func (b *batch) key(name string) int {
	k, ok := b.index[name]
	if !ok {
		k = len(b.keys)
		b.index[name] = k
		b.keys = append(b.keys, name)
		b.latest = append(b.latest, -1)
	}
	return k
}

func (b *batch) policy(p *weir.Policy) int {
	i, ok := b.indexOf[p]
	if !ok {
		i = len(b.policies)
		b.indexOf[p] = i
		b.policies = append(b.policies, p)
	}
	return i
}

const (
	flagShadow = 1
	flagCosts  = 2
)

// encode writes the batch for the script.
func (b *batch) encode() string {
	for _, r := range b.requests {
		for i := range r.first.asks {
			b.policy(r.first.asks[i].policy)
		}
	}
	t := appendWord(b.text[:0], int64(len(b.policies)), 2)
	for _, p := range b.policies {
		q := p.Params()
		t = append(t, byte(q.Kind))
		for _, v := range [...]int64{q.Cap, q.Unit, q.Drain, q.Window, q.Step, q.Lending().Life} {
			t = appendWord(t, v, wordLen)
		}
	}
	for _, r := range b.requests {
		j := r.first
		if j.verb <= peek {
			t = head(t, j.verb, len(j.asks), r.times)
			for i := range j.asks {
				t = b.encodeAsk(t, &j.asks[i])
			}
			continue
		}
		for i := range j.asks {
			a := &j.asks[i]
			t = head(t, j.verb, b.policy(a.policy), b.key(a.key))
			switch j.verb {
			case adjust:
				t = appendWord(t, a.at, wordLen)
				negative, delta := byte(0), a.cost
				if delta < 0 {
					negative, delta = 1, -delta
				}
				t = appendWord(append(t, negative), delta, wordLen)
			case lend:
				for _, v := range [...]int64{a.loan.Want, a.loan.Name, a.loan.Used, a.loan.Back} {
					t = appendWord(t, v, wordLen)
				}
			}
		}
	}
	b.text = t
	return string(t)
}

func head(dst []byte, v verb, a, b int) []byte {
	return append(dst, byte(v), byte(a), byte(a>>8), byte(b), byte(b>>8))
}

func (b *batch) encodeAsk(t []byte, a *ask) []byte {
	k, p := b.key(a.key), b.policy(a.policy)
	flags := byte(0)
	if a.shadow {
		flags |= flagShadow
	}
	if a.cost != 1 || a.slack != 0 {
		flags |= flagCosts
	}
	t = append(t, byte(k), byte(k>>8), byte(p), byte(p>>8), flags)
	if flags&flagCosts != 0 {
		t = appendWord(appendWord(t, a.cost, wordLen), a.slack, wordLen)
	}
	return t
}

// within brings a number to where algo bounds it anyway, one past Max meaning beyond it.
func within(n int64) int64 { return min(max(n, 0), algo.Max+1) }
