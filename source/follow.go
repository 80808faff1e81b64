package source

import (
	"context"
	"fmt"
	"time"
)

// A settler tells when what is read has stood still.
type settler struct {
	quiet time.Duration
	print string    // of the last reading
	since time.Time // from when on everything is known to have had this print
}

// still reports whether everything l has read was like that for the quiet time.
func (s *settler) still(l look) bool {
	if l.print != s.print {
		since := l.end
		// The first reading has none before it, so the files' own times must do;
		// one in the future proves nothing. While running they are not asked: a
		// file that was moved here brings an old time with it.
		if s.print == "" && l.newest.Before(l.start) {
			since = l.newest
		}
		s.print, s.since = l.print, since
	}
	return l.start.Sub(s.since) >= s.quiet
}

// A follower turns readings into deliveries and events. It lives for one Run.
type follower struct {
	file    *File
	deliver Deliver
	settle  settler
	forced  bool // Reload wants a delivery, changed or not

	offered string // content of the document last delivered
	version string // and its version
	answer  error  // and what the answer was

	moving  time.Time // since when there is something new that does not stand still; zero if there is not
	overdue bool      // and that has been reported
	trouble string    // the error last reported, empty if the last reading was good
}

// step acts on a reading and returns how long to wait for the next.
func (f *follower) step(ctx context.Context, l look) time.Duration {
	o := &f.file.options
	still := f.settle.still(l)
	unchanged := l.err == nil && l.content == f.offered

	if unchanged && !f.forced {
		if f.trouble != "" {
			f.rest()
			f.trouble = ""
			f.file.recovered(f.version, f.answer)
		}
		f.rest()
		return o.Poll
	}
	if !still {
		if f.moving.IsZero() {
			f.moving = l.start
		}
		if d := l.start.Sub(f.moving); d >= o.MaxDelay && !f.overdue {
			f.overdue = true
			f.unreadable(fmt.Errorf("source: %s is %w after %v; it is delivered when it has stood still for %v",
				f.file.path, ErrUnsettled, d, o.Quiet))
		}
		return o.Quiet
	}
	f.rest()
	if l.err != nil {
		if f.forced || f.trouble != l.err.Error() {
			f.unreadable(l.err)
		}
		f.forced = false
		return o.Poll
	}

	f.forced = false
	version := l.document.Version()
	answer := f.deliver(ctx, l.document)
	if answer != nil && ctx.Err() != nil {
		return 0 // interrupted, not rejected
	}
	f.offered, f.version, f.answer, f.trouble = l.content, version, answer, ""
	f.file.answered(version, answer)
	return o.Poll
}

func (f *follower) rest() { f.moving, f.overdue = time.Time{}, false }

func (f *follower) unreadable(err error) {
	f.trouble = err.Error()
	f.file.unreadable(err)
}
