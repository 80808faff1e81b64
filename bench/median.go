package bench

import (
	"cmp"
	"slices"
)

// Median returns the middle of a few measurements, the upper one of two.
func Median[T cmp.Ordered](runs []T) T {
	sorted := slices.Sorted(slices.Values(runs))
	return sorted[len(sorted)/2]
}
