package weirrueidis_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirredis/clienttest"
	"github.com/weirhq/weir/weirtest"
)

// TestAPlaceInALaterWindowIsNotReservedInVain: of identities in several slots, one would
// wait for the next window and another refuses. The window now must not be lost to that.
func TestAPlaceInALaterWindowIsNotReservedInVain(t *testing.T) {
	c := open(t, clienttest.Where{Addresses: redistest.Cluster(t, 3).Addrs, Cluster: true})
	store := weirredis.New(c, weirredis.Options{Clock: new(weirtest.Clock), Timeout: time.Minute})
	policy := func(name string, quota int64) *weir.Policy {
		p, err := weir.NewPolicy(name, weir.Limit{Quota: quota, Window: 10 * time.Second, Algorithm: weir.FixedWindow})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	waits, refuses, watches := policy("waits", 2), policy("refuses", 1), policy("watches", 5)
	take := func(want bool, asks ...weir.Ask) []weir.Verdict {
		t.Helper()
		out := make([]weir.Verdict, len(asks))
		if ok, err := store.Take(t.Context(), asks, out); err != nil || ok != want {
			t.Fatalf("%v, %v: %+v", ok, err, out)
		}
		return out
	}
	take(true, weir.Ask{Policy: waits, Key: []byte("a"), Cost: 1})
	take(true, weir.Ask{Policy: refuses, Key: []byte("b"), Cost: 1})
	out := take(false,
		weir.Ask{Policy: waits, Key: []byte("a"), Cost: 2, Slack: 60_000_000},
		weir.Ask{Policy: refuses, Key: []byte("b"), Cost: 1},
		weir.Ask{Policy: watches, Key: []byte("c"), Cost: 1, Shadow: true})
	if !out[0].OK || out[1].OK || !out[2].OK || out[2].Remaining != 4 {
		t.Errorf("%+v", out)
	}
	if out := take(true, weir.Ask{Policy: waits, Key: []byte("a"), Cost: 1, Slack: 60_000_000}); out[0].Wait != 0 {
		t.Errorf("the unit that is left in the window: %+v", out[0])
	}
	if out := take(true, weir.Ask{Policy: watches, Key: []byte("c"), Cost: 1}); out[0].Remaining != 3 {
		t.Errorf("the shadow of a refused request was not charged once: %+v", out[0])
	}
}
