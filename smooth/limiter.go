package smooth

import (
	"context"
	"math"
	"sync"
	"time"
)

// Options are what a [Limiter] has besides its rate. The zero value is Guava's
// choice, but a limiter that warms up needs a WarmUp.
type Options struct {
	// MaxBurst is the time whose permits an idle limiter stores at most, at least 0;
	// 0 means 1 second. NewBursty only.
	MaxBurst time.Duration
	// NoBurst makes a limiter that stores nothing. NewBursty only.
	NoBurst bool
	// WarmUp is the time a cold limiter needs to reach its rate, at least 1µs; what
	// is not a whole microsecond is cut off. NewWarmingUp only.
	WarmUp time.Duration
	// ColdFactor is how many times the interval between permits is longer when
	// cold, at least 1; 0 means 3. NewWarmingUp only.
	ColdFactor float64
	// Clock is what the limiter waits by, and reads the deadlines of contexts
	// with; nil is the system's monotonic clock.
	Clock Clock
}

// A Limiter hands out permits at an even pace. Calls are served in the order in
// which they come, each at the instant that was free when it came. It may be
// used concurrently and must not be copied. It is made by [NewBursty] or
// [NewWarmingUp]: a zero Limiter would have no rate to keep.
type Limiter struct {
	clock Clock
	start time.Time // tick 0

	mu    sync.Mutex
	pace  Pace
	state State
	// abandoned holds reservations that were given up while later ones stood:
	// the state before each, by the state after it. See giveBack.
	abandoned map[State]State
}

// maxAbandoned bounds Limiter.abandoned, about 100 kB.
const maxAbandoned = 1024

// NewBursty makes a limiter of rate permits per second that stores the permits
// of idle times for a burst, as RateLimiter.create(rate) of Guava. It starts
// with nothing stored. An error is an [ArgumentError].
func NewBursty(rate float64, o Options) (*Limiter, error) {
	if o.WarmUp != 0 {
		return nil, &ArgumentError{"warm-up", o.WarmUp, "none for a bursty limiter; NewWarmingUp makes one that warms up"}
	}
	if o.ColdFactor != 0 {
		return nil, &ArgumentError{"cold factor", o.ColdFactor, "none for a bursty limiter; NewWarmingUp makes one that warms up"}
	}
	if o.NoBurst && o.MaxBurst != 0 {
		return nil, &ArgumentError{"burst", o.MaxBurst, "none beside NoBurst"}
	}
	if o.MaxBurst == 0 && !o.NoBurst {
		o.MaxBurst = time.Second
	}
	p, err := Bursty(rate, o.MaxBurst.Seconds())
	if err != nil {
		return nil, err
	}
	return newLimiter(p, o.Clock), nil
}

// NewWarmingUp makes a limiter that starts slow and reaches rate permits per
// second after a time under load, as RateLimiter.create(rate, warmUp) of Guava.
// It starts cold. An error is an [ArgumentError].
func NewWarmingUp(rate float64, o Options) (*Limiter, error) {
	if o.MaxBurst != 0 || o.NoBurst {
		return nil, &ArgumentError{"burst", o.MaxBurst, "neither MaxBurst nor NoBurst for a limiter that warms up; NewBursty takes them"}
	}
	if o.WarmUp < time.Microsecond {
		return nil, &ArgumentError{"warm-up", o.WarmUp, "at least 1µs; a limiter without one is made by NewBursty"}
	}
	if o.ColdFactor == 0 {
		o.ColdFactor = 3
	}
	p, err := WarmingUp(rate, o.WarmUp.Microseconds(), o.ColdFactor)
	if err != nil {
		return nil, err
	}
	return newLimiter(p, o.Clock), nil
}

func newLimiter(p Pace, c Clock) *Limiter {
	if c == nil {
		c = systemClock{time.Now()}
	}
	return &Limiter{clock: c, start: c.Now(), pace: p, state: p.Fresh(0)}
}

// Acquire takes n permits, at least 1, and returns after waiting until they may
// be used. It waits for the permits of earlier calls, not for its own.
//
// It fails at once and takes nothing if ctx is over, with its error; if the wait
// would not end before the deadline of ctx, with a [DeadlineError]; and if n is
// below 1, with an [ArgumentError].
//
// If ctx ends during the wait, its error is returned with the time waited. The
// permits are given back, as if they had never been asked for, unless a later
// call holds a reservation: its instant was promised and stays. Then they are given
// back when all later ones are given up too (as when a server shuts down), and
// else lost, as they are if the rate was changed meanwhile: a cancelled
// wait may make the pace slower for once, never faster, and never stores more
// than was stored before.
//
// A wait of more than 292 years, the longest Duration, is cut to that.
func (l *Limiter) Acquire(ctx context.Context, n int) (waited time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := checkPermits(n); err != nil {
		return 0, err
	}
	deadline, limited := ctx.Deadline()

	l.mu.Lock()
	now := l.now()
	before := l.state
	after, due := l.pace.Reserve(before, now, int64(n))
	wait := duration(due)
	if limited && wait > 0 {
		if left := deadline.Sub(l.start) - duration(now); wait >= left {
			l.mu.Unlock()
			return 0, &DeadlineError{Wait: wait, Left: left}
		}
	}
	l.state = after
	l.mu.Unlock()

	if wait == 0 {
		return 0, nil
	}
	if err := l.clock.Sleep(ctx, wait); err != nil {
		return l.giveBack(before, after, now), err
	}
	return wait, nil
}

// TryAcquire takes n permits, at least 1, if they may be used within timeout,
// waits until then and returns true; or returns false at once and takes
// nothing. A timeout is cut to whole microseconds; 0 and less do not wait. A
// refusal is not an error: that is an [ArgumentError] about n, or what a Clock of
// yours returns from Sleep.
func (l *Limiter) TryAcquire(n int, timeout time.Duration) (bool, error) {
	if err := checkPermits(n); err != nil {
		return false, err
	}
	l.mu.Lock()
	now := l.now()
	if !l.state.Grants(now, timeout.Microseconds()) {
		l.mu.Unlock()
		return false, nil
	}
	var wait int64
	l.state, wait = l.pace.Reserve(l.state, now, int64(n))
	l.mu.Unlock()

	if wait == 0 {
		return true, nil
	}
	return true, l.clock.Sleep(context.Background(), duration(wait))
}

// SetRate changes the rate, in permits per second. A limiter that was half full
// stays half full. Calls that wait keep their instants, and the first call after
// them waits for what they took at the old rate. An error is an [ArgumentError],
// and the rate stays.
func (l *Limiter) SetRate(rate float64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.pace.WithRate(rate)
	if err != nil {
		return err
	}
	l.state = l.pace.Change(p, l.state, l.now())
	l.pace = p
	return nil
}

// Rate is the rate in permits per second. It may differ from what was set by the
// last bits: see [Pace.Rate].
func (l *Limiter) Rate() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pace.Rate()
}

// giveBack undoes the reservation that led from before to after, if nothing has
// happened since: equal states of one limiter are worth the same, so before is
// then what the state would be had it never been made. Otherwise it remembers the
// reservation, for the case that all later ones are undone. It returns the time
// since then.
func (l *Limiter) giveBack(before, after State, then int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if len(l.abandoned) >= maxAbandoned {
		for s := range l.abandoned {
			if s.Next <= now { // the call after it has been granted
				delete(l.abandoned, s)
			}
		}
	}
	if l.abandoned == nil {
		l.abandoned = make(map[State]State)
	}
	if len(l.abandoned) < maxAbandoned || after == l.state {
		l.abandoned[after] = before
	}
	for {
		s, ok := l.abandoned[l.state]
		if !ok {
			return duration(max(sub(now, then), 0))
		}
		delete(l.abandoned, l.state)
		l.state = s
	}
}

// now is the tick of the clock. It is read under the lock, once a call: an instant
// read before would be earlier than a state that others brought up to date
// meanwhile, and would be refused permits that are there.
func (l *Limiter) now() int64 { return l.clock.Now().Sub(l.start).Microseconds() }

// duration is d ticks, or the longest Duration if they do not fit.
func duration(d int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	if d > most {
		return math.MaxInt64
	}
	return time.Duration(d) * time.Microsecond
}

func checkPermits(n int) error {
	if n < 1 {
		return &ArgumentError{"permits", n, "at least 1"}
	}
	return nil
}
