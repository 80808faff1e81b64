package weirredis

import (
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// In a Cluster the keys of one call lie in one slot, and all keys of an identity do. A
// request that several identities decide is reserved with all of them at once, and what
// was charged is given back if one refuses: so nobody is allowed too much, and for the
// time of one more round trip others may find less than there is.

// spread takes or peeks asks in parts, each of which is decided together.
func (s *Store) spread(ctx context.Context, v verb, asks []weir.Ask, out []weir.Verdict, parts [][]int) (bool, error) {
	if v == take && slices.ContainsFunc(asks, irrevocable) {
		if allowed, err := s.spread(ctx, peek, asks, out, parts); err != nil || !allowed {
			if err == nil {
				err = s.watch(ctx, asks, out)
			}
			return false, err
		}
	}
	jobs := make([]*job, len(parts))
	errs := make([]error, len(parts))
	for i, part := range parts {
		jobs[i] = s.job(v, asks, part)
	}
	each(len(parts), func(i int) { errs[i] = s.submit(ctx, jobs[i]) })
	allowed := true
	for i, part := range parts {
		if errs[i] != nil {
			continue
		}
		allowed = allowed && jobs[i].allowed
		for k, n := range part {
			out[n] = jobs[i].answers[k].Verdict
		}
	}
	err := errors.Join(errs...)
	if v == take && (!allowed || err != nil) {
		s.giveBack(ctx, asks, out, parts, jobs, errs)
	}
	for i, j := range jobs {
		if errs[i] == nil {
			s.pool.put(j)
		}
	}
	return allowed && err == nil, err
}

// irrevocable is whether an ask may be charged what cannot be given back: a place in a
// later fixed window, for which the window now is forgotten. A request with such an ask
// is looked at first and charged only if all allow it, so that others may still come
// between, but it does not undo itself.
func irrevocable(a weir.Ask) bool {
	return a.Slack > 0 && !a.Shadow && a.Policy.Params().Kind == algo.FixedWindow
}

// watch charges the shadow asks of a request that is refused.
func (s *Store) watch(ctx context.Context, asks []weir.Ask, out []weir.Verdict) error {
	var shadows []weir.Ask
	var at []int
	for i := range asks {
		if asks[i].Shadow {
			shadows, at = append(shadows, asks[i]), append(at, i)
		}
	}
	answers := make([]weir.Verdict, len(shadows))
	if _, err := s.decide(ctx, take, shadows, answers); err != nil {
		return err
	}
	for k, i := range at {
		out[i] = answers[k]
	}
	return nil
}

// giveBack returns what was reserved for a request that is refused. A shadow ask is
// judged alone and stays charged.
func (s *Store) giveBack(ctx context.Context, asks []weir.Ask, out []weir.Verdict, parts [][]int, jobs []*job, errs []error) {
	// The request's own time may be over, and what it reserved must not stay so.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	each(len(parts), func(i int) {
		if errs[i] != nil || !jobs[i].allowed {
			return
		}
		back := s.pool.get(adjust, len(parts[i]))
		back.asks = back.asks[:0]
		for k, n := range parts[i] {
			a, v := jobs[i].asks[k], &out[n]
			if a.shadow || !v.OK || a.cost == 0 {
				continue
			}
			without := jobs[i].answers[k].without
			a.at, a.cost = v.At+v.Wait, -a.cost
			v.Remaining, v.Reset = without.Remaining, without.Reset
			back.asks = append(back.asks, a)
		}
		if len(back.asks) == 0 {
			s.pool.put(back)
			return
		}
		s.stats.refunds.Add(1)
		if s.submit(ctx, back) != nil {
			s.stats.refundsLost.Add(1)
			return
		}
		s.pool.put(back)
	})
}

// each runs n things at the same time.
func each(n int, do func(i int)) {
	if n == 0 {
		return
	}
	done := make(chan struct{}, n)
	for i := 1; i < n; i++ {
		go func() {
			do(i)
			done <- struct{}{}
		}()
	}
	do(0)
	for i := 1; i < n; i++ {
		<-done
	}
}

// parts splits n keys by their slots, and returns nil if all lie in one.
func (s *Store) parts(n int, key func(i int) []byte) [][]int {
	if s.tag == nil || n < 2 {
		return nil
	}
	var parts [][]int
	place := make(map[string]int, n)
	for i := range n {
		k := string(key(i))
		p, ok := place[k]
		if !ok {
			p = len(parts)
			place[k] = p
			parts = append(parts, nil)
		}
		parts[p] = append(parts[p], i)
	}
	if len(parts) == 1 {
		return nil
	}
	return parts
}

// apart is parts of one each.
func apart(n int) [][]int {
	parts := make([][]int, n)
	for i := range parts {
		parts[i] = []int{i}
	}
	return parts
}
