package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// burst is how many lines of one kind are logged in a second; the others are
	// counted, and said with one line more.
	burst = 10
	// sampledBy is the attribute that tells kinds of lines with one message apart.
	// Its values come from the operator's files, so the kinds are few.
	sampledBy = "policy"
)

// A sampler is a slog.Handler that passes on the first lines of each kind in every
// second, so that requests cannot fill a disk. Messages are constants.
type sampler struct {
	next  slog.Handler
	kinds *kinds
}

type kinds struct {
	mu  sync.Mutex
	all map[kind]*tally
}

type kind struct {
	message, by string
	level       slog.Level
}

// tally counts the lines of a kind in one second.
type tally struct {
	second   int64
	lines    int
	dropped  int
	overflow slog.Handler // says how many were dropped
}

func newSampler(next slog.Handler) *sampler {
	return &sampler{next, &kinds{all: make(map[kind]*tally)}}
}

// Enabled implements slog.Handler.
func (s *sampler) Enabled(ctx context.Context, l slog.Level) bool { return s.next.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (s *sampler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &sampler{s.next.WithAttrs(attrs), s.kinds}
}

// WithGroup implements slog.Handler.
func (s *sampler) WithGroup(name string) slog.Handler {
	return &sampler{s.next.WithGroup(name), s.kinds}
}

// Handle implements slog.Handler.
func (s *sampler) Handle(ctx context.Context, r slog.Record) error {
	k := kind{message: r.Message, level: r.Level}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == sampledBy {
			k.by = a.Value.String()
		}
		return k.by == ""
	})
	over, pass := s.kinds.count(k, r.Time.Unix(), s.next)
	if over > 0 {
		summarize(ctx, s.next, k, r.Time, over)
	}
	if !pass {
		return nil
	}
	return s.next.Handle(ctx, r)
}

// count counts a line: whether it is to be logged, and how many of the second
// before were not.
func (ks *kinds) count(k kind, second int64, next slog.Handler) (over int, pass bool) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	t := ks.all[k]
	if t == nil {
		t = &tally{second: second, overflow: next}
		ks.all[k] = t
	}
	if second > t.second {
		over = t.dropped
		*t = tally{second: second, overflow: next}
	}
	if t.lines++; t.lines > burst {
		t.dropped++
		return over, false
	}
	return over, true
}

// flush says what was left out in the seconds before now, and for the zero time in
// all.
func (s *sampler) flush(now time.Time) {
	s.kinds.mu.Lock()
	ended := make(map[kind]*tally)
	for k, t := range s.kinds.all {
		if now.IsZero() || now.Unix() > t.second {
			ended[k] = t
			delete(s.kinds.all, k)
		}
	}
	s.kinds.mu.Unlock()
	if now.IsZero() {
		now = time.Now()
	}
	for k, t := range ended {
		if t.dropped > 0 {
			summarize(context.Background(), t.overflow, k, now, t.dropped)
		}
	}
}

// summarize logs how many lines of a kind were left out.
func summarize(ctx context.Context, to slog.Handler, k kind, at time.Time, count int) {
	r := slog.NewRecord(at, k.level, "lines left out", 0)
	r.AddAttrs(slog.String("message", k.message), slog.Int("count", count))
	if k.by != "" {
		r.AddAttrs(slog.String(sampledBy, k.by))
	}
	_ = to.Handle(ctx, r) // as with any line, there is nobody to tell
}
