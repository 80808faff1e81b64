package accesslog

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
)

// peekSize is smaller than a chunk, so that chunks of plain text are read past the
// buffer, without a copy.
const peekSize = 16 << 10

// errRotated: reading on would mix two logs, or lose one.
var errRotated = errors.New("replaced by another file since it was opened (read a copy, or again)")

// A file is one of the logs that a Reader merges. It is looked into when it is
// opened, to learn where in time it begins, and then closed until the others have
// come that far.
type file struct {
	name  string
	rank  int         // among the names given
	info  fs.FileInfo // of a regular file, else nil
	start int64       // no record is earlier; in microseconds

	raw    io.ReadCloser // open, or nil
	lines  *lines
	line   int64 // number of the last line read
	order  *order
	newest int64   // time of the last line read
	idle   int     // bytes of lines without a record since the last one: they share its chunk
	failed error   // what ended the file, once all before it was taken
	slot   int32   // of the next record, in the pool
	head   *Record // the next record, once there is one
	whole  bool    // all was read
}

// openLines opens the text of a log.
func openLines(raw io.Reader, maxLine int) (*lines, error) {
	b := bufio.NewReaderSize(raw, peekSize)
	var r io.Reader = b
	if magic, err := b.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if r, err = gzip.NewReader(b); err != nil {
			return nil, err
		}
	}
	return &lines{r: r, max: maxLine}, nil
}

// peek learns where a file begins: at its first record that is found in its first
// chunk, or somewhere before if there is none. Lines in front may be a window
// older, and older ones are late anyway.
func (f *file) peek(opts Options) error {
	raw, err := os.Open(f.name)
	if err != nil {
		return f.wrap(err)
	}
	defer raw.Close() // only read
	l, err := openLines(raw, opts.MaxLine)
	if err != nil {
		return f.wrap(err)
	}
	f.start = math.MinInt64
	if err := l.fill(); err != nil {
		return nil // an empty file, or an error that Next will meet too
	}
	first := true
	for text := range strings.Lines(l.text) {
		var r Record
		if opts.Format.parse(clean(strings.TrimRight(text, "\r\n"), first), &r) == "" {
			f.start = r.At - opts.Window.Microseconds()
			return nil
		}
		first = false
	}
	return nil
}

// open makes a file that was only looked into ready to be read.
func (f *file) open(maxLine int, count *int64) error {
	if f.raw == nil {
		raw, err := os.Open(f.name)
		if err != nil {
			return f.wrap(err)
		}
		f.raw = raw
		info, err := raw.Stat()
		if err != nil {
			return f.wrap(err)
		}
		if f.info != nil && !os.SameFile(info, f.info) {
			return f.wrap(errRotated)
		}
	}
	l, err := openLines(&counter{f.raw, count}, maxLine)
	if err != nil {
		return f.wrap(err)
	}
	f.lines = l
	return nil
}

func (f *file) close() error {
	f.lines = nil
	if f.raw == nil {
		return nil
	}
	raw := f.raw
	f.raw = nil
	return raw.Close()
}

// wrap names the file in an error. Those of os name it themselves, but less well.
func (f *file) wrap(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("accesslog: %s %q: %w", path.Op, f.name, path.Err)
	}
	return fmt.Errorf("accesslog: read %q: %w", f.name, err)
}

// advance makes head the next record, or nil if there is none.
func (f *file) advance(opts Options, p *pool, stats *Stats) error {
	for {
		slot, ok := f.order.next(f.whole)
		if ok {
			f.slot, f.head = slot, p.at(slot)
			return nil
		}
		if f.whole {
			f.head = nil
			return f.failed
		}
		text, fits, err := f.lines.next()
		if err == io.EOF {
			f.whole = true
			continue
		}
		if err != nil {
			f.whole, f.failed = true, f.wrap(err)
			continue
		}
		f.line++
		stats.Lines++
		f.read(text, fits, opts, p, stats)
	}
}

// read takes one line in.
func (f *file) read(text string, fits bool, opts Options, p *pool, stats *Stats) {
	f.idle = min(f.idle+len(text)+1, maxWaitingBytes)
	text = clean(text, f.line == 1)
	if !fits {
		stats.skip(f.name, f.line, TooLong, text)
		return
	}
	if text == "" {
		stats.Empty++
		return
	}
	slot := p.get()
	r := p.at(slot)
	if reason := opts.Format.parse(text, r); reason != "" {
		p.put(slot)
		stats.skip(f.name, f.line, reason, text)
		return
	}
	// Who jumps ahead, perhaps by a wrong clock, may wait for long; with its own
	// copy of the line it does not keep a chunk alive.
	if f.line > 1 && r.At > f.newest+opts.Window.Microseconds() {
		*r = Record{}
		opts.Format.parse(strings.Clone(text), r)
	}
	f.newest = r.At
	r.File, r.Line = f.name, f.line
	f.order.add(slot, f.idle)
	f.idle = 0
}

// clean cuts off what is no text: a byte order mark, the zeros that a server
// leaves in front after its log was truncated under it, and spaces of an
// otherwise empty line.
func clean(text string, first bool) string {
	if first {
		text = strings.TrimPrefix(text, "\ufeff")
	}
	if text != "" && text[0] > ' ' {
		return text
	}
	return strings.TrimLeft(text, " \t\x00")
}

// A counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n *int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	*c.n += int64(n)
	return n, err
}
