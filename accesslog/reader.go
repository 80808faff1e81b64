package accesslog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

// The defaults of Options.
const (
	DefaultWindow      = 2 * time.Minute
	DefaultMaxBuffered = 1 << 20
	DefaultMaxLine     = 1 << 20
	DefaultMaxOpen     = 256
)

// Options are how logs are read. The zero value suits most.
type Options struct {
	// Format is that of all lines; Auto finds it out for every line.
	Format Format
	// Window is how far apart lines in the wrong order may be in time to be put
	// right. 0 means DefaultWindow; a negative one leaves them in their order.
	Window time.Duration
	// MaxBuffered is how many records may wait for their window to end, over all
	// files, 0 meaning DefaultMaxBuffered. Each takes about 300 bytes and its line.
	// Full, it delivers early.
	MaxBuffered int
	// MaxLine is the longest line, in bytes; 0 means DefaultMaxLine. Longer ones
	// are skipped as TooLong.
	MaxLine int
	// MaxOpen is how many files may be open at once; 0 means DefaultMaxOpen. Only
	// those are that overlap in time, so rotated logs need two or three.
	MaxOpen int
	// SkipLate leaves late records out, instead of moving them up in time.
	SkipLate bool
}

// ErrMaxOpen says that more files overlap in time than Options.MaxOpen allows.
var ErrMaxOpen = errors.New("too many files overlap in time (raise MaxOpen, or read fewer)")

// A Reader delivers the records of several logs in the order of time. It is for
// one goroutine.
type Reader struct {
	opts   Options
	pool   pool
	stats  Stats
	closed []*file     // not yet reached, by start, the next one last
	open   heap[*file] // with a head each
	opened int         // files that are open
	taken  bool        // the least head was delivered
	last   int64       // time of the last record
	err    error
}

// Open opens logs by name, "-" being stdin, which no other name needs. It looks
// into each regular file, to learn where in time it begins, and reads no further.
// All that is wrong is reported at once.
//
// Files are opened again when their time has come; Next returns an error if one
// was rotated away in between. Pipes are opened by the first Next.
func Open(names []string, stdin io.Reader, opts Options) (*Reader, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("accesslog: no file to read (want names, or - for the standard input)")
	}
	r := &Reader{opts: opts, last: math.MinInt64}
	r.pool.maxOut = opts.MaxBuffered
	r.open.before = func(a, b *file) bool {
		return a.head.At < b.head.At || a.head.At == b.head.At && a.rank < b.rank
	}
	var errs []error
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("accesslog: %q is named twice (want each file once)", name))
			continue
		}
		if err := r.add(name, i, stdin); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		errs = append(errs, r.Close())
		return nil, errors.Join(errs...)
	}
	slices.SortStableFunc(r.closed, func(a, b *file) int { return cmp.Compare(b.start, a.start) })
	return r, nil
}

// complete fills the defaults in.
func (o Options) complete() (Options, error) {
	errs := []error{o.Format.check()}
	for _, bound := range []struct {
		name     string
		value    *int
		standard int
	}{
		{"MaxBuffered", &o.MaxBuffered, DefaultMaxBuffered},
		{"MaxLine", &o.MaxLine, DefaultMaxLine},
		{"MaxOpen", &o.MaxOpen, DefaultMaxOpen},
	} {
		if *bound.value < 0 {
			errs = append(errs, fmt.Errorf("accesslog: %s %d is negative (want at least 1, or 0 for %d)", bound.name, *bound.value, bound.standard))
		}
		if *bound.value == 0 {
			*bound.value = bound.standard
		}
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	o.Window = max(o.Window, 0)
	return o, errors.Join(errs...)
}

// add takes one name in.
func (r *Reader) add(name string, rank int, stdin io.Reader) error {
	f := &file{name: name, rank: rank, start: math.MinInt64, order: newOrder(&r.pool, r.opts.Window.Microseconds())}
	if name == "-" {
		if stdin == nil {
			return errors.New("accesslog: - is named, but there is no standard input")
		}
		f.raw = io.NopCloser(stdin)
		r.stats.BytesTotal = -1
	} else {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return f.wrap(err)
		case info.IsDir():
			return fmt.Errorf("accesslog: %q is a directory (want a file)", name)
		case info.Mode().IsRegular():
			f.info = info
			if r.stats.BytesTotal >= 0 {
				r.stats.BytesTotal += info.Size()
			}
			if err := f.peek(r.opts); err != nil {
				return err
			}
		default: // what is read from a pipe cannot be read again
			r.stats.BytesTotal = -1
		}
	}
	r.closed = append(r.closed, f)
	return nil
}

// Next returns the next record, which is valid until the following call, and
// io.EOF after the last. Another error, such as a damaged gzip file, ends the
// stream: what would follow is unknown. Errors are returned again by every
// further call.
func (r *Reader) Next() (*Record, error) {
	for r.err == nil {
		rec, err := r.next()
		if err != nil {
			r.err = err
			break
		}
		if rec.At < r.last {
			r.stats.Late++
			if r.opts.SkipLate {
				continue
			}
			rec.At, rec.Late = r.last, true
		}
		r.last = rec.At
		r.stats.Records++
		if rec.Method == "" {
			r.stats.NotHTTP++
		}
		return rec, nil
	}
	return nil, r.err
}

// next returns the least of the heads, after it has let go of the one before.
func (r *Reader) next() (*Record, error) {
	if r.taken {
		r.taken = false
		f := r.open.items[0]
		r.pool.put(f.slot)
		if err := f.advance(r.opts, &r.pool, &r.stats); err != nil {
			return nil, err
		}
		if f.head != nil {
			r.open.fix()
		} else {
			r.open.pop()
			if err := r.finish(f); err != nil {
				return nil, err
			}
		}
	}
	for n := len(r.closed); n > 0 && (len(r.open.items) == 0 || r.closed[n-1].start <= r.open.items[0].head.At); n-- {
		f := r.closed[n-1]
		r.closed = r.closed[:n-1]
		if err := r.begin(f); err != nil {
			return nil, err
		}
	}
	if len(r.open.items) == 0 {
		return nil, io.EOF
	}
	r.taken = true
	return r.open.items[0].head, nil
}

// begin opens a file whose time has come.
func (r *Reader) begin(f *file) error {
	if r.opened == r.opts.MaxOpen {
		return fmt.Errorf("accesslog: %q is one of more than %d: %w", f.name, r.opts.MaxOpen, ErrMaxOpen)
	}
	r.opened++
	if err := f.open(r.opts.MaxLine, &r.stats.BytesRead); err != nil {
		return errors.Join(err, f.close())
	}
	if err := f.advance(r.opts, &r.pool, &r.stats); err != nil {
		return errors.Join(err, f.close())
	}
	if f.head == nil {
		return r.finish(f)
	}
	r.open.push(f)
	return nil
}

// finish closes a file that was read to its end.
func (r *Reader) finish(f *file) error {
	r.opened--
	if err := f.close(); err != nil {
		return f.wrap(err)
	}
	return nil
}

// Stats returns what was seen so far. It costs little, but is not for every
// record.
func (r *Reader) Stats() Stats { return r.stats.clone() }

// Close closes the files that are still open, but not the standard input. Next
// then returns an error.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range r.open.items {
		errs = append(errs, f.close())
	}
	r.open.items, r.closed, r.taken = nil, nil, false
	if r.err == nil {
		r.err = errors.New("accesslog: read after Close")
	}
	return errors.Join(errs...)
}
