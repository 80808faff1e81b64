package bench

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// Fill takes once for every key, so that the loops measure known keys.
func Fill(take Taker, keys int) {
	for i := range keys {
		take(Key(i))
	}
}

// Sequential is the loop of one goroutine.
func Sequential(b *testing.B, maker func() Taker, stream []string) {
	take := maker()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		take(stream[i&(len(stream)-1)])
		i++
	}
}

// Parallel is the loop of one goroutine per processor; each starts elsewhere.
func Parallel(b *testing.B, maker func() Taker, stream []string) {
	var starts atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		take := maker()
		i := int(starts.Add(1)) * (len(stream) / 7)
		for pb.Next() {
			take(stream[i&(len(stream)-1)])
			i++
		}
	})
}

// Memory is what a contender with keys live keys weighs.
type Memory struct {
	BytesPerKey float64
	GC          time.Duration // one collection, median of 5
	EmptyGC     time.Duration // the same before the keys came
}

// Weigh fills a contender and measures the live heap and a garbage collection.
func Weigh(c Contender, keys int) Memory {
	before := heap()
	empty := collect()
	maker, closeIt := c.Open(keys, LiveQuota/10)
	defer closeIt()
	Fill(maker(), keys)
	m := Memory{BytesPerKey: float64(heap()-before) / float64(keys), GC: collect(), EmptyGC: empty}
	runtime.KeepAlive(maker)
	return m
}

// heap is the live heap once it has stopped falling: what a contender left behind
// may hang on finalizers for a cycle or two.
func heap() int64 {
	var s runtime.MemStats
	for last, still := int64(0), 0; still < 3; {
		runtime.GC()
		runtime.ReadMemStats(&s)
		if now := int64(s.HeapAlloc); now < last-last/100 || last == 0 {
			last, still = now, 0
		} else {
			still++
		}
	}
	return int64(s.HeapAlloc)
}

func collect() time.Duration {
	var runs [5]time.Duration
	for i := range runs {
		start := time.Now()
		runtime.GC()
		runs[i] = time.Since(start)
	}
	return Median(runs[:])
}
