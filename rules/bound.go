package rules

import (
	"fmt"

	"github.com/weirhq/weir"
)

// Bounds says for each limit of the rule what it really keeps, for people (cases
// B07 and S55): "at most 10 in any 1m (burst 5 + quota 5 per 1m)". The limits must
// be valid. A rule without limits has no bounds.
func (r *Rule) Bounds() []string {
	var all []string
	for _, l := range r.limits() {
		all = append(all, Bound(l.Weir(), r.cost()))
	}
	return all
}

// Bound says what a valid limit really keeps in any span of one window, wherever
// the span begins, if no request costs more than cost.
func Bound(l weir.Limit, cost int64) string {
	window := FormatWindow(l.Window)
	if l.Quota == 0 {
		return "refuses everything that costs something"
	}
	how := ""
	switch l.Algorithm {
	case weir.TokenBucket:
		how = fmt.Sprintf("burst %d + quota %d per %s", l.Capacity(), l.Quota, window)
	case weir.LeakyQueue:
		how = fmt.Sprintf("one by one at %d per %s; up to %d wait", l.Quota, window, l.Queue)
	case weir.FixedWindow, weir.FixedWindowFirst:
		how = fmt.Sprintf("quota %d twice, around the edge of two windows", l.Quota)
	case weir.SlidingWindow:
		how = fmt.Sprintf("quota %d twice less one, if use leaps; even use gets %d", l.Quota, l.Quota)
	case weir.SlidingSlices:
		how = fmt.Sprintf("quota %d twice, if use comes at the edges of slices", l.Quota)
	case weir.SlidingLog:
		how = "exact"
	case weir.WarmUp:
		how = fmt.Sprintf("one by one at %d per %s once warm", l.Quota, window)
	}
	return fmt.Sprintf("at most %d in any %s (%s)", l.Bound(cost), window, how)
}
