package smooth_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir/smooth"
)

func BenchmarkTryAcquire(b *testing.B) {
	b.Run("bursty", func(b *testing.B) {
		l := newBursty(b, 1e9, smooth.Options{})
		b.ReportAllocs()
		for b.Loop() {
			_, _ = l.TryAcquire(1, 0)
		}
	})
	b.Run("warming up", func(b *testing.B) {
		l, err := smooth.NewWarmingUp(1e9, smooth.Options{WarmUp: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = l.TryAcquire(1, 0)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		l := newBursty(b, 1e9, smooth.Options{})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = l.TryAcquire(1, 0)
			}
		})
	})
}

func BenchmarkReserve(b *testing.B) {
	p := warming(b, 1000, 10*sec, 3)
	s, now := p.Fresh(0), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		s, _ = p.Reserve(s, now, 1)
		now += 1500
	}
}
