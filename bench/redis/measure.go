package redis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Result is one measurement.
type Result struct {
	PerSecond float64       // decisions
	P50, P99  time.Duration // of a decision, as the caller waits for it
	RedisCPU  time.Duration // of the commands' thread, per decision
	Calls     float64       // scripts run per decision
	Allowed   float64       // share of the decisions
}

// samples bounds the latencies that one caller keeps: every one, then every second,
// every fourth…
const samples = 4096

// Measure lets callers take from keys in turn, each from a key of its own on, for a
// while, after a tenth of it to warm up.
func Measure(ctx context.Context, s *Server, takers []Taker, callers int, keys []string, each time.Duration) (Result, error) {
	if _, _, err := load(ctx, takers, callers, keys, each/10); err != nil {
		return Result{}, err
	}
	cpu, err1 := s.CPU(ctx)
	calls, err2 := s.Calls(ctx)
	start := time.Now()
	taken, allowed, err3 := load(ctx, takers, callers, keys, each)
	took := time.Since(start)
	cpuAfter, err4 := s.CPU(ctx)
	callsAfter, err5 := s.Calls(ctx)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return Result{}, err
	}
	slices.Sort(taken.waits)
	n := float64(taken.count)
	return Result{
		PerSecond: n / took.Seconds(),
		P50:       taken.waits[len(taken.waits)/2], P99: taken.waits[len(taken.waits)*99/100],
		RedisCPU: time.Duration(float64(cpuAfter-cpu) / n),
		Calls:    float64(callsAfter-calls) / n,
		Allowed:  float64(allowed) / n,
	}, nil
}

type tally struct {
	count int64
	waits []time.Duration
}

// load runs the callers, spread over the takers, and returns what they did.
func load(ctx context.Context, takers []Taker, callers int, keys []string, each time.Duration) (tally, int64, error) {
	var stop atomic.Bool
	var mu sync.Mutex
	var all tally
	var allowed int64
	var failed error
	var done sync.WaitGroup
	for i := range callers {
		done.Go(func() {
			take := takers[i%len(takers)]
			at := i * len(keys) / callers
			var mine tally
			var oks int64
			keepEvery := int64(1)
			for !stop.Load() {
				start := time.Now()
				ok, err := take(ctx, keys[at])
				wait := time.Since(start)
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					stop.Store(true)
					return
				}
				if ok {
					oks++
				}
				if mine.count%keepEvery == 0 {
					if len(mine.waits) == samples {
						for k := range samples / 2 {
							mine.waits[k] = mine.waits[2*k]
						}
						mine.waits, keepEvery = mine.waits[:samples/2], 2*keepEvery
					}
					mine.waits = append(mine.waits, wait)
				}
				mine.count++
				if at++; at == len(keys) {
					at = 0
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all.count += mine.count
			all.waits = append(all.waits, mine.waits...)
			allowed += oks
		})
	}
	end := time.AfterFunc(each, func() { stop.Store(true) })
	defer end.Stop()
	done.Wait()
	if failed == nil && all.count == 0 {
		failed = errors.New("bench: nothing was decided")
	}
	return all, allowed, failed
}
