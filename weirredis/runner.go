package weirredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
)

// runner carries jobs to Redis and their answers back. It is used again and again.
type runner struct {
	jobs   []*job
	groups []*group // the first used of them are on their way
	used   int
	byTag  map[string]*group
	calls  []*Call
	enact  enact
}

// group is what one call of the script carries.
type group struct {
	batch *batch
	call  Call
	args  [2]string
	tries int
}

func newRunner() *runner { return &runner{byTag: make(map[string]*group)} }

// group returns an empty one.
func (r *runner) group() *group {
	if r.used == len(r.groups) {
		r.groups = append(r.groups, &group{batch: newBatch()})
	}
	g := r.groups[r.used]
	r.used++
	g.batch.clear()
	g.tries = 0
	return g
}

// sort puts the jobs into groups: one of all, or in a Cluster one for each identity.
func (r *runner) sort(tag func(key string) string) {
	r.used = 0
	clear(r.byTag)
	for _, j := range r.jobs {
		t := ""
		if tag != nil {
			t = tag(j.asks[0].key)
		}
		g := r.byTag[t]
		if g == nil {
			g = r.group()
			r.byTag[t] = g
		}
		g.batch.add(j)
	}
}

// run carries a runner's jobs, and finishes them.
func (s *Store) run(ctx context.Context, r *runner) {
	start := time.Now()
	ctx, cancel := context.WithDeadline(ctx, r.jobs[0].born.Add(s.timeout))
	defer cancel()
	r.sort(s.tag)
	r.calls = r.calls[:0]
	for _, g := range r.groups[:r.used] {
		r.calls = append(r.calls, s.load(g))
	}
	s.stats.calls.Add(uint64(len(r.calls)))
	s.client.Run(ctx, r.calls)
	if end := time.Now(); ctx.Err() == nil {
		s.queue.ended(end, end.Sub(start))
	}
	for i := 0; i < r.used; i++ { // mend may add some
		g := r.groups[i]
		s.mend(ctx, r, g)
		s.settle(ctx, r, g)
	}
}

// load writes the call of a group.
func (s *Store) load(g *group) *Call {
	g.args[0] = g.batch.encode()
	args := g.args[:1]
	if s.clock != nil {
		g.args[1] = strconv.FormatInt(max(s.clock.Now().UnixMicro(), 0), 10)
		args = g.args[:2]
	}
	g.call = Call{Script: script, SHA1: scriptSHA, Keys: g.batch.keys, Args: args}
	return &g.call
}

// mend sends a call again that Redis refused to carry out and that can be helped.
func (s *Store) mend(ctx context.Context, r *runner, g *group) {
	again := func() {
		s.stats.calls.Add(1)
		s.client.Run(ctx, []*Call{&g.call})
	}
	if refusal(g.call.Err, "NOSCRIPT") {
		s.stats.loads.Add(1)
		g.call.Text = true
		again()
	}
	// The slot is on its way to another node, some of the keys are there already and
	// some are not. Each key alone is found.
	for wait := 2 * time.Millisecond; refusal(g.call.Err, "TRYAGAIN") && len(g.batch.keys) > 1 && wait <= 8*time.Millisecond; wait *= 2 {
		s.stats.tryAgain.Add(1)
		if len(g.batch.requests) > 1 {
			s.part(ctx, r, g)
			return
		}
		if weir.SystemClock().Sleep(ctx, wait) != nil {
			return
		}
		again()
	}
}

// part gives each job of a group a call of its own.
func (s *Store) part(ctx context.Context, r *runner, g *group) {
	var jobs []*job
	for _, q := range g.batch.requests {
		for j := q.first; j != nil; j = j.next {
			jobs = append(jobs, j)
		}
	}
	g.batch.clear()
	calls := make([]*Call, 0, len(jobs))
	for i, j := range jobs {
		j.next = nil
		to := g
		if i > 0 {
			to = r.group()
		}
		to.batch.add(j)
		calls = append(calls, s.load(to))
	}
	s.stats.calls.Add(uint64(len(calls)))
	s.client.Run(ctx, calls)
	s.mend(ctx, r, g)
}

// refusal says whether Redis answered with an error of this kind.
func refusal(err error, kind string) bool {
	var e ServerError
	return errors.As(err, &e) && strings.HasPrefix(string(e), kind)
}

// settle reads the answer of a group, and finishes its jobs.
func (s *Store) settle(ctx context.Context, r *runner, g *group) {
	err := g.call.Err
	switch {
	case err == nil:
		if err = r.enact.answer(g.batch, g.call.Reply); err != nil {
			s.stats.mirror.Add(1)
		}
	case ctx.Err() != nil:
		s.stats.lost.Add(1)
		if err = ErrTimeout; context.Cause(ctx) == context.Canceled {
			err = ctx.Err()
		}
	default:
		s.stats.failed.Add(1)
		err = fmt.Errorf("%w: %w", weir.ErrUnavailable, err)
	}
	g.call.Reply, g.call.Err = "", nil
	for _, q := range g.batch.requests {
		for j := q.first; j != nil; {
			next := j.next // the job may be gone once it is finished
			s.pool.finish(j, err)
			j = next
		}
	}
}
