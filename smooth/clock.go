package smooth

import (
	"context"
	"time"
)

// A Clock tells the time and waits for it. It may be called concurrently; Now
// is called with the limiter's lock held, so it must not call the limiter.
type Clock interface {
	Now() time.Time
	// Sleep returns nil after d, or the context's error if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

// systemClock counts from its start by the monotonic clock, so that a step of
// the wall clock neither freezes nor frees a limiter.
type systemClock struct{ start time.Time }

func (c systemClock) Now() time.Time { return c.start.Add(time.Since(c.start)) }

func (c systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
