package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
)

// Steady is what an even load does to one key that many nodes share.
type Steady struct {
	Offered, Allowed float64 // per second
	Calls            float64 // scripts run per decision
}

// MeasureSteady lets nodes ask for units of one key at an even rate together.
func MeasureSteady(ctx context.Context, s *Server, nodes int, l Limit, offered int, setup Setup, each time.Duration) (Steady, error) {
	policies, err := setup.policies(l)
	if err != nil {
		return Steady{}, err
	}
	var takers []Taker
	for range nodes {
		n, err := OpenNode(s.Addr, setup)
		if err != nil {
			return Steady{}, err
		}
		defer n.Close()
		takers = append(takers, n.taker(policies))
	}
	if _, err := even(ctx, takers, offered, each/2); err != nil { // the burst, and what has to be learnt
		return Steady{}, err
	}
	calls, err := s.Calls(ctx)
	if err != nil {
		return Steady{}, err
	}
	start := time.Now()
	got, err := even(ctx, takers, offered, each)
	took := time.Since(start).Seconds()
	if err != nil {
		return Steady{}, err
	}
	after, err := s.Calls(ctx)
	asked := float64(got.asked.Load())
	return Steady{Offered: asked / took, Allowed: float64(got.allowed.Load()) / took, Calls: float64(after-calls) / asked}, err
}

type counted struct{ asked, allowed atomic.Int64 }

// even asks from all takers so often in a second together. What a late tick has missed
// is asked at the next.
func even(ctx context.Context, takers []Taker, offered int, each time.Duration) (*counted, error) {
	var c counted
	var done sync.WaitGroup
	errs := make(chan error, len(takers))
	clock := weir.SystemClock()
	for i, take := range takers {
		done.Go(func() {
			start := clock.Now()
			for asked := 0; ; {
				gone := clock.Now().Sub(start)
				if gone >= each {
					return
				}
				due := int(gone.Seconds() * float64(offered) / float64(len(takers)))
				for ; asked < due; asked++ {
					ok, err := take(ctx, "hot")
					if err != nil {
						errs <- err
						return
					}
					c.asked.Add(1)
					if ok {
						c.allowed.Add(1)
					}
				}
				if err := clock.Sleep(ctx, time.Millisecond+time.Duration(i)*10*time.Microsecond); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	done.Wait()
	select {
	case err := <-errs:
		return nil, err
	default:
		return &c, nil
	}
}
