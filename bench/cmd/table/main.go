// Command table prints the tables of docs/performance.md: every contender in
// every scenario, in one process and one run. Ratios are to the best of the
// others in the same column.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/bench"
)

func main() {
	runs := flag.Int("runs", 3, "measurements of each cell, of which the median is printed; 0 only weighs")
	big := flag.Int("big", 10_000_000, "live keys of the largest weighing; 0 leaves it out")
	testing.Init()
	each := flag.Duration("each", 500*time.Millisecond, "time of one measurement")
	flag.Parse()
	if err := flag.Set("test.benchtime", each.String()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Printf("%s, %s/%s, %d processors\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	if *runs > 0 {
		speed(*runs)
	}
	for _, keys := range []int{1_000_000, *big} {
		if keys > 0 {
			weight(keys)
		}
	}
}

// cell is one contender in one column.
type cell struct {
	ns     []float64
	allocs int64
}

func speed(runs int) {
	contenders := bench.Contenders()
	for _, s := range bench.Scenarios() {
		stream := s.Stream()
		columns := [2][]cell{make([]cell, len(contenders)), make([]cell, len(contenders))}
		for range runs { // interleaved, so that a slow minute of the machine hits all alike
			for i, c := range contenders {
				maker, closeIt := c.Open(s.Keys, s.Quota)
				bench.Fill(maker(), s.Keys)
				for col, loop := range []func(*testing.B, func() bench.Taker, []string){bench.Sequential, bench.Parallel} {
					r := testing.Benchmark(func(b *testing.B) { loop(b, maker, stream) })
					columns[col][i].ns = append(columns[col][i].ns, float64(r.T.Nanoseconds())/float64(r.N))
					columns[col][i].allocs = r.AllocsPerOp()
				}
				closeIt()
				runtime.GC()
			}
		}
		fmt.Printf("\n### %s\n\n| ns per take | seq | ratio | par | ratio | allocs |\n| --- | --: | --: | --: | --: | --: |\n", s.Name)
		best := [2]float64{best(contenders, columns[0]), best(contenders, columns[1])}
		for i, c := range contenders {
			seq, par := bench.Median(columns[0][i].ns), bench.Median(columns[1][i].ns)
			fmt.Printf("| %s | %.0f | %.2f | %.0f | %.2f | %d |\n", c.Name, seq, seq/best[0], par, par/best[1], columns[0][i].allocs)
		}
	}
}

// best is the fastest of the others.
func best(contenders []bench.Contender, column []cell) float64 {
	least := 0.0
	for i, c := range contenders {
		if ns := bench.Median(column[i].ns); !c.Weir && (least == 0 || ns < least) {
			least = ns
		}
	}
	return least
}

func weight(keys int) {
	fmt.Printf("\n### %d live keys\n\n| | bytes per key | one collection | empty |\n| --- | --: | --: | --: |\n", keys)
	for _, c := range bench.Contenders() {
		if strings.Contains(c.Name, "3 rules") {
			continue // three entries a key
		}
		m := bench.Weigh(c, keys)
		fmt.Printf("| %s | %.0f | %.1f ms | %.1f ms |\n", c.Name, m.BytesPerKey, ms(m.GC), ms(m.EmptyGC))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
