package weirrueidis_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirredis/clienttest"
	"github.com/weirhq/weir/weirtest"
)

// models says how each model's configuration reads as a limit, with its spans in ticks.
var models = map[string]func(c map[string]int64) (l weir.Limit, window int64){
	"token-bucket": func(c map[string]int64) (weir.Limit, int64) {
		return weir.Limit{Quota: c["refill_tokens"], Burst: c["capacity"]}, c["refill_period_ns"]
	},
	"gcra": func(c map[string]int64) (weir.Limit, int64) {
		return weir.Limit{Quota: c["emission_interval_den"], Burst: c["burst"]}, c["emission_interval_num"]
	},
	"leaky-meter": func(c map[string]int64) (weir.Limit, int64) {
		return weir.Limit{Quota: c["leak_tokens"], Burst: c["capacity"]}, c["leak_period_ns"]
	},
	"leaky-queue": func(c map[string]int64) (weir.Limit, int64) {
		return weir.Limit{Quota: c["rate_tokens"], Queue: c["max_queue"], Algorithm: weir.LeakyQueue}, c["rate_period_ns"]
	},
	"fixed-window-epoch": func(c map[string]int64) (weir.Limit, int64) {
		return weir.Limit{Quota: c["limit"], Algorithm: weir.FixedWindow}, c["window_ns"]
	},
	"fixed-window-first": func(c map[string]int64) (weir.Limit, int64) {
		return weir.Limit{Quota: c["limit"], Algorithm: weir.FixedWindowFirst}, c["window_ns"]
	},
	"sliding-counter": func(c map[string]int64) (weir.Limit, int64) {
		return weir.Limit{Quota: c["limit"], Algorithm: weir.SlidingWindow}, c["window_ns"]
	},
	"sliding-log": func(c map[string]int64) (weir.Limit, int64) {
		return weir.Limit{Quota: c["limit"], Algorithm: weir.SlidingLog}, c["window_ns"]
	},
	"sliding-slices": func(c map[string]int64) (weir.Limit, int64) {
		return weir.Limit{Quota: c["limit"], Slices: int(c["slices"]), Algorithm: weir.SlidingSlices}, c["window_ns"]
	},
}

type op struct {
	T         int64  `json:"t_ns"`
	N         int64  `json:"n"`
	Allowed   bool   `json:"allowed"`
	Remaining int64  `json:"remaining"`
	Retry     int64  `json:"retry_after_ns"`
	Reset     int64  `json:"reset_after_ns"`
	Delay     *int64 `json:"delay_ns"`
}

type sequence struct {
	Name   string
	Config map[string]int64
	Ops    []op
}

func vectors(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile("../testdata/vectors/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// desk is one key of a store on a real Redis, decided by a clock that is moved by hand.
type desk struct {
	store  *weirredis.Store
	clock  *weirtest.Clock
	policy *weir.Policy
}

// desks opens desks on one server, which know nothing of each other.
func desks(t *testing.T) func(t *testing.T, l weir.Limit) *desk {
	c := open(t, clienttest.Where{Addresses: []string{redistest.Single(t).Addr}})
	t.Cleanup(c.Close)
	n := 0
	return func(t *testing.T, l weir.Limit) *desk {
		t.Helper()
		n++
		clock := new(weirtest.Clock)
		return &desk{clock: clock, policy: policy(t, "vector", l),
			store: weirredis.New(c, weirredis.Options{Prefix: fmt.Sprint(n), Clock: clock, Timeout: time.Minute})}
	}
}

// take asks for n units at a tick of the Unix epoch.
func (d *desk) take(t *testing.T, at, n, slack int64) weir.Verdict {
	t.Helper()
	d.clock.Set(time.Duration(at-weirtest.StartUnix*1e6) * time.Microsecond)
	out := make([]weir.Verdict, 1)
	if _, err := d.store.Take(t.Context(), []weir.Ask{{Policy: d.policy, Key: []byte("k"), Cost: n, Slack: slack}}, out); err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// place is where a sequence lies on a store's clock: its nanoseconds are taken as ticks
// of a microsecond, since nothing depends on how long a tick is, and moved by whole
// windows to the start of the test clock. A sequence of whole microseconds that is too
// long for this, or has too long a limit, is read in them.
type place struct{ tick, move int64 }

func (p place) at(o op) int64 { return o.T/p.tick + p.move }
func (p place) span(ns int64) int64 {
	if ns < 0 {
		return algo.Never
	}
	return ns / p.tick
}

// can is whether a store's clock and answers reach an op.
func (p place) can(o op) bool {
	at := p.at(o)
	return at >= 0 && at < algo.Max && max(o.Reset, o.Retry)/p.tick < algo.Max
}

func placed(seq *sequence, limit func(map[string]int64) (weir.Limit, int64)) (weir.Limit, place) {
	l, window := limit(seq.Config)
	p := place{tick: 1}
	whole := window%1000 == 0
	for _, o := range seq.Ops {
		whole = whole && o.T%1000 == 0 && o.Reset%1000 == 0 && max(o.Retry, 0)%1000 == 0
	}
	start := int64(weirtest.StartUnix * 1e6)
	p.move = (start - seq.Ops[0].T) / window * window
	far := func(o op) bool { return !p.can(o) }
	if whole && slices.ContainsFunc(seq.Ops, far) {
		p, window = place{tick: 1000}, window/1000
	}
	l.Window = time.Duration(window) * time.Microsecond
	return l, p
}

// Redis answers as the models do, in all digits. A model remembers the latest instant that
// it has seen, Redis that of the latest charge: from a step back behind a refusal on, they
// are held only to the rule that no more is allowed.
func TestModelVectors(t *testing.T) {
	desk := desks(t)
	for model, limit := range models {
		t.Run(model, func(t *testing.T) {
			var file struct{ Sequences []sequence }
			vectors(t, "model-"+model+".json", &file)
			ops, compared := 0, 0
			for _, seq := range file.Sequences {
				t.Run(seq.Name, func(t *testing.T) {
					l, p := placed(&seq, limit)
					d := desk(t, l)
					var slack, latest, charged, ours, theirs int64
					if l.Algorithm == weir.LeakyQueue {
						slack = algo.Max
					}
					blind := false
					for i, o := range seq.Ops {
						ops++
						if !p.can(o) {
							t.Logf("%d ops of %d; the rest is further away than a clock of 52 bits", i, len(seq.Ops))
							ops += len(seq.Ops) - i - 1
							break
						}
						at := p.at(o)
						blind = blind || at < latest && charged < latest
						latest = max(latest, at)
						v := d.take(t, at, o.N, slack)
						if v.OK {
							ours += o.N
						}
						if o.Allowed {
							theirs, charged = theirs+o.N, latest
						}
						if blind {
							if ours > theirs {
								t.Fatalf("op %d at %d: %d units are allowed, by the model %d", i, o.T, ours, theirs)
							}
							continue
						}
						compared++
						wait := int64(0)
						if o.Allowed && o.Delay != nil {
							wait = p.span(*o.Delay)
						}
						if v.OK != o.Allowed || v.Remaining != o.Remaining || v.Wait != wait || v.Retry != p.span(o.Retry) || v.Reset != p.span(o.Reset) {
							t.Fatalf("op %d at %d cost %d of %+v:\n got %+v\nwant %+v", i, o.T, o.N, l, v, o)
						}
					}
					if s := d.store.Stats(); s.Mirror != 0 {
						t.Errorf("the script was not the arithmetic: %+v", s)
					}
				})
			}
			t.Logf("%d ops of %d compared", compared, ops)
			if compared < ops*9/10 || compared < 800 {
				t.Errorf("only %d ops of %d compared", compared, ops)
			}
		})
	}
}

// A sorted set of a real Redis logs into the past when the clock steps back; from there
// on only the rule that no more is allowed is compared.
func TestRedisVectors(t *testing.T) {
	var file struct {
		Sequences []struct {
			Name   string
			Config struct{ Limit, WindowMillis int64 }
			Ops    []struct {
				Now              int64
				Allowed          bool
				Count            int64
				RetryAfterMillis int64
			}
		}
	}
	vectors(t, "redis-sliding-log.json", &file)
	desk := desks(t)
	compared := 0
	for _, seq := range file.Sequences {
		d := desk(t, weir.Limit{Quota: seq.Config.Limit, Window: time.Duration(seq.Config.WindowMillis) * time.Millisecond, Algorithm: weir.SlidingLog})
		var latest, theirs, ours int64
		stepped := false
		for i, o := range seq.Ops {
			stepped = stepped || o.Now < latest
			latest = max(latest, o.Now)
			v := d.take(t, o.Now*1000, 1, 0)
			if o.Allowed {
				theirs++
			}
			if v.OK {
				ours++
			}
			if stepped {
				if ours > theirs {
					t.Fatalf("%s op %d: allowed %d, the set %d", seq.Name, i, ours, theirs)
				}
				continue
			}
			compared++
			if v.OK != o.Allowed || v.Remaining != max(seq.Config.Limit-o.Count, 0) || v.Retry != o.RetryAfterMillis*1000 {
				t.Fatalf("%s op %d at %d: got %+v, want %+v", seq.Name, i, o.Now, v, o)
			}
		}
	}
	if compared < 1400 {
		t.Fatalf("only %d ops compared", compared)
	}
}
