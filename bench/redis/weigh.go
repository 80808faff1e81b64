package redis

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// Weight is what keys take in Redis.
type Weight struct {
	What        string
	BytesPerKey float64
	Name        int // bytes of the name of a key
}

// Weigh fills the server with live keys of each kind of limit and asks what they take,
// their names, expiry and places in the table included.
func Weigh(ctx context.Context, s *Server, keys []string) ([]Weight, error) {
	hour := func(a weir.Algorithm) weir.Limit {
		return weir.Limit{Quota: 1000, Window: time.Hour, Algorithm: a}
	}
	all := keys
	ours := func(what string, l weir.Limit, units int, lend bool) func() (Weight, error) {
		return func() (Weight, error) {
			keys := all[:len(all)/max(units/10, 1)] // a log takes its time
			n, err := OpenNode(s.Addr, Setup{})
			if err != nil {
				return Weight{}, err
			}
			defer n.Close()
			p, err := weir.NewPolicy("api", l)
			if err != nil {
				return Weight{}, err
			}
			return s.grown(ctx, what, len(keys), func(i int) error {
				for range units {
					if lend {
						loan := weir.Loan{Policy: p, Key: []byte(keys[i])}
						loan.Want = 10
						if err := n.Store.Lend(ctx, []weir.Loan{loan}, make([]weir.Grant, 1)); err != nil {
							return err
						}
					}
					ask := weir.Ask{Policy: p, Key: []byte(keys[i]), Cost: 1}
					if _, err := n.Store.Take(ctx, []weir.Ask{ask}, make([]weir.Verdict, 1)); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	rival := func(c Contender, l Limit, units int) func() (Weight, error) {
		return func() (Weight, error) {
			keys := all[:len(all)/10] // which live for a second
			take, done, err := c.Open(s.Addr, l)
			if err != nil {
				return Weight{}, err
			}
			defer done()
			return s.grown(ctx, c.Name, len(keys), func(i int) error {
				for range units {
					if _, err := take(ctx, keys[i]); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	rivals := Rivals()
	exact := hour(weir.SlidingLog)
	weighings := []func() (Weight, error){
		ours("weir token_bucket", hour(weir.TokenBucket), 1, false),
		ours("weir token_bucket, units lent", hour(weir.TokenBucket), 1, true),
		ours("weir fixed_window", hour(weir.FixedWindow), 1, false),
		ours("weir sliding_window", hour(weir.SlidingWindow), 1, false),
		ours("weir sliding_log, 100 entries", exact, 100, false),
		rival(rivals[0], slow, 1),
		rival(rivals[2], slow, 1),
	}
	var weights []Weight
	for _, w := range weighings {
		if err := s.Empty(ctx); err != nil {
			return nil, err
		}
		got, err := w()
		if err != nil {
			return nil, err
		}
		weights = append(weights, got)
	}
	return weights, nil
}

// slow keeps the keys of rivals alive long enough to be weighed.
var slow = Limit{PerSecond: 1}

// grown measures what putting n keys in costs, from many callers.
func (s *Server) grown(ctx context.Context, what string, n int, put func(i int) error) (Weight, error) {
	before, err := s.Memory(ctx)
	if err != nil {
		return Weight{}, err
	}
	const callers = 64
	errs := make(chan error, callers)
	for c := range callers {
		go func() {
			for i := c; i < n; i += callers {
				if err := put(i); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range callers {
		if e := <-errs; e != nil {
			err = e
		}
	}
	if err != nil {
		return Weight{}, err
	}
	after, err := s.Memory(ctx)
	if err != nil {
		return Weight{}, err
	}
	held, err := s.c.DBSize(ctx).Result()
	if err != nil {
		return Weight{}, err
	}
	if held < int64(n) {
		return Weight{}, fmt.Errorf("bench: %s: %d of %d keys are left; they expired while they were put in", what, held, n)
	}
	name, err := s.c.RandomKey(ctx).Result()
	return Weight{What: what, BytesPerKey: (after - before) / float64(n), Name: len(name)}, err
}

// Keys are n texts of a width.
func Keys(n, width int) []string {
	all := make([]string, n)
	for i := range all {
		text := fmt.Sprintf("%x", i)
		all[i] = strings.Repeat("k", max(width-len(text), 0)) + text
	}
	return all
}
