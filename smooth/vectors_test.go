package smooth_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/smooth"
)

// The vectors were recorded from Guava 31.1 on a clock of their own. Every answer
// and every state has to agree to the last bit.

// number is a float64 that may be written "NaN", "Infinity" or "-Infinity".
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	switch s := string(b); s {
	case `"NaN"`:
		*n = number(math.NaN())
	case `"Infinity"`:
		*n = number(math.Inf(1))
	case `"-Infinity"`:
		*n = number(math.Inf(-1))
	default:
		return json.Unmarshal(b, (*float64)(n))
	}
	return nil
}

type op struct {
	Op            string
	Permits       int64
	Micros        int64
	TimeoutMicros *int64
	TimeoutNanos  *int64
	Rate          number `json:"permitsPerSecond"`
	Want          json.RawMessage
	WantSleep     int64
	WantError     string
	St            [4]json.RawMessage // clock, stored, max, next
}

type scenario struct {
	Name    string
	Limiter struct {
		Kind               string
		Rate               number `json:"permitsPerSecond"`
		MaxBurstSeconds    number
		WarmupMicros       int64
		ColdFactor         number
		StartMicros        int64
		SleepAdvancesClock bool
	}
	WantCreateError string
	Ops             []op
}

func load(t testing.TB, name string) []scenario {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		ScenarioCount int
		Scenarios     []scenario
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Scenarios) != file.ScenarioCount || len(file.Scenarios) == 0 {
		t.Fatalf("%s holds %d scenarios, and says %d", name, len(file.Scenarios), file.ScenarioCount)
	}
	return file.Scenarios
}

func read[T any](t testing.TB, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func sameBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// pace makes what the scenario describes.
func (sc *scenario) pace(t testing.TB) (smooth.Pace, error) {
	l := &sc.Limiter
	switch l.Kind {
	case "SmoothBursty":
		return smooth.Bursty(float64(l.Rate), float64(l.MaxBurstSeconds))
	case "SmoothWarmingUp":
		return smooth.WarmingUp(float64(l.Rate), l.WarmupMicros, float64(l.ColdFactor))
	}
	t.Fatalf("unknown kind %q", l.Kind)
	panic("unreachable")
}

// runPace runs the scenario on the pure functions. A call that smooth refuses
// and Guava accepts ends it; its error is returned.
func runPace(t *testing.T, sc *scenario) error {
	p, err := sc.pace(t)
	if sc.WantCreateError != "" {
		if err == nil {
			t.Errorf("made, but Guava says %q", sc.WantCreateError)
		}
		return err
	}
	if err != nil {
		return err
	}
	now := sc.Limiter.StartMicros
	s := p.Fresh(now)
	sleep := func(wait int64) {
		if sc.Limiter.SleepAdvancesClock {
			now += wait
		}
	}
	for i := range sc.Ops {
		o := &sc.Ops[i]
		switch o.Op {
		case "advance":
			now += o.Micros
		case "acquire":
			after, wait := p.Reserve(s, now, o.Permits)
			if o.WantError != "" {
				if after != p.Resync(s, now) {
					t.Errorf("op %d: %d permits change the state from %+v to %+v", i, o.Permits, s, after)
				}
				break
			}
			s = after
			if want := read[int64](t, o.Want); wait != want {
				t.Errorf("op %d: acquire(%d) waits %d, want %d", i, o.Permits, wait, want)
			}
			sleep(wait)
		case "tryAcquire":
			if o.WantError != "" {
				break // what is below 1 is refused by the Limiter
			}
			timeout := int64(0)
			if o.TimeoutNanos != nil {
				timeout = time.Duration(*o.TimeoutNanos).Microseconds()
			} else {
				timeout = *o.TimeoutMicros
			}
			ok, wait := s.Grants(now, timeout), int64(0)
			if ok {
				s, wait = p.Reserve(s, now, o.Permits)
			}
			if want := read[bool](t, o.Want); ok != want || wait != o.WantSleep {
				t.Errorf("op %d: tryAcquire(%d, %d) = %v after %d, want %v after %d", i, o.Permits, timeout, ok, wait, want, o.WantSleep)
			}
			sleep(wait)
		case "setRate":
			to, err := p.WithRate(float64(o.Rate))
			if o.WantError != "" {
				if err == nil {
					t.Errorf("op %d: rate %v accepted, but Guava says %q", i, o.Rate, o.WantError)
				}
				break
			}
			if err != nil {
				return err
			}
			s, p = p.Change(to, s, now), to
		case "getRate":
			if want := float64(read[number](t, o.Want)); !sameBits(p.Rate(), want) {
				t.Errorf("op %d: rate %v, want %v", i, p.Rate(), want)
			}
		default:
			t.Fatalf("op %d: unknown %q", i, o.Op)
		}
		wantNow, wantNext := read[int64](t, o.St[0]), read[int64](t, o.St[3])
		wantStored, wantMax := float64(read[number](t, o.St[1])), float64(read[number](t, o.St[2]))
		if now != wantNow || s.Next != wantNext || !sameBits(s.Stored, wantStored) || !sameBits(s.Max, wantMax) {
			t.Fatalf("op %d %s: at %d %+v, want at %d {Next:%d Stored:%v Max:%v}", i, o.Op, now, s, wantNow, wantNext, wantStored, wantMax)
		}
	}
	return nil
}

// tape is a clock that stands still but for the sleeps of a scenario.
type tape struct {
	now    time.Time
	sleeps bool // move the clock
	slept  time.Duration
}

func newTape() *tape { return &tape{now: time.Unix(1_700_000_000, 0), sleeps: true} }

func (c *tape) Now() time.Time { return c.now }

func (c *tape) Sleep(ctx context.Context, d time.Duration) error {
	c.slept += d
	if c.sleeps {
		c.now = c.now.Add(d)
	}
	return ctx.Err()
}

func (sc *scenario) limiter(c smooth.Clock) (*smooth.Limiter, error) {
	l := &sc.Limiter
	if l.Kind == "SmoothWarmingUp" {
		return smooth.NewWarmingUp(float64(l.Rate), smooth.Options{
			WarmUp: time.Duration(l.WarmupMicros) * time.Microsecond, ColdFactor: float64(l.ColdFactor), Clock: c,
		})
	}
	return smooth.NewBursty(float64(l.Rate), smooth.Options{
		MaxBurst: time.Duration(float64(l.MaxBurstSeconds) * 1e9), NoBurst: l.MaxBurstSeconds == 0, Clock: c,
	})
}

// runLimiter runs the scenario on a Limiter. Its clock begins at another
// instant, since only differences count.
func runLimiter(t *testing.T, sc *scenario) {
	c := newTape()
	c.sleeps = sc.Limiter.SleepAdvancesClock
	l, err := sc.limiter(c)
	if err != nil {
		t.Fatal(err)
	}
	us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
	refused := func(i int, err error) {
		t.Helper()
		if want := new(smooth.ArgumentError); !errors.As(err, &want) {
			t.Errorf("op %d: error %v, want an ArgumentError", i, err)
		}
	}
	for i := range sc.Ops {
		o := &sc.Ops[i]
		c.slept = 0
		switch o.Op {
		case "advance":
			c.now = c.now.Add(us(o.Micros))
		case "acquire":
			waited, err := l.Acquire(t.Context(), int(o.Permits))
			if o.WantError != "" {
				refused(i, err)
				break
			}
			if want := us(read[int64](t, o.Want)); err != nil || waited != want || c.slept != want {
				t.Fatalf("op %d: Acquire(%d) = %v, %v, slept %v, want %v", i, o.Permits, waited, err, c.slept, want)
			}
		case "tryAcquire":
			var timeout time.Duration
			switch {
			case o.TimeoutNanos != nil:
				timeout = time.Duration(*o.TimeoutNanos)
			case *o.TimeoutMicros > math.MaxInt64/1000:
				timeout = math.MaxInt64
			default:
				timeout = us(*o.TimeoutMicros)
			}
			ok, err := l.TryAcquire(int(o.Permits), timeout)
			if o.WantError != "" {
				refused(i, err)
				break
			}
			if want := read[bool](t, o.Want); err != nil || ok != want || c.slept != us(o.WantSleep) {
				t.Fatalf("op %d: TryAcquire(%d, %v) = %v, %v, slept %v, want %v, slept %v", i, o.Permits, timeout, ok, err, c.slept, want, us(o.WantSleep))
			}
		case "setRate":
			if err := l.SetRate(float64(o.Rate)); o.WantError != "" {
				refused(i, err)
			} else if err != nil {
				t.Fatalf("op %d: %v", i, err)
			}
		case "getRate":
			if want := float64(read[number](t, o.Want)); !sameBits(l.Rate(), want) {
				t.Fatalf("op %d: Rate() = %v, want %v", i, l.Rate(), want)
			}
		}
	}
}

func TestGuavaAnswersBitForBit(t *testing.T) {
	for _, name := range []string{"guava-bursty.json", "guava-warmup.json"} {
		for _, sc := range load(t, name) {
			t.Run(sc.Name, func(t *testing.T) {
				if err := runPace(t, &sc); err != nil {
					t.Error(err)
				}
				runLimiter(t, &sc)
			})
		}
	}
}

// An edge scenario is one of these.
const (
	copied        = "copied"               // Guava's answers, by Pace and Limiter
	corePace      = "copied by Pace"       // likewise; its times do not fit a Duration
	alike         = "refused by Guava too" // with an ArgumentError
	rateRefused   = "refused: rate"        // Guava goes on, with infinite or no prices
	burstRefused  = "refused: burst"       // Guava goes on, with infinite or negative permits
	warmUpRefused = "refused: warm-up"     // Guava goes on, with NaN permits
	factorRefused = "refused: cold factor" // Guava goes on, faster when cold
)

var edges = map[string]string{
	"edge/bursty-rate-1000000":             copied,
	"edge/bursty-rate-700000":              copied,
	"edge/bursty-rate-999999":              copied,
	"edge/bursty-rate-1000001":             copied,
	"edge/bursty-rate-2000000":             copied,
	"edge/bursty-rate-1000000000":          copied,
	"edge/bursty-rate-1000000000000":       copied,
	"edge/bursty-rate-3-truncation":        copied,
	"edge/bursty-rate-4.9E-324":            rateRefused,
	"edge/bursty-rate-1.0E-300":            corePace,
	"edge/bursty-rate-1.0E-9":              copied,
	"edge/bursty-rate-1.0E-12":             corePace,
	"edge/bursty-max-int-permits":          corePace,
	"edge/bursty-infinite-rate":            rateRefused,
	"edge/bursty-set-infinite-then-finite": rateRefused,
	"edge/bursty-errors":                   copied,
	"edge/warmup-errors":                   copied,
	"edge/bursty-create-0":                 alike,
	"edge/warmup-create-0":                 alike,
	"edge/bursty-create--1":                alike,
	"edge/warmup-create--1":                alike,
	"edge/bursty-create-NaN":               alike,
	"edge/warmup-create-NaN":               alike,
	"edge/bursty-create--Infinity":         alike,
	"edge/warmup-create--Infinity":         alike,
	"edge/bursty-timeout-nanos":            copied,
	"edge/bursty-negative-burst-window":    burstRefused,
	"edge/bursty-infinite-burst-window":    burstRefused,
	"edge/bursty-huge-burst-window":        copied,
	"edge/bursty-clock-steps-back":         copied,
	"edge/bursty-clock-near-max":           corePace,
	"edge/warmup-zero":                     warmUpRefused,
	"edge/warmup-zero-blocking":            warmUpRefused,
	"edge/warmup-zero-start-nonzero":       warmUpRefused,
	"edge/warmup-1us":                      copied,
	"edge/warmup-1us-1000000":              copied,
	"edge/warmup-10-years":                 copied,
	"edge/warmup-rate-2000000":             copied,
	"edge/warmup-rate-1000000000":          copied,
	"edge/warmup-infinite-rate":            rateRefused,
	"edge/warmup-cold-factor-0.5":          factorRefused,
	"edge/warmup-max-int-permits":          corePace,
}

func TestEachEdgeIsCopiedOrRefusedOnPurpose(t *testing.T) {
	scenarios := load(t, "guava-edge.json")
	if len(scenarios) != len(edges) {
		t.Errorf("%d scenarios, %d of them with a verdict", len(scenarios), len(edges))
	}
	for _, sc := range scenarios {
		t.Run(strings.TrimPrefix(sc.Name, "edge/"), func(t *testing.T) {
			verdict, ok := edges[sc.Name]
			if !ok {
				t.Fatal("has no verdict")
			}
			err := runPace(t, &sc)
			switch verdict {
			case copied, corePace:
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				if verdict == copied {
					runLimiter(t, &sc)
				}
				return
			case alike:
				if sc.WantCreateError == "" {
					t.Fatal("Guava accepts it")
				}
				verdict = rateRefused
			}
			wrong := new(smooth.ArgumentError)
			if !errors.As(err, &wrong) || verdict != "refused: "+wrong.Name {
				t.Errorf("error %v, want %s", err, verdict)
			}
		})
	}
}
