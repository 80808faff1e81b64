package weir

import (
	"context"
	"time"
)

// A Clock tells the time and waits for it. A nil Clock in an options struct is
// the system's: the wall clock read once, then monotonic, so that a step of the
// wall clock neither freezes nor frees a limit.
type Clock interface {
	Now() time.Time
	// Sleep returns nil after d, or the context's error if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

// systemClock counts microseconds from the wall time of its making, by the
// monotonic clock. Reading only the difference is cheaper than reading both.
type systemClock struct {
	start time.Time
	base  int64
}

// SystemClock is the clock that a nil Clock stands for.
func SystemClock() Clock {
	c := newSystemClock()
	return &c
}

func newSystemClock() systemClock {
	now := time.Now()
	return systemClock{start: now, base: now.UnixMicro()}
}

func (c *systemClock) micros() int64 { return c.base + int64(time.Since(c.start))/1000 }

func (c *systemClock) Now() time.Time { return c.start.Add(time.Since(c.start)) }

func (c *systemClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
