package tier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirtest"
)

// eager marks all that it is asked as fast, as a rule with store: fast does.
type eager struct{ *tier.Lease }

func (e eager) fast(asks []weir.Ask) []weir.Ask {
	marked := make([]weir.Ask, len(asks))
	for i, a := range asks {
		p := *a.Policy
		p.Fast = true
		a.Policy = &p
		marked[i] = a
	}
	return marked
}

func (e eager) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return e.Lease.Take(ctx, e.fast(asks), out)
}

func (e eager) Peek(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	return e.Lease.Peek(ctx, e.fast(asks), out)
}

func (e eager) Adjust(ctx context.Context, asks []weir.Ask) error {
	return e.Lease.Adjust(ctx, e.fast(asks))
}

func (e eager) Reset(ctx context.Context, asks []weir.Ask) error {
	return e.Lease.Reset(ctx, e.fast(asks))
}

// Supports refuses limits that are lent, of which a few units may be missing.
func (e eager) Supports(p *weir.Policy) error {
	if p.Params().Lending().Life > 0 {
		return weir.ErrUnsupported
	}
	return e.Lease.Supports(p)
}

// TestSmallLimitsAreExactThoughFast: to the unit and the microsecond.
func TestSmallLimitsAreExactThoughFast(t *testing.T) {
	weirtest.TestStore(t, func(t testing.TB, c weir.Clock) weir.Store { return eager{leaseOverBank(t, c).(*tier.Lease)} })
}

// lender is a node with a loan of a key, on a clock that stands still.
type lender struct {
	t      *testing.T
	clock  *weirtest.Clock
	bank   *down
	lease  *tier.Lease
	policy *weir.Policy
	used   int64
}

// down is a bank that may be out of reach.
type down struct {
	*bank
	down bool
}

func (d *down) Take(ctx context.Context, asks []weir.Ask, out []weir.Verdict) (bool, error) {
	if d.down {
		return false, weir.ErrUnavailable
	}
	return d.bank.Take(ctx, asks, out)
}

func (d *down) Lend(ctx context.Context, loans []weir.Loan, out []weir.Grant) error {
	if d.down {
		return weir.ErrUnavailable
	}
	return d.bank.Lend(ctx, loans, out)
}

// withLoan runs a test in a bubble, with some units lent.
func withLoan(t *testing.T, l weir.Limit, test func(*testing.T, *lender)) {
	synctest.Test(t, func(t *testing.T) {
		c := new(weirtest.Clock)
		b := &down{bank: newBank(c)}
		v := &lender{t: t, clock: c, bank: b, lease: tier.NewLease(b, tier.LeaseOptions{Clock: c}), policy: fast("p", l)}
		defer func() {
			v.bank.down = false
			if err := v.lease.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		for range 200 {
			if ok, _ := v.take(v.policy, 1); !ok {
				t.Fatal("refused")
			}
			v.used++
			c.Advance(100 * time.Microsecond)
			synctest.Wait()
		}
		if v.lease.Stats().Local < 100 || v.units() < 10 {
			t.Fatalf("%+v, %d units lent", v.lease.Stats(), v.units())
		}
		test(t, v)
	})
}

func (v *lender) take(p *weir.Policy, cost int64) (bool, weir.Verdict) {
	v.t.Helper()
	out := make([]weir.Verdict, 1)
	ok, err := v.lease.Take(context.Background(), []weir.Ask{ask(p, "k", cost)}, out)
	if err != nil {
		v.t.Fatal(err)
	}
	return ok, out[0]
}

func left(t *testing.T, s weir.Store, p *weir.Policy) int64 {
	t.Helper()
	out := make([]weir.Verdict, 1)
	if _, err := s.Peek(context.Background(), []weir.Ask{ask(p, "k", 0)}, out); err != nil {
		t.Fatal(err)
	}
	return out[0].Remaining
}

// units is how many units are lent.
func (v *lender) units() int64 {
	v.t.Helper()
	return left(v.t, v.lease, v.policy) - left(v.t, v.bank, v.policy)
}

// slowly is a limit that gives nothing back during a test.
var slowly = weir.Limit{Quota: 10_000, Window: 10_000 * time.Hour}

func TestALoanIsUsedWhileTheStoreIsDown(t *testing.T) {
	withLoan(t, slowly, func(t *testing.T, v *lender) {
		units := v.units()
		v.bank.down = true
		for range units {
			if ok, _ := v.take(v.policy, 1); !ok {
				t.Fatal("refused")
			}
		}
		out := make([]weir.Verdict, 1)
		if _, err := v.lease.Take(t.Context(), []weir.Ask{ask(v.policy, "k", 1)}, out); !errors.Is(err, weir.ErrUnavailable) {
			t.Errorf("without units, from a store that is down: %v", err)
		}
	})
}

func TestALoanEndsWithItsLife(t *testing.T) {
	withLoan(t, slowly, func(t *testing.T, v *lender) {
		life := time.Duration(v.policy.Params().Lending().Life) * time.Microsecond
		v.bank.down = true
		v.clock.Advance(life - life/100 - time.Second/10)
		if ok, _ := v.take(v.policy, 1); !ok {
			t.Fatal("refused in time")
		}
		v.clock.Advance(time.Second / 10)
		out := make([]weir.Verdict, 1)
		if _, err := v.lease.Take(t.Context(), []weir.Ask{ask(v.policy, "k", 1)}, out); err == nil {
			t.Errorf("a dead loan was used: %+v", out)
		}
	})
}

func TestALocalVerdictIsAsTheStoreWouldSay(t *testing.T) {
	for _, a := range []weir.Algorithm{weir.TokenBucket, weir.FixedWindow, weir.SlidingWindow} {
		t.Run(a.String(), func(t *testing.T) {
			l := slowly
			l.Algorithm = a
			withLoan(t, l, func(t *testing.T, v *lender) {
				before := v.lease.Stats().Local
				ok, got := v.take(v.policy, 3)
				want := weir.Verdict{OK: true, At: v.clock.Now().UnixMicro(), Remaining: 10_000 - v.used - 3, Reset: got.Reset}
				if !ok || got != want || v.lease.Stats().Local != before+1 {
					t.Errorf("%+v, want %+v", got, want)
				}
				alone := weir.NewMemory(weir.MemoryOptions{Clock: v.clock})
				out := make([]weir.Verdict, 1)
				_, _ = alone.Take(t.Context(), []weir.Ask{ask(v.policy, "k", v.used+3)}, out)
				if d := out[0].Reset - got.Reset; d < 0 || d > 1_000_000 {
					t.Errorf("a reset of %d, and without a loan %d", got.Reset, out[0].Reset)
				}
			})
		})
	}
}

func TestARefundGoesBackIntoTheLoan(t *testing.T) {
	withLoan(t, slowly, func(t *testing.T, v *lender) {
		_, charged := v.take(v.policy, 5)
		units, bank := v.units(), left(t, v.bank, v.policy)
		back := ask(v.policy, "k", -5)
		back.At = charged.At
		if err := v.lease.Adjust(t.Context(), []weir.Ask{back}); err != nil {
			t.Fatal(err)
		}
		if v.units() != units+5 || left(t, v.bank, v.policy) != bank {
			t.Errorf("%d units lent, want %d; the store has %d, want %d", v.units(), units+5, left(t, v.bank, v.policy), bank)
		}
		// Of a charge before the loan, of one to come and of a charge of more, the store.
		for _, a := range []weir.Ask{
			{Policy: v.policy, Key: []byte("k"), Cost: -1, At: charged.At - 3600_000_000},
			{Policy: v.policy, Key: []byte("k"), Cost: -1, At: charged.At + 3600_000_000},
			{Policy: v.policy, Key: []byte("k"), Cost: -5000, At: charged.At},
			{Policy: v.policy, Key: []byte("k"), Cost: -1, At: charged.At, Spilled: true},
			{Policy: v.policy, Key: []byte("k"), Cost: 1, At: charged.At},
		} {
			units = v.units()
			if err := v.lease.Adjust(t.Context(), []weir.Ask{a}); err != nil {
				t.Fatal(err)
			}
			if v.units() != units {
				t.Errorf("%+v changed the units lent from %d to %d", a, units, v.units())
			}
		}
	})
}

func TestAResetEndsTheLoan(t *testing.T) {
	withLoan(t, slowly, func(t *testing.T, v *lender) {
		if err := v.lease.Reset(t.Context(), []weir.Ask{ask(v.policy, "k", 0)}); err != nil {
			t.Fatal(err)
		}
		if v.units() != 0 || left(t, v.bank, v.policy) != 10_000 {
			t.Errorf("%d units lent, %d left", v.units(), left(t, v.bank, v.policy))
		}
	})
}

// TestNewNumbersEndTheLoan, and it is given back as far as it was charged under them.
func TestNewNumbersEndTheLoan(t *testing.T) {
	t.Run("a smaller quota", func(t *testing.T) {
		withLoan(t, slowly, func(t *testing.T, v *lender) {
			p := fast("p", weir.Limit{Quota: 5000, Window: slowly.Window})
			if ok, d := v.take(p, 1); !ok || d.Remaining > 5000-v.used-1 {
				t.Errorf("%v %+v", ok, d)
			}
			if err := v.lease.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := left(t, v.bank, p); got != 5000-v.used-1 {
				t.Errorf("%d left, want %d", got, 5000-v.used-1)
			}
		})
	})
	for _, stays := range []bool{true, false} { // fast or not
		name := map[bool]string{true: "another window", false: "another window, and no longer fast"}[stays]
		t.Run(name, func(t *testing.T) {
			l := weir.Limit{Quota: 10_000, Window: time.Hour, Algorithm: weir.FixedWindow}
			withLoan(t, l, func(t *testing.T, v *lender) {
				l.Window = 2 * time.Hour
				p := fast("p", l)
				p.Fast = stays
				v.take(p, 100)
				if err := v.lease.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := left(t, v.bank, p); got != 9_900 {
					t.Errorf("%d left of the new window, want 9900: units of the old one came back", got)
				}
			})
		})
	}
}

func TestRarelyAskedKeysAreNotLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(weirtest.Clock)
		l := tier.NewLease(newBank(c), tier.LeaseOptions{Clock: c})
		defer l.Close(context.Background())
		p, out := fast("p", slowly), make([]weir.Verdict, 1)
		for range 100 {
			if ok, err := l.Take(t.Context(), []weir.Ask{ask(p, "k", 10)}, out); !ok || err != nil {
				t.Fatal(ok, err)
			}
			synctest.Wait()
			c.Advance(1001 * time.Millisecond)
		}
		if s := l.Stats(); s.Loans != 0 || s.Local != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestAShadowAskUsesTheLoanAndRefusesNothing.
func TestAShadowAskUsesTheLoanAndRefusesNothing(t *testing.T) {
	withLoan(t, slowly, func(t *testing.T, v *lender) {
		units := v.units()
		a := ask(v.policy, "k", 2)
		a.Shadow = true
		none := must(weir.NewPolicy("none", weir.Limit{Window: time.Second}))
		out := make([]weir.Verdict, 2)
		ok, err := v.lease.Take(t.Context(), []weir.Ask{a, ask(none, "k", 1)}, out)
		if ok || err != nil || !out[0].OK || out[1].OK || v.units() != units-2 {
			t.Errorf("a shadow beside a refusal: %v %v %+v, %d units of %d", ok, err, out, v.units(), units)
		}
		a.Shadow = false
		units = v.units()
		ok, err = v.lease.Take(t.Context(), []weir.Ask{a, ask(none, "k", 1)}, out)
		if ok || err != nil || !out[0].OK || out[1].OK || v.units() != units {
			t.Errorf("an enforced ask beside a refusal: %v %v %+v, %d units of %d", ok, err, out, v.units(), units)
		}
	})
}

func TestPromise(t *testing.T) {
	for _, c := range []struct {
		limit weir.Limit
		fast  bool
		want  string
	}{
		{weir.PerSecond(100), false, "strict: the store decides"},
		{weir.PerMinute(5), true, "strict: the limit is too small"},
		{weir.PerSecond(1000), true, "up to 500 units may lie unused at the nodes, each for 1.5s at most"},
		{weir.Limit{Quota: 1000, Window: time.Minute, Algorithm: weir.FixedWindow}, true, "until their window ends"},
	} {
		p := must(weir.NewPolicy("p", c.limit))
		p.Fast = c.fast
		if got := tier.Promise(p); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q does not say %q", c.limit, got, c.want)
		}
	}
}
