package algo_test

import (
	"testing"

	"github.com/weirhq/weir/algo"
)

// TestAReservationGivenBackFreesNoEarlierWindow: the windows before it stay full
// until it, and Reset says so: only then does the state equal a fresh one.
func TestAReservationGivenBackFreesNoEarlierWindow(t *testing.T) {
	k := key{p: algo.Params{Kind: algo.FixedWindow, Cap: 2, Window: 10 * second}}
	k.take(start, 2, 0)
	v := k.take(start, 1, algo.Max)
	k.adjust(start, start+v.Wait, -1)
	v = k.look(start + second)
	if v.Remaining != 0 || v.Reset != 9*second {
		t.Errorf("%+v, want nothing left and a reset in 9 s", v)
	}
	if v := k.take(start+second, 1, 0); v.OK || v.Wait != 9*second {
		t.Errorf("%+v", v)
	}
	fresh := key{p: k.p}
	if got, want := k.take(start+second+v.Reset, 1, 0), fresh.take(start+second+v.Reset, 1, 0); got != want {
		t.Errorf("after its reset: %+v, want %+v as of a fresh key", got, want)
	}
}

// TestAnAbsurdBillIsForgottenWhole: what a log charges without asking stays within
// Max, and so its entries must, or they take more with them than was used.
func TestAnAbsurdBillIsForgottenWhole(t *testing.T) {
	for _, p := range small(10) {
		k := key{p: p}
		for i := range int64(3) {
			k.adjust(start+i, start+i, algo.Max)
			k.adjust(start+i, start+i, algo.Max)
		}
		if p.Kind == algo.Bucket || p.Kind == algo.Queue {
			continue // that debt takes centuries
		}
		now := int64(start + 3*hour)
		fresh := key{p: p}
		if got, want := k.look(now), fresh.look(now); got != want {
			t.Errorf("%+v: %+v, want %+v as of a fresh key", p, got, want)
		}
		if v := k.take(now, 10, 0); !v.OK || k.take(now, 1, 0).OK {
			t.Errorf("%+v: after the bill was forgotten %+v, state %+v", p, v, k.state)
		}
	}
}
