package smooth_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/smooth"
)

const (
	ms  = 1000 // ticks
	sec = 1000 * ms
)

func bursty(t testing.TB, rate, burst float64) smooth.Pace {
	t.Helper()
	p, err := smooth.Bursty(rate, burst)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func warming(t testing.TB, rate float64, warmUp int64, factor float64) smooth.Pace {
	t.Helper()
	p, err := smooth.WarmingUp(rate, warmUp, factor)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A step reserves n permits at an instant if they are granted within timeout.
type step struct {
	at, n, timeout int64
	ok             bool
	wait           int64
}

const patient = math.MaxInt64

func TestReserve(t *testing.T) {
	for _, c := range []struct {
		name  string
		pace  smooth.Pace
		steps []step
	}{
		{"each call pays for the one before it", bursty(t, 2, 1), []step{
			{0, 1, 0, true, 0},
			{0, 3, patient, true, 500 * ms},
			{0, 1, patient, true, 2 * sec},
			{2500 * ms, 1, 0, true, 0},
		}},
		{"idle time is a burst of one second", bursty(t, 2, 1), []step{
			{0, 1, 0, true, 0},
			{60 * sec, 3, 0, true, 0}, // two stored ones and one to pay for
			{60 * sec, 1, 0, false, 0},
			{60*sec + 500*ms - 1, 1, 0, false, 0},
			{60*sec + 500*ms, 1, 0, true, 0},
		}},
		{"a refusal takes nothing", bursty(t, 1, 1), []step{
			{0, 1, 0, true, 0},
			{0, 1, sec - 1, false, 0},
			{0, 1, sec - 1, false, 0},
			{0, 1, sec, true, sec},
		}},
		{"a million at once is granted, and paid for by the next", bursty(t, 100, 1), []step{
			{0, 1_000_000, 0, true, 0},
			{0, 1, patient, true, 10_000 * sec},
		}},
		{"case S01: 5 per minute has no room for a second within 12 s", bursty(t, 5./60, 1), []step{
			{0, 1, 0, true, 0},
			{sec, 1, 0, false, 0},
			{5 * sec, 1, 0, false, 0},
			{12*sec - 1, 1, 0, false, 0},
			{12 * sec, 1, 0, true, 0},
			{13 * sec, 1, 0, false, 0},
			{24 * sec, 1, 0, true, 0},
			{60 * sec, 1, 0, true, 0}, // idleness stored a twelfth
			{71*sec - 1, 1, 0, false, 0},
			{71 * sec, 1, 0, true, 0},
			{72 * sec, 1, 0, false, 0},
			{83 * sec, 1, 0, true, 0},
		}},
		{"case S02: a fresh limiter has no burst", bursty(t, 100, 1), []step{
			{0, 1, 0, true, 0},
			{0, 1, 0, false, 0},
			{0, 1, 0, false, 0},
			{sec, 99, 0, true, 0},
			{sec, 1, 0, true, 0},
		}},
		// stable 200 ms, cold 600 ms, threshold 2.5 and max 5 permits
		{"a cold limiter speeds up under load", warming(t, 5, sec, 3), []step{
			{0, 1, 0, true, 0},
			{0, 1, patient, true, 520 * ms},
			{0, 1, patient, true, 880 * ms},
			{0, 1, patient, true, 1100 * ms},
			{0, 1, patient, true, 1300 * ms},
			{0, 1, patient, true, 1500 * ms},
			{0, 1, patient, true, 1700 * ms},
		}},
		{"case B32: a wait is never negative nor wraps", bursty(t, 1e-300, 1), []step{
			{0, 1, 0, true, 0},
			{0, 1, patient - 1, false, 0},
			{0, 1, patient, true, math.MaxInt64},
			{-5, 1, patient, true, math.MaxInt64},
		}},
		{"two huge prices do not make a small one", warming(t, 1e-12, math.MaxInt64, 3), []step{
			{0, 1 << 50, 0, true, 0},
			{0, 1, patient, true, math.MaxInt64},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s smooth.State // never seen
			for i, st := range c.steps {
				ok, wait := s.Grants(st.at, st.timeout), int64(0)
				if ok {
					s, wait = c.pace.Reserve(s, st.at, st.n)
				}
				if ok != st.ok || wait != st.wait {
					t.Errorf("step %d: %v after %d, want %v after %d (%+v)", i, ok, wait, st.ok, st.wait, s)
				}
			}
		})
	}
}

func TestLookingTakesNothing(t *testing.T) {
	p := bursty(t, 2, 1)
	s, _ := p.Reserve(p.Fresh(0), 0, 3)
	for _, n := range []int64{0, -1, math.MinInt64} {
		if after, wait := p.Reserve(s, sec, n); after != s || wait != 500*ms {
			t.Errorf("%d permits: %+v after %d, want %+v after 500000", n, after, wait, s)
		}
	}
}

func TestZeroStateIsAFreshOne(t *testing.T) {
	for _, p := range []smooth.Pace{bursty(t, 5, 1), bursty(t, 5, 0), warming(t, 5, sec, 3)} {
		fresh := p.Fresh(7 * sec)
		if got := p.Resync(smooth.State{}, 7*sec); got != fresh {
			t.Errorf("resync: %+v, want %+v", got, fresh)
		}
		want, _ := p.Reserve(fresh, 7*sec, 2)
		if got, wait := p.Reserve(smooth.State{}, 7*sec, 2); got != want || wait != 0 {
			t.Errorf("reserve: %+v after %d, want %+v after 0", got, wait, want)
		}
	}
}

func TestChangeScalesWhatIsStored(t *testing.T) {
	slow, fast := bursty(t, 10, 1), bursty(t, 40, 1)
	half := smooth.State{Next: 3 * sec, Stored: 5, Max: 10}
	want := smooth.State{Next: 3 * sec, Stored: 20, Max: 40}
	if got := slow.Change(fast, half, 3*sec); got != want {
		t.Errorf("change: %+v, want %+v", got, want)
	}
	// Who lost the old pace lets the new one adopt the state.
	if got := fast.Resync(half, 3*sec); got != want {
		t.Errorf("adopt: %+v, want %+v", got, want)
	}
	// Idle time before the change is stored at the old pace, debt stays as it is.
	if got, want := slow.Change(fast, half, 3*sec+200*ms), (smooth.State{Next: 3*sec + 200*ms, Stored: 28, Max: 40}); got != want {
		t.Errorf("after idleness: %+v, want %+v", got, want)
	}
	if got := slow.Change(fast, half, 0); got != want {
		t.Errorf("in debt: %+v, want %+v", got, want)
	}
	huge, huger := bursty(t, 1e200, 1), bursty(t, 1e300, 1)
	if got := huge.Change(huger, huge.Resync(huge.Fresh(0), sec), sec); got.Stored != 1e300 {
		t.Errorf("huge: %+v, want all of 1e300 stored", got)
	}
}

func TestFullIsTheFirstInstantOfAFreshState(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 5000 {
		// From 1e-3/s to 1e9/s, and from 1 µs to 100 years: the longest ones need
		// the estimate corrected in both directions.
		rate, warmUp := math.Pow(10, 12*r.Float64()-3), 1+int64(math.Pow(10, 15.5*r.Float64()))
		p := warming(t, rate, warmUp, 1+9*r.Float64())
		s := p.Fresh(12345)
		if got := p.Full(s); got != 12345 {
			t.Fatalf("seed %d, %d: %+v: full at %d", seed, i, s, got)
		}
		s, _ = p.Reserve(s, s.Next, 1+int64(s.Max*r.Float64()))
		at := p.Full(s)
		if got := p.Resync(s, at); got != p.Fresh(at) {
			t.Fatalf("seed %d, %d: %+v at %d is %+v, not fresh", seed, i, s, at, got)
		}
		if at > s.Next && p.Resync(s, at-1) == p.Fresh(at-1) {
			t.Fatalf("seed %d, %d: %+v is fresh before %d", seed, i, s, at)
		}
	}
	p := bursty(t, 3, 2)
	if got := p.Full(smooth.State{Next: 50, Stored: 0, Max: 6}); got != 2*sec+50 {
		t.Errorf("bursty: full at %d, want 2000050", got)
	}
	if got := warming(t, 5, sec, 3).Full(smooth.State{Next: math.MaxInt64, Max: 5}); got != math.MaxInt64 {
		t.Errorf("in debt for ever: full at %d", got)
	}
}

func TestNumbersThatCannotBeUsedAreNamed(t *testing.T) {
	of := func(_ smooth.Pace, err error) error { return err }
	inf, nan := math.Inf(1), math.NaN()
	p := warming(t, 1, sec, 3)
	for _, c := range []struct {
		err  error
		want string
	}{
		{of(smooth.Bursty(0, 1)), "smooth: rate 0: want a finite number of permits per second above 0"},
		{of(smooth.Bursty(nan, 1)), "smooth: rate NaN: want a finite number of permits per second above 0"},
		{of(p.WithRate(inf)), "smooth: rate +Inf: want a finite number of permits per second above 0"},
		{of(p.WithRate(-inf)), "smooth: rate -Inf: want a finite number of permits per second above 0"},
		{of(smooth.Bursty(1, -1)), "smooth: burst -1: want a finite number of seconds, at least 0"},
		{of(smooth.Bursty(1, nan)), "smooth: burst NaN: want a finite number of seconds, at least 0"},
		{of(smooth.Bursty(1, inf)), "smooth: burst +Inf: want a finite number of seconds, at least 0"},
		{of(smooth.WarmingUp(1, 0, 3)), "smooth: warm-up 0: want at least 1 microsecond; a limiter without one is a bursty one"},
		{of(smooth.WarmingUp(1, 1, nan)), "smooth: cold factor NaN: want a finite number, at least 1"},
		{of(smooth.WarmingUp(1, 1, inf)), "smooth: cold factor +Inf: want a finite number, at least 1"},
		{of(smooth.Bursty(5e-324, 1)), "smooth: rate 5e-324: want one that, with this burst or this warm-up and cold factor, gives finite intervals and stored permits"},
		{of(smooth.Bursty(1e300, 1e300)), "smooth: rate 1e+300: want one that, with this burst or this warm-up and cold factor, gives finite intervals and stored permits"},
		{of(smooth.WarmingUp(1, 1, 1e20)), "smooth: rate 1: want one that, with this burst or this warm-up and cold factor, gives finite intervals and stored permits"},
	} {
		wrong := new(smooth.ArgumentError)
		if !errors.As(c.err, &wrong) || c.err.Error() != c.want {
			t.Errorf("error %v, want %s", c.err, c.want)
		}
	}
}
