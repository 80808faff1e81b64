package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// ErrEmpty is wrapped by the error for a file without a byte in it and for a
	// directory without a document.
	ErrEmpty = errors.New("empty")
	// ErrTooLarge is wrapped by the error for a document of more bytes than
	// Options.MaxBytes, or of more than 1000 files.
	ErrTooLarge = errors.New("too large")
	// ErrUnsettled is wrapped by the error for a document that keeps changing.
	ErrUnsettled = errors.New("still changing")
	// ErrRunning is returned by a Run while another of the same File has not ended.
	ErrRunning = errors.New("source: this file is being run already")
)

// Options tune a File. The zero value is what a daemon wants.
type Options struct {
	// Quiet is how long a document must have stood still to be delivered, 0 for
	// 100 ms. It is also the shortest time between two readings that a change on
	// disk can cause, so one that is told by inotify is delivered at most 2×Quiet
	// after the last write.
	Quiet time.Duration
	// MaxDelay is how long a document may keep changing before that is reported as
	// ErrUnsettled, 0 for 100×Quiet. It is never delivered half-done instead.
	MaxDelay time.Duration
	// Poll is the time between two readings when nothing else calls for one, 0 for
	// 2 s. On Linux changes are told by inotify and polls find what that misses, as
	// on network file systems; elsewhere they find everything. Each reads all of
	// the document: times and sizes alone miss a rewrite within the resolution of
	// a file system's clock.
	Poll time.Duration
	// MaxBytes bounds a document, all its files together, 0 for 16 MiB.
	MaxBytes int64
	// PollOnly does without inotify.
	PollOnly bool
	// Notify, if not nil, is told what happens, in order, on the goroutine of Run.
	// Status knows of the event by then. It may call Status and Reload.
	Notify func(Event)
}

func (o *Options) fill() error {
	if o.Quiet < 0 || o.MaxDelay < 0 || o.Poll < 0 || o.MaxBytes < 0 {
		return fmt.Errorf("source: Quiet %v, MaxDelay %v, Poll %v and MaxBytes %d must not be negative; omit them to use the defaults",
			o.Quiet, o.MaxDelay, o.Poll, o.MaxBytes)
	}
	if o.Quiet == 0 {
		o.Quiet = 100 * time.Millisecond
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = 100 * o.Quiet
	}
	if o.Poll == 0 {
		o.Poll = 2 * time.Second
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 16 << 20
	}
	if o.MaxDelay < o.Quiet {
		return fmt.Errorf("source: MaxDelay %v is shorter than Quiet %v; nothing could settle in time", o.MaxDelay, o.Quiet)
	}
	return nil
}

// A File watches a file, or a directory whose files are one document: all that
// are named *.yaml, *.yml or *.json and do not begin with a dot, in the order of
// the bytes of their names. Symbolic links are followed, subdirectories are not
// read, and whatever has such a name but is not a regular file is an error.
// Which of the two the path is, or whether it exists, may change at any time.
// The methods may be called concurrently.
type File struct {
	path    string
	options Options
	running atomic.Bool
	reload  chan struct{} // holds one request: those that come before it is met are met with it

	mu     sync.Mutex
	status Status
}

// NewFile returns a File for path, which need not exist yet. A relative path is
// relative to the working directory at the time of each reading.
func NewFile(path string, o Options) (*File, error) {
	if path == "" {
		return nil, errors.New("source: the path is empty; it must name a file or a directory")
	}
	if err := o.fill(); err != nil {
		return nil, err
	}
	return &File{path: path, options: o, reload: make(chan struct{}, 1)}, nil
}

// Reload makes Run read the document anew and deliver it even if it is
// unchanged, as a daemon does on SIGHUP. A document that has stood still is
// delivered at once, one that is just being written when it is finished. Reload
// does not wait: Notify and Status tell what came of it. Without a Run it does
// nothing, since the next one begins with a delivery anyway.
func (f *File) Reload() {
	select {
	case f.reload <- struct{}{}:
	default:
	}
}

// Run delivers the document and then each that replaces it, until ctx ends, and
// returns the error of ctx. If the first cannot be read, Notify and Status tell
// at once and Run waits for it to appear; a caller that would rather give up
// ends ctx. A read that hangs, as on a network file system that is gone, hangs
// Run.
func (f *File) Run(ctx context.Context, deliver Deliver) error {
	if !f.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer f.running.Store(false)
	select {
	case <-f.reload: // asked for before there was anything to repeat
	default:
	}

	var w *watch
	var hints <-chan struct{}
	if !f.options.PollOnly {
		var err error
		if w, err = openWatch(); err == nil {
			defer w.close()
			hints = w.hints
		} // else polls find everything, and Status says so
	}

	fw := follower{file: f, deliver: deliver, settle: settler{quiet: f.options.Quiet}}
	for ctx.Err() == nil {
		select {
		case <-hints: // the reading below answers it
		default:
		}
		// First watch, then read: what changes in between is read now, and what
		// changes later is told by the watch.
		polling := w == nil || w.follow(f.path) != nil
		l := takeLook(f.path, f.options.MaxBytes)
		f.looked(l.start, polling)

		pause := fw.step(ctx, l)
		if f.wait(ctx, hints, pause) {
			fw.forced = true
		}
	}
	return ctx.Err()
}

// wait returns when it is time to read again, and whether Reload asked for it.
func (f *File) wait(ctx context.Context, hints <-chan struct{}, pause time.Duration) (reload bool) {
	began := time.Now()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-f.reload:
			return true
		case <-timer.C:
			return false
		case <-hints:
			// Not at once: a file written in a thousand pieces is not read a thousand times.
			hints = nil
			if pause > f.options.Quiet {
				timer.Reset(f.options.Quiet - time.Since(began))
			}
		}
	}
}
