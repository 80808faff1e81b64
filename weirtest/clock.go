package weirtest

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir"
)

// StartUnix is where a [Clock] starts, in seconds since the Unix epoch:
// 2018-04-19, the beginning of a UTC day that is a multiple of 1 to 10, 14, 28,
// 30, 90 and 360 days. So it is an edge of every fixed window likely to be tested.
const StartUnix = 17640 * 86400

// Clock is a [weir.Clock] that is moved by hand. The zero value stands at
// StartUnix. It may be used concurrently.
type Clock struct {
	// Park makes Sleep wait until Advance or Set has moved the clock far enough.
	// Without it Sleep moves the clock itself and returns at once. It is set before
	// the clock is used.
	Park bool

	mu     sync.Mutex
	offset time.Duration // since StartUnix
	parked map[*sleeper]struct{}
	change chan struct{} // closed when parked grows
}

var _ weir.Clock = (*Clock)(nil)

type sleeper struct {
	until time.Duration
	wake  chan struct{}
}

// Now implements [weir.Clock].
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Unix(StartUnix, 0).UTC().Add(c.offset)
}

// Since is how far the clock stands after its start.
func (c *Clock) Since() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Advance moves the clock by d; below 0 it steps back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.move(c.offset + d)
}

// Set moves the clock to d after its start, which may be a step back.
func (c *Clock) Set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.move(d)
}

func (c *Clock) move(to time.Duration) {
	c.offset = to
	for s := range c.parked {
		if s.until <= to {
			close(s.wake)
			delete(c.parked, s)
		}
	}
}

// Sleep implements [weir.Clock]; see Park.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	c.mu.Lock()
	if !c.Park {
		defer c.mu.Unlock()
		c.move(c.offset + d)
		return nil
	}
	s := &sleeper{until: c.offset + d, wake: make(chan struct{})}
	if c.parked == nil {
		c.parked = make(map[*sleeper]struct{})
	}
	c.parked[s] = struct{}{}
	if c.change != nil {
		close(c.change)
		c.change = nil
	}
	c.mu.Unlock()
	select {
	case <-s.wake:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.parked, s)
		c.mu.Unlock()
		return ctx.Err()
	}
}

// AwaitParked returns once at least n callers are parked in Sleep, or the
// context's error.
func (c *Clock) AwaitParked(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		if len(c.parked) >= n {
			c.mu.Unlock()
			return nil
		}
		if c.change == nil {
			c.change = make(chan struct{})
		}
		change := c.change
		c.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
