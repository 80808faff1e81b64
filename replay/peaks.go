package replay

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
)

// Peaks is the distribution of the keys' peaks in one window: how many keys asked
// at most how often in the window in which they asked most. The zero value has no
// keys.
type Peaks struct {
	peaks []peakCount // ascending
	keys  int64
}

type peakCount struct{ peak, keys int64 }

func newPeaks(counts map[uint32]int64) Peaks {
	p := Peaks{peaks: make([]peakCount, 0, len(counts))}
	for peak, keys := range maps.All(counts) {
		p.peaks = append(p.peaks, peakCount{int64(peak), keys})
		p.keys += keys
	}
	slices.SortFunc(p.peaks, func(a, b peakCount) int { return cmp.Compare(a.peak, b.peak) })
	return p
}

// Quantile is the least peak that at least this share of the keys, 0 to 1, do not
// exceed; 0 without keys.
func (p Peaks) Quantile(share float64) int64 {
	need := int64(math.Ceil(share*float64(p.keys) - 1e-9)) // 0.999 of 1000 keys are 999 of them
	seen := int64(0)
	for _, c := range p.peaks {
		if seen += c.keys; seen >= need {
			return c.peak
		}
	}
	return p.Max()
}

// Max is the greatest peak, 0 without keys.
func (p Peaks) Max() int64 {
	if len(p.peaks) == 0 {
		return 0
	}
	return p.peaks[len(p.peaks)-1].peak
}

// quantiles are the ones that reports show.
var quantiles = [...]struct {
	name  string
	share float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}

// MarshalJSON writes the quantiles {"p50":…,"p90":…,"p99":…,"p99.9":…,"max":…}.
func (p Peaks) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		P50  int64 `json:"p50"`
		P90  int64 `json:"p90"`
		P99  int64 `json:"p99"`
		P999 int64 `json:"p99.9"`
		Max  int64 `json:"max"`
	}{p.Quantile(0.5), p.Quantile(0.9), p.Quantile(0.99), p.Quantile(0.999), p.Max()})
}

// A bin counts the keys whose peak is from..to.
type bin struct{ from, to, keys int64 }

// bins are 1, 2, 3–5, 6–10, 11–20, 21–50… up to the greatest peak and past upto.
func (p Peaks) bins(upto int64) []bin {
	var all []bin
	last, i := int64(0), 0
	for to := range steps {
		b := bin{from: last + 1, to: to}
		for ; i < len(p.peaks) && p.peaks[i].peak <= to; i++ {
			b.keys += p.peaks[i].keys
		}
		all = append(all, b)
		if last = to; i == len(p.peaks) && to >= upto || len(all) == 40 {
			return all
		}
	}
	return all
}

// steps ranges over 1, 2, 5, 10, 20, 50 and so on.
func steps(yield func(int64) bool) {
	for power := int64(1); power < math.MaxInt64/100; power *= 10 {
		for _, n := range [...]int64{1, 2, 5} {
			if !yield(n * power) {
				return
			}
		}
	}
}

// roundUp is the next of 1, 2, 5, 10, 20, 50…
func roundUp(n int64) int64 {
	for s := range steps {
		if s >= n {
			return s
		}
	}
	return n
}
