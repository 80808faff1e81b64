// Command redis prints the tables of docs/performance.md that are about Redis: every
// contender in every scenario, against one redis-server that it starts, in one run.
// Ratios are to the first row of the table.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/weirhq/weir/bench"
	"github.com/weirhq/weir/bench/redis"
)

func main() {
	runs := flag.Int("runs", 3, "measurements of each cell, of which the median is printed; 0 only weighs")
	each := flag.Duration("each", time.Second, "time of one measurement")
	keys := flag.Int("keys", 100_000, "live keys of a weighing; 0 leaves it out")
	flag.Parse()
	if err := run(context.Background(), *runs, *each, *keys); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, runs int, each time.Duration, keys int) error {
	s, err := redis.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Printf("%s, %s/%s, %d processors\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	if runs > 0 {
		if err := measure(ctx, s, runs, each); err != nil {
			return err
		}
	}
	if keys == 0 {
		return nil
	}
	weights, err := redis.Weigh(ctx, s, redis.Keys(keys, 16))
	if err != nil {
		return err
	}
	fmt.Printf("\n### Bytes in Redis, %d live keys\n\n| | bytes per key | of which its name |\n| --- | --: | --: |\n", keys)
	for _, w := range weights {
		fmt.Printf("| %s | %.0f | %d |\n", w.What, w.BytesPerKey, w.Name)
	}
	return nil
}

// measure prints all that is about time.
func measure(ctx context.Context, s *redis.Server, runs int, each time.Duration) error {
	for _, t := range tables() {
		if err := t.print(ctx, s, runs, each); err != nil {
			return err
		}
	}
	if err := steady(ctx, s, 3*each); err != nil {
		return err
	}
	return stall(ctx, s)
}

// table is one scenario.
type table struct {
	title   string
	limit   redis.Limit
	keys    int
	callers []int
	rows    []redis.Contender
}

func tables() []table {
	rivals := redis.Rivals()
	each := redis.Weir("weir, one call each", redis.Setup{Batch: 1})
	weir := redis.Weir("weir", redis.Setup{})
	return []table{
		{"Distinct keys, all allowed", redis.Plenty, 10_000, []int{1, 16, 128, 512}, append(slices.Clone(rivals), each, weir)},
		{"Distinct keys, nearly all refused", redis.Scarce, 10_000, []int{128}, append(slices.Clone(rivals), each, weir)},
		{"One hot key, all allowed", redis.Plenty, 1, []int{128}, []redis.Contender{rivals[0], each, weir}},
		{"Rules decided together", redis.Plenty, 10_000, []int{128}, []redis.Contender{
			redis.Weir("weir, 1 rule", redis.Setup{}), redis.Weir("weir, 3 rules", redis.Setup{Rules: 3})}},
		{"Refused keys, refusals remembered", redis.Scarce, 100, []int{128}, []redis.Contender{
			each, weir, redis.Weir("weir, refusals remembered", redis.Setup{Refusals: true})}},
		{"500 keys, fast mode", redis.Plenty, 500, []int{16, 128}, []redis.Contender{
			each, weir, redis.Weir("weir, store: fast", redis.Setup{Fast: true}), redis.InMemory()}},
	}
}

func (t table) print(ctx context.Context, s *redis.Server, runs int, each time.Duration) error {
	keys := redis.Keys(t.keys, 16)
	for _, callers := range t.callers {
		results := make([][]redis.Result, len(t.rows))
		for range runs { // interleaved, so that a slow minute of the machine hits all alike
			for i, c := range t.rows {
				if err := s.Empty(ctx); err != nil {
					return err
				}
				take, done, err := c.Open(s.Addr, t.limit)
				if err != nil {
					return err
				}
				r, err := redis.Measure(ctx, s, []redis.Taker{take}, callers, keys, each)
				done()
				if err != nil {
					return fmt.Errorf("%s, %s, %d callers: %w", t.title, c.Name, callers, err)
				}
				results[i] = append(results[i], r)
			}
		}
		fmt.Printf("\n### %s, %d callers\n\n", t.title, callers)
		fmt.Println("| | decisions/s | ratio | p50 µs | p99 µs | Redis µs | ratio | calls |\n| --- | --: | --: | --: | --: | --: | --: | --: |")
		var first, firstCPU float64
		for i, c := range t.rows {
			per := median(results[i], func(r redis.Result) float64 { return r.PerSecond })
			cpu := median(results[i], func(r redis.Result) float64 { return micro(r.RedisCPU) })
			if i == 0 {
				first, firstCPU = per, cpu
			}
			fmt.Printf("| %s | %.0f | %.2f | %.1f | %.1f | %.2f | %.3f | %.4f |\n", c.Name, per, per/first,
				median(results[i], func(r redis.Result) float64 { return micro(r.P50) }),
				median(results[i], func(r redis.Result) float64 { return micro(r.P99) }),
				cpu, cpu/firstCPU,
				median(results[i], func(r redis.Result) float64 { return r.Calls }))
		}
	}
	return nil
}

// steady prints what nodes that share a key ask of Redis when it is asked for half more
// than it allows.
func steady(ctx context.Context, s *redis.Server, each time.Duration) error {
	fmt.Print("\n### One key of 10,000 per second, asked for 15,000 times per second\n\n" +
		"| | nodes | asked/s | allowed/s | Redis calls per decision |\n| --- | --: | --: | --: | --: |\n")
	limit := redis.Limit{PerSecond: 10_000}
	for _, row := range []struct {
		name  string
		setup redis.Setup
	}{
		{"strict", redis.Setup{}},
		{"strict, refusals remembered", redis.Setup{Refusals: true}},
		{"fast, refusals remembered", redis.Setup{Fast: true, Refusals: true}},
	} {
		for _, nodes := range []int{2, 10} {
			if err := s.Empty(ctx); err != nil {
				return err
			}
			r, err := redis.MeasureSteady(ctx, s, nodes, limit, 15_000, row.setup, each)
			if err != nil {
				return err
			}
			fmt.Printf("| %s | %d | %.0f | %.0f | %.4f |\n", row.name, nodes, r.Offered, r.Allowed, r.Calls)
		}
	}
	return nil
}

// stall prints how long callers wait for a server that stands still for two seconds.
func stall(ctx context.Context, s *redis.Server) error {
	const callers = 3000
	fmt.Printf("\n### Redis stands still for 2 s, %d callers\n\n"+
		"| | longest wait | in the second second, longest | and 99 %% |\n| --- | --: | --: | --: |\n", callers)
	keys := redis.Keys(10_000, 16)
	for _, c := range []redis.Contender{redis.Rivals()[0], redis.Weir("weir, 50 ms", redis.Setup{Breaker: true})} {
		if err := s.Empty(ctx); err != nil {
			return err
		}
		take, done, err := c.Open(s.Addr, redis.Plenty)
		if err != nil {
			return err
		}
		r, err := redis.MeasureStall(ctx, s, take, callers, keys, 2*time.Second)
		done()
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.1f ms | %.3f ms | %.3f ms |\n", c.Name, micro(r.Longest)/1000, micro(r.Later)/1000, micro(r.P99)/1000)
	}
	return nil
}

func median(results []redis.Result, of func(redis.Result) float64) float64 {
	var all []float64
	for _, r := range results {
		all = append(all, of(r))
	}
	return bench.Median(all)
}

func micro(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
