package weirtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir"
)

// Recorder is a [weir.Observer] that remembers what it hears. The zero value is
// empty. It may be used concurrently; decisions of one goroutine keep their order.
type Recorder[R any] struct {
	mu     sync.Mutex
	events []Event[R]
}

// An Event is one decision that a [Recorder] heard of, or, if Err is set, one
// failure of the store. It copies what a [weir.Decision] only lends.
type Event[R any] struct {
	Request  R
	Err      error // of the store; then nothing below is set
	Allowed  bool
	Degraded bool
	Wait     time.Duration
	Retry    time.Duration
	Version  string
	Limits   []weir.ServiceLimit
	Keys     []string // the partition key of each of Limits, "" if it was not asked
}

// Decided implements [weir.Observer].
func (r *Recorder[R]) Decided(_ context.Context, req R, d *weir.Decision) {
	e := Event[R]{Request: req, Allowed: d.Allowed, Degraded: d.Degraded, Wait: d.Wait, Retry: d.RetryAfter, Version: d.Version}
	for i := range d.Len() {
		e.Limits = append(e.Limits, d.Limit(i))
		e.Keys = append(e.Keys, string(d.Key(i)))
	}
	r.add(e)
}

// StoreFailed implements [weir.Observer].
func (r *Recorder[R]) StoreFailed(_ context.Context, req R, err error) {
	r.add(Event[R]{Request: req, Err: err})
}

func (r *Recorder[R]) add(e Event[R]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns what was heard since the last call, oldest first, and forgets it.
func (r *Recorder[R]) Events() []Event[R] {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := slices.Clone(r.events)
	r.events = r.events[:0]
	return events
}
