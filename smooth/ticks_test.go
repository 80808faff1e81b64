package smooth

import (
	"math"
	"testing"
)

func TestTicksConvertsAsJavaDoes(t *testing.T) {
	for f, want := range map[float64]int64{
		0: 0, 0.999: 0, -0.999: 0, 1.5: 1, -1.5: -1, 2.9999999999: 2,
		1<<63 - 1024: 1<<63 - 1024, 1 << 63: math.MaxInt64, 1.5 * (1 << 63): math.MaxInt64, math.Inf(1): math.MaxInt64,
		-1 << 63: math.MinInt64, -1.5 * (1 << 63): math.MinInt64, math.Inf(-1): math.MinInt64,
		math.NaN(): 0,
	} {
		if got := ticks(f); got != want {
			t.Errorf("ticks(%v) = %d, want %d", f, got, want)
		}
	}
}

func TestSumsSaturate(t *testing.T) {
	const most, least = math.MaxInt64, math.MinInt64
	for _, c := range []struct{ a, b, sum, difference int64 }{
		{3, 4, 7, -1},
		{most, 1, most, most - 1},
		{most, -1, most - 1, most},
		{most, most, most, 0},
		{least, 1, least + 1, least},
		{least, -1, least, least + 1},
		{least, least, least, 0},
		{0, least, least, most},
		{-1, least, least, most},
		{1, least, least + 1, most},
		{most, least, -1, most},
		{least, most, -1, least},
	} {
		if got := add(c.a, c.b); got != c.sum {
			t.Errorf("%d + %d = %d, want %d", c.a, c.b, got, c.sum)
		}
		if got := sub(c.a, c.b); got != c.difference {
			t.Errorf("%d - %d = %d, want %d", c.a, c.b, got, c.difference)
		}
	}
}
