package weirtest

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// adjusts: what Refund and Settle are made of.
func adjusts(t *testing.T, open opener) {
	charge := func(s *stand, p *weir.Policy, cost int64) weir.Ask {
		s.Helper()
		a := ask(p, "k", cost)
		if p.Limit.Algorithm == weir.LeakyQueue {
			a.Slack = algo.Max
		}
		ok, out := s.take(a)
		if !ok {
			s.Fatalf("cost %d is refused: %+v", cost, out)
		}
		a.At = out[0].At + out[0].Wait
		return a
	}
	correct := func(a weir.Ask, by int64) weir.Ask {
		a.Cost = by
		return a
	}
	t.Run("at once", func(t *testing.T) {
		open.each(t, 10, func(s *stand, p *weir.Policy) {
			s.clock.Set(61 * time.Minute)
			a := charge(s, p, 4)
			s.adjust(correct(a, -4))
			if _, out := s.peek(ask(p, "k", 1)); out[0].Remaining != 10 || out[0].Reset != 0 {
				s.Errorf("after taking 4 and giving back 4: %+v, want a fresh key", out[0])
			}
			a = charge(s, p, 3)
			s.adjust(correct(a, -2))
			s.wantLeft(p, "k", 9)
			s.adjust(correct(a, 5))
			s.wantLeft(p, "k", 4)
		})
	})
	t.Run("twice", func(t *testing.T) {
		open.each(t, 10, func(s *stand, p *weir.Policy) {
			a := charge(s, p, 4)
			for range 3 {
				s.adjust(correct(a, -4))
				s.wantLeft(p, "k", 10) // never above the capacity
			}
			if ok, _ := s.take(ask(p, "k", 11)); ok {
				s.Error("refunds have lifted the capacity")
			}
			charge(s, p, 10)
			s.wantLeft(p, "k", 0)
		})
	})
	t.Run("an unknown key", func(t *testing.T) {
		open.each(t, 10, func(s *stand, p *weir.Policy) {
			s.adjust(correct(ask(p, "k", 0), -5))
			s.wantLeft(p, "k", 10)
			s.adjust(correct(ask(p, "k", 0), 7))
			s.wantLeft(p, "k", 3)
			s.wantLeft(p, "l", 10)
		})
	})
	t.Run("charged below nothing", func(t *testing.T) {
		open.each(t, 10, func(s *stand, p *weir.Policy) {
			a := charge(s, p, 1)
			s.adjust(correct(a, 14)) // 15 of 10
			s.wantLeft(p, "k", 0)
			s.adjust(correct(a, -6)) // 9 of 10
			s.wantLeft(p, "k", 1)
		})
	})
	t.Run("after the window", func(t *testing.T) {
		for _, l := range limits(10) {
			if l.Algorithm == weir.TokenBucket || l.Algorithm == weir.LeakyQueue {
				continue // a debt has no window
			}
			t.Run(l.Algorithm.String(), func(t *testing.T) {
				s := open.stand(t)
				p := s.policy("policy", l)
				a := charge(s, p, 4)
				s.clock.Set(2 * time.Hour)
				charge(s, p, 6)
				s.adjust(correct(a, -4))
				s.wantLeft(p, "k", 4)
			})
		}
	})
	open.script(t, "half drained", `
policy p  10 per 10s
at 0s  take k x6  ok  remaining 4
at 5s  refund k
at 5s  peek k     ok  remaining 10  reset 0s
at 5s  take k x10 ok  remaining 0
`)
	open.script(t, "the previous sliding window", `
policy p  sliding_window 10 per 10s
at 5s   take k x10  ok
at 15s  peek k      ok  remaining 5
at 15s  settle k x4
at 15s  peek k      ok  remaining 8
`)
	open.script(t, "the middle of the log", `
policy p  sliding_log 3 per 10s
at 0s  take a  ok
at 0s  take k  ok
at 1s  take k  ok
at 2s  take k  ok
at 3s  take k  refuse  retry 7s
at 3s  refund k
at 3s  take k  ok
at 3s  take k  refuse  retry 7s
at 11s take k  ok      remaining 1
`)
	open.script(t, "a reservation", `
policy p  fixed_window 2 per 10s
at 0s  take k x2 slack 1m  ok  wait 0s
at 0s  take k slack 1m     ok  wait 10s
at 0s  refund k
at 0s  take k x2 slack 1m  ok  wait 10s
at 0s  take k slack 1m     ok  wait 20s
`)
	open.script(t, "several at once", `
policy p  10 per 1h
policy q  sliding_log 20 per 1h
at 0s  take k x4  ok      remaining 6 of p  remaining 16 of q
at 0s  settle k x9
at 0s  peek k     ok      remaining 1 of p  remaining 11 of q
at 0s  refund k
at 0s  peek k     ok      remaining 10 of p  remaining 20 of q
`)
}
