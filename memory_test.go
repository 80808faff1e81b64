package weir_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// handClock is a clock that tests move by hand.
type handClock struct{ micros atomic.Int64 }

func (c *handClock) Now() time.Time { return time.UnixMicro(c.micros.Load()) }
func (c *handClock) Sleep(ctx context.Context, d time.Duration) error {
	c.micros.Add(d.Microseconds())
	return ctx.Err()
}
func (c *handClock) set(seconds float64) { c.micros.Store(epoch + int64(seconds*1e6+0.5)) }

// epoch is aligned with every window the tests use.
const epoch = 1_700_006_400_000_000 / 3_600_000_000 * 3_600_000_000

func newClock() *handClock {
	c := new(handClock)
	c.set(0)
	return c
}

func policy(t testing.TB, l weir.Limit) *weir.Policy {
	t.Helper()
	p, err := weir.NewPolicy("rule", l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func takeOne(t testing.TB, s weir.Store, p *weir.Policy, key string, cost int64) weir.Verdict {
	t.Helper()
	var out [1]weir.Verdict
	slack := int64(0)
	if p.Limit.Algorithm == weir.LeakyQueue {
		slack = 1 << 62
	}
	if _, err := s.Take(context.Background(), []weir.Ask{{Policy: p, Key: []byte(key), Cost: cost, Slack: slack}}, out[:]); err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// TestMemoryAnswersTheVectors runs the exact models' sequences through Memory,
// one vector nanosecond being one microsecond: limits and answers scale with the
// tick, so they must agree to the last digit. Windows keep their alignment, as
// the sequence is moved by a multiple of its window.
func TestMemoryAnswersTheVectors(t *testing.T) {
	type config = map[string]int64
	tick := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	bucket := func(burst, quota, window int64) weir.Limit {
		return weir.Limit{Quota: quota, Window: tick(window), Burst: burst}
	}
	models := map[string]func(config) weir.Limit{
		"token-bucket": func(c config) weir.Limit { return bucket(c["capacity"], c["refill_tokens"], c["refill_period_ns"]) },
		"gcra": func(c config) weir.Limit {
			return bucket(c["burst"], c["emission_interval_den"], c["emission_interval_num"])
		},
		"leaky-meter": func(c config) weir.Limit { return bucket(c["capacity"], c["leak_tokens"], c["leak_period_ns"]) },
		"leaky-queue": func(c config) weir.Limit {
			return weir.Limit{Quota: c["rate_tokens"], Window: tick(c["rate_period_ns"]), Queue: c["max_queue"], Algorithm: weir.LeakyQueue}
		},
		"fixed-window-epoch": func(c config) weir.Limit {
			return weir.Limit{Quota: c["limit"], Window: tick(c["window_ns"]), Algorithm: weir.FixedWindow}
		},
		"fixed-window-first": func(c config) weir.Limit {
			return weir.Limit{Quota: c["limit"], Window: tick(c["window_ns"]), Algorithm: weir.FixedWindowFirst}
		},
		"sliding-counter": func(c config) weir.Limit {
			return weir.Limit{Quota: c["limit"], Window: tick(c["window_ns"]), Algorithm: weir.SlidingWindow}
		},
		"sliding-log": func(c config) weir.Limit {
			return weir.Limit{Quota: c["limit"], Window: tick(c["window_ns"]), Algorithm: weir.SlidingLog}
		},
		"sliding-slices": func(c config) weir.Limit {
			return weir.Limit{Quota: c["limit"], Window: tick(c["window_ns"]), Slices: int(c["slices"]), Algorithm: weir.SlidingSlices}
		},
	}
	for model, limit := range models {
		data, err := os.ReadFile(filepath.Join("testdata", "vectors", "model-"+model+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Sequences []struct {
				Name   string
				Config config
				Ops    []struct {
					T         int64 `json:"t_ns"`
					N         int64
					Allowed   bool
					Remaining int64
					Retry     int64  `json:"retry_after_ns"`
					Reset     int64  `json:"reset_after_ns"`
					Delay     *int64 `json:"delay_ns"`
				}
			}
		}
		if err := json.Unmarshal(data, &file); err != nil {
			t.Fatal(err)
		}
		t.Run(model, func(t *testing.T) {
			compared := 0
			for _, seq := range file.Sequences {
				scale, l := int64(1), limit(seq.Config)
				p, err := weir.NewPolicy("rule", l)
				if err != nil { // a span that would be centuries: read it in true microseconds
					scale = 1000
					for name, v := range seq.Config {
						if strings.HasSuffix(name, "_ns") || name == "emission_interval_num" {
							seq.Config[name] = v / scale
						}
					}
					l = limit(seq.Config)
					if p, err = weir.NewPolicy("rule", l); err != nil {
						t.Fatalf("%s: %v", seq.Name, err)
					}
				}
				window := l.Window.Microseconds()
				base := int64(0)
				if first := seq.Ops[0].T / scale; first > 1<<50 {
					base = first / window * window
				}
				clock := new(handClock)
				m := weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: 100})
				for i, o := range seq.Ops {
					if o.T/scale-base > algo.Max {
						break // beyond the year 2112 of the clock in use
					}
					compared++
					if (o.T%scale)+(o.Retry%scale)+(o.Reset%scale) > 0 {
						t.Fatalf("%s op %d is not in whole microseconds", seq.Name, i)
					}
					clock.micros.Store(o.T/scale - base)
					v := takeOne(t, m, p, "key", o.N)
					delay, retry := int64(0), o.Retry/scale
					if o.Retry < 0 {
						retry = -1
					}
					if o.Delay != nil {
						delay = *o.Delay
					}
					if v.OK != o.Allowed || v.Remaining != o.Remaining || v.Retry != retry || v.Reset != o.Reset/scale || v.Wait != delay/scale {
						t.Fatalf("%s op %d at %d cost %d:\n got %+v\nwant %+v", seq.Name, i, o.T, o.N, v, o)
					}
				}
			}
			if compared < 900 {
				t.Fatalf("only %d ops compared", compared)
			}
		})
	}
}

// Case B15: the first requests of a key, all at once.
func TestFreshKeysAreNotDoubled(t *testing.T) {
	m := weir.NewMemory(weir.MemoryOptions{})
	p := policy(t, weir.Limit{Quota: 5, Window: time.Minute, Algorithm: weir.SlidingLog})
	const keys, callers = 300, 50
	var allowed atomic.Int64
	for k := range keys {
		key := fmt.Sprintf("fresh-%d", k)
		var ready, done sync.WaitGroup
		start := make(chan struct{})
		for range callers {
			ready.Add(1)
			done.Add(1)
			go func() {
				defer done.Done()
				ready.Done()
				<-start
				if takeOne(t, m, p, key, 1).OK {
					allowed.Add(1)
				}
			}()
		}
		ready.Wait()
		close(start)
		done.Wait()
	}
	if got := allowed.Load(); got != 5*keys {
		t.Fatalf("allowed %d, want %d", got, 5*keys)
	}
}

// Case B36, S10, S37: a flood of keys neither frees a spent key nor goes unchecked.
func TestAFloodOfKeysRefreshesNobody(t *testing.T) {
	for _, l := range []weir.Limit{
		{Quota: 5, Window: time.Minute, Algorithm: weir.SlidingLog},
		{Quota: 5, Window: time.Minute},
		{Quota: 5, Window: time.Minute, Algorithm: weir.SlidingWindow},
	} {
		t.Run(l.Algorithm.String(), func(t *testing.T) {
			clock := newClock()
			m := weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: 1000})
			p := policy(t, l)
			for range 5 {
				if !takeOne(t, m, p, "K", 1).OK {
					t.Fatal("K is refused before its quota is spent")
				}
			}
			for i := range 5000 {
				clock.set(1 + float64(i)/5000)
				takeOne(t, m, p, fmt.Sprintf("other-%d", i), 1)
			}
			clock.set(3)
			if takeOne(t, m, p, "K", 1).OK {
				t.Error("the flood has freed K")
			}
			clock.set(4)
			fresh := 0
			for range 10 {
				if takeOne(t, m, p, "N", 1).OK {
					fresh++
				}
			}
			if fresh > 5 {
				t.Errorf("a new key was allowed %d of a quota of 5", fresh)
			}
			st := m.Stats()
			if st.Keys > 1000 || st.MaxKeys != 1000 {
				t.Errorf("%+v: more than 1000 keys", st)
			}
			if st.Overflow == 0 {
				t.Error("the overflow was not counted")
			}
			clock.set(200)
			m.Sweep()
			if st := m.Stats(); st.Keys != 0 {
				t.Errorf("%d keys are left after all have expired", st.Keys)
			}
		})
	}
}

// Case S21: keys whose window is over are forgotten by the calls that follow.
func TestOldKeysAreForgotten(t *testing.T) {
	clock := newClock()
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: 10_000})
	p := policy(t, weir.PerSecond(10))
	for i := range 200_000 {
		clock.set(float64(i) / 1000)
		if !takeOne(t, m, p, fmt.Sprint(i), 1).OK {
			t.Fatalf("key %d is refused", i)
		}
	}
	// A key matters for 100 ms, is left alone for 2 s more, and then until the sweep
	// comes round: at 1000 keys a second, a bound far below the 200,000 that came.
	if st := m.Stats(); st.Keys > 6000 || st.Overflow != 0 {
		t.Fatalf("%+v", st)
	}
}

// TestManyKeysKeepTheirOwnState holds the table to a map, through growth,
// removal and collisions of homes.
func TestManyKeysKeepTheirOwnState(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	clock := newClock()
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: 50_000})
	p := policy(t, weir.Limit{Quota: 3, Window: 100 * time.Second, Algorithm: weir.FixedWindow})
	used := make(map[string]int64)
	for i := range 200_000 {
		if i%50_000 == 0 {
			clear(used)
			clock.set(float64(i / 50_000 * 100))
			if i > 50_000 {
				m.Sweep()
			}
		}
		key := fmt.Sprint(r.IntN(30_000))
		want := used[key] < 3
		if r.IntN(20) == 0 {
			if err := m.Reset(context.Background(), []weir.Ask{{Policy: p, Key: []byte(key)}}); err != nil {
				t.Fatal(err)
			}
			delete(used, key)
			continue
		}
		if v := takeOne(t, m, p, key, 1); v.OK != want || v.OK && v.Remaining != 3-used[key]-1 {
			t.Fatalf("step %d key %s used %d: %+v", i, key, used[key], v)
		} else if v.OK {
			used[key]++
		}
	}
	if st := m.Stats(); st.Overflow != 0 {
		t.Fatalf("%+v", st)
	}
}

// Case B43: a refused request is charged to nobody, whoever asks at once.
func TestRefusedSpendsNothing(t *testing.T) {
	clock := newClock()
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	wide, _ := weir.NewPolicy("wide", weir.PerHour(100))
	tight, _ := weir.NewPolicy("tight", weir.PerHour(10))
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			asks := []weir.Ask{{Policy: wide, Cost: 1}, {Policy: tight, Cost: 1}}
			if g%2 == 0 {
				asks[0], asks[1] = asks[1], asks[0]
			}
			for range 100 {
				out := make([]weir.Verdict, 2)
				if ok, _ := m.Take(context.Background(), asks, out); ok {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 10 {
		t.Errorf("allowed %d, want 10", allowed.Load())
	}
	out := make([]weir.Verdict, 1)
	if _, err := m.Peek(context.Background(), []weir.Ask{{Policy: wide, Cost: 1}}, out); err != nil || out[0].Remaining != 90 {
		t.Errorf("the wide limit has %d left, want 90 (%v)", out[0].Remaining, err)
	}
}
