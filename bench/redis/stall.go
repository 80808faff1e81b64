package redis

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Stall is how long callers wait while the server stands still.
type Stall struct {
	Longest time.Duration // of all
	Later   time.Duration // of those who came in its second half
	P99     time.Duration // of these
}

// MeasureStall stops the server for a while under many callers, each of which asks again
// a little after it was answered. What they are answered does not matter.
func MeasureStall(ctx context.Context, s *Server, take Taker, callers int, keys []string, stop time.Duration) (Stall, error) {
	var stopped atomic.Int64 // when, in nanoseconds
	var end atomic.Bool
	start := time.Now()
	var mu sync.Mutex
	var all, later []time.Duration
	var done sync.WaitGroup
	for i := range callers {
		done.Go(func() {
			var mine, mineLater []time.Duration
			for n := i; !end.Load(); n++ {
				begun := time.Now()
				_, _ = take(ctx, keys[n%len(keys)]) // an error is an answer
				if at := stopped.Load(); at > 0 {
					mine = append(mine, time.Since(begun))
					if begun.Sub(start)-time.Duration(at) > stop/2 {
						mineLater = append(mineLater, time.Since(begun))
					}
				}
				time.Sleep(20 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			all, later = append(all, mine...), append(later, mineLater...)
		})
	}
	time.Sleep(time.Second)
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return Stall{}, err
	}
	stopped.Store(int64(time.Since(start)))
	time.Sleep(stop)
	end.Store(true)
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return Stall{}, err
	}
	done.Wait()
	r := Stall{Longest: slices.Max(all)}
	if slices.Sort(later); len(later) > 0 {
		r.Later, r.P99 = later[len(later)-1], later[len(later)*99/100]
	}
	return r, nil
}
