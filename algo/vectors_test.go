package algo_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirhq/weir/algo"
)

// The vectors are answers of exact models in fractions. Their nanoseconds are
// taken as ticks: nothing in algo depends on how long a tick is, so the answers
// must agree to the last digit. Buckets whose spans pass Max ticks are read in
// microseconds; their instants are whole ones.

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
	Tags   []string
	Config map[string]int64
	Ops    []op
}

func load(t testing.TB, model string) []sequence {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", "model-"+model+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Sequences []sequence }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Sequences) == 0 {
		t.Fatal("no sequences")
	}
	return file.Sequences
}

// models says how each model's configuration reads as Params.
var models = map[string]func(c map[string]int64) algo.Params{
	"token-bucket": func(c map[string]int64) algo.Params {
		return algo.Params{Kind: algo.Bucket, Cap: c["capacity"], Unit: c["refill_period_ns"], Drain: c["refill_tokens"]}
	},
	"gcra": func(c map[string]int64) algo.Params {
		return algo.Params{Kind: algo.Bucket, Cap: c["burst"], Unit: c["emission_interval_num"], Drain: c["emission_interval_den"]}
	},
	"leaky-meter": func(c map[string]int64) algo.Params {
		return algo.Params{Kind: algo.Bucket, Cap: c["capacity"], Unit: c["leak_period_ns"], Drain: c["leak_tokens"]}
	},
	"leaky-queue": func(c map[string]int64) algo.Params {
		return algo.Params{Kind: algo.Queue, Cap: c["max_queue"] + 1, Unit: c["rate_period_ns"], Drain: c["rate_tokens"]}
	},
	"fixed-window-epoch": func(c map[string]int64) algo.Params {
		return algo.Params{Kind: algo.FixedWindow, Cap: c["limit"], Window: c["window_ns"]}
	},
	"fixed-window-first": func(c map[string]int64) algo.Params {
		return algo.Params{Kind: algo.FirstWindow, Cap: c["limit"], Window: c["window_ns"]}
	},
	"sliding-counter": func(c map[string]int64) algo.Params {
		return algo.Params{Kind: algo.SlidingWindow, Cap: c["limit"], Window: c["window_ns"]}
	},
	"sliding-log": func(c map[string]int64) algo.Params {
		return algo.Params{Kind: algo.SlidingLog, Cap: c["limit"], Window: c["window_ns"], Step: 1}
	},
	"sliding-slices": func(c map[string]int64) algo.Params {
		return algo.Params{Kind: algo.SlidingLog, Cap: c["limit"], Window: c["window_ns"], Step: c["window_ns"] / c["slices"]}
	},
}

// key is everything one key's limit remembers, whatever the kind.
type key struct {
	p     algo.Params
	state algo.State
	log   []algo.Entry
}

// take decides and keeps the state, charged or not: a model remembers the
// latest instant it has seen from refusals too.
func (k *key) take(now, cost, slack int64) algo.Verdict {
	if k.p.Kind != algo.SlidingLog {
		var v algo.Verdict
		k.state, v = algo.Decide(&k.p, k.state, now, cost, slack)
		return v
	}
	s, v := algo.DecideLog(&k.p, k.state, k.log, now, cost)
	if k.state = s; v.OK {
		k.state, k.log = algo.Record(&k.p, s, k.log, cost)
	}
	return v
}

func TestModelVectors(t *testing.T) {
	for model, params := range models {
		t.Run(model, func(t *testing.T) {
			ops := 0
			for _, seq := range load(t, model) {
				t.Run(seq.Name, func(t *testing.T) {
					k, tick := key{p: params(seq.Config)}, int64(1)
					if k.p.Unit > 0 && slices.ContainsFunc(seq.Ops, func(o op) bool { return o.Reset > algo.Max }) {
						tick = 1000
						k.p.Unit /= tick
					}
					for i, o := range seq.Ops {
						if o.T%tick+o.Reset%tick+max(o.Retry, 0)%tick != 0 {
							t.Fatalf("op %d is not in whole ticks: %+v", i, o)
						}
						ops++
						var slack int64
						if o.Delay != nil {
							slack = algo.Max
						}
						v := k.take(o.T/tick, o.N, slack)
						wait := o.Retry
						if o.Allowed && o.Delay != nil {
							wait = *o.Delay
						}
						if wait > 0 {
							wait /= tick
						}
						if v.OK != o.Allowed || v.Remaining != o.Remaining || v.Wait != wait || v.Reset != o.Reset/tick {
							t.Fatalf("op %d at %d cost %d:\n got %+v\nwant %+v", i, o.T, o.N, v, o)
						}
					}
				})
			}
			if ops < 900 {
				t.Fatalf("only %d ops", ops)
			}
		})
	}
}

// TestRedisVectors holds the log to a sorted set of a real Redis. There a clock
// that steps back logs into the past; here an instant earlier than one already
// seen counts as the latest, so from such a step on only the rule that no more
// is allowed than Redis allowed is compared.
func TestRedisVectors(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", "redis-sliding-log.json"))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, seq := range file.Sequences {
		k := key{p: algo.Params{Kind: algo.SlidingLog, Cap: seq.Config.Limit, Window: seq.Config.WindowMillis * 1000, Step: 1}}
		var latest, redis, ours int64
		stepped := false
		for i, o := range seq.Ops {
			stepped = stepped || o.Now < latest
			latest = max(latest, o.Now)
			v := k.take(o.Now*1000, 1, 0)
			if o.Allowed {
				redis++
			}
			if v.OK {
				ours++
			}
			if stepped {
				if ours > redis {
					t.Fatalf("%s op %d: allowed %d, Redis %d", seq.Name, i, ours, redis)
				}
				continue
			}
			compared++
			if v.OK != o.Allowed || v.Remaining != max(seq.Config.Limit-o.Count, 0) || v.Wait != o.RetryAfterMillis*1000 {
				t.Fatalf("%s op %d at %d: got %+v, want %+v", seq.Name, i, o.Now, v, o)
			}
		}
	}
	if compared < 1400 {
		t.Fatalf("only %d ops compared", compared)
	}
}
