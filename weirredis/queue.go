package weirredis

import (
	"context"
	"sync"
	"time"
)

// queue holds the jobs that wait for a call, and says when one may start. It is bounded
// and stands before the client, so that a stall of Redis fills neither memory nor the
// client's own queues, which callers could not leave. It has no timer: a job that finds
// a call free goes at once, and those that do not travel together as soon as one is.
type queue struct {
	mu    sync.Mutex
	ring  []*job
	head  int
	n     int
	calls int // under way
	trip  trips
}

// trips knows the shortest call of late, and hence how many calls under way keep Redis
// busy. More would only make batches smaller.
type trips struct {
	most         int
	since        time.Time
	now, earlier time.Duration // the shortest of this second and of the one before; 0: none
}

// busyFor is about the time for which a full batch keeps Redis busy.
const busyFor = 200 * time.Microsecond

func (t *trips) add(end time.Time, d time.Duration) {
	if age := end.Sub(t.since); age >= time.Second {
		t.earlier, t.now, t.since = t.now, 0, end
		if age >= 2*time.Second {
			t.earlier = 0
		}
	}
	if t.now == 0 || d < t.now {
		t.now = d
	}
}

func (t *trips) calls() int {
	least := t.now
	if least == 0 || t.earlier > 0 && t.earlier < least {
		least = t.earlier
	}
	return min(max(int((least+busyFor-1)/busyFor), 2), t.most)
}

// offer takes a job into the queue, or tells the caller to run it at once on a call of
// its own, which ends by next. It returns false if there is no room.
func (q *queue) offer(j *job) (run, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.calls < q.trip.calls() {
		q.calls++
		return true, true
	}
	if q.n == len(q.ring) {
		return false, false
	}
	q.ring[(q.head+q.n)%len(q.ring)] = j
	q.n++
	return false, true
}

// next takes up to most jobs with up to maxKeys keys off the queue, for a call that is
// free again. If there are none, or enough calls without this one, the call ends.
func (q *queue) next(dst []*job, most int) []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	dst = dst[:0]
	if q.n == 0 || q.calls > q.trip.calls() {
		q.calls--
		return dst
	}
	for keys := 0; q.n > 0 && len(dst) < most; q.n-- {
		j := q.ring[q.head]
		if keys += len(j.asks); keys > maxKeys && len(dst) > 0 {
			break
		}
		q.ring[q.head] = nil
		q.head = (q.head + 1) % len(q.ring)
		dst = append(dst, j)
	}
	return dst
}

// ended says how long a call took that was answered.
func (q *queue) ended(end time.Time, d time.Duration) {
	q.mu.Lock()
	q.trip.add(end, d)
	q.mu.Unlock()
}

// waiting is the number of jobs in the queue.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

// submit sends a job on its way and waits for its answer. When it returns nil, the
// caller puts the job back after it has read it; else the job is not the caller's any
// more.
func (s *Store) submit(ctx context.Context, j *job) error {
	j.born = time.Now()
	switch run, ok := s.queue.offer(j); {
	case !ok:
		s.stats.full.Add(1)
		s.pool.put(j)
		return ErrQueue
	case run:
		j.state.Store(taken)
		r := s.runners.Get().(*runner)
		r.jobs = append(r.jobs[:0], j)
		s.run(ctx, r)
		if s.pick(r) {
			go s.loop(r)
		}
		<-j.done
	default:
		if err := await(ctx, j); err != nil {
			if j.leave() {
				s.stats.left.Add(1)
				return err
			}
			<-j.done
		}
	}
	if j.err != nil {
		err := j.err
		s.pool.put(j)
		return err
	}
	return nil
}

// await returns nil when the job is finished, or why the caller waits no longer. A job
// needs no timer of its own: calls under way end by the deadline of the oldest job in
// them, which is older than all that wait, and then what has waited for too long is
// finished by pick.
func await(ctx context.Context, j *job) error {
	if ctx.Done() == nil {
		<-j.done
		return nil
	}
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loop carries jobs until none wait.
func (s *Store) loop(r *runner) {
	for again := true; again; again = s.pick(r) {
		s.run(context.Background(), r)
	}
}

// pick takes the next jobs for a runner. If there are none, the runner is given back.
func (s *Store) pick(r *runner) bool {
	for {
		r.jobs = s.queue.next(r.jobs, s.batch)
		if len(r.jobs) == 0 {
			s.runners.Put(r)
			return false
		}
		kept := r.jobs[:0]
		dead := time.Now().Add(-s.timeout)
		for _, j := range r.jobs {
			switch {
			case !j.state.CompareAndSwap(waiting, taken):
				s.pool.put(j)
			case j.born.Before(dead):
				s.stats.left.Add(1)
				s.pool.finish(j, ErrTimeout)
			default:
				kept = append(kept, j)
			}
		}
		if r.jobs = kept; len(kept) > 0 {
			return true
		}
	}
}
