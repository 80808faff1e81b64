package accesslog

import (
	"bytes"
	"io"
	"strings"
)

// chunkSize is how much is read at once. A larger chunk is hardly faster, and one
// record that waits keeps its whole chunk alive.
const chunkSize = 64 << 10

// maxEmptyReads is how often a reader may return nothing and no error.
const maxEmptyReads = 100

// lines cuts a stream into lines. The text that it hands out is never
// overwritten: every chunk is made a string of its own, at one allocation for the
// hundreds of lines in it.
type lines struct {
	r    io.Reader
	max  int    // bytes of the longest line
	buf  []byte // read, and not yet in text
	n    int    // how much of buf is
	text string // whole lines that were not yet returned
	err  error  // what ended the stream, after the text
	long bool   // the rest of a line that was too long is being skipped
}

// next returns the next line without its end. If it is longer than max, only its
// beginning is returned, and whole is false.
func (l *lines) next() (line string, whole bool, err error) {
	for {
		if i := strings.IndexByte(l.text, '\n'); i >= 0 {
			line, l.text = l.text[:i], l.text[i+1:]
		} else if l.text != "" { // the last line, without an end
			line, l.text = l.text, ""
		} else {
			if err := l.fill(); err != nil {
				return "", false, err
			}
			if l.n == l.limit() && l.text == "" && !l.long {
				l.long = true
				return string(l.buf[:min(l.n, l.max)]), false, nil
			}
			continue
		}
		if l.long { // this is how it ends
			l.long = false
			continue
		}
		line = strings.TrimSuffix(line, "\r")
		return line[:min(len(line), l.max)], len(line) <= l.max, nil
	}
}

// limit is the largest size of buf: room for a longest line and its end.
func (l *lines) limit() int { return max(l.max+len("\r\n"), chunkSize) }

// fill reads once, and moves what it has to text if that holds the end of a line
// or is the last. If buf is full at its limit without one, it stays there, and is
// dropped by the next call.
func (l *lines) fill() error {
	if l.err != nil {
		return l.err
	}
	switch {
	case l.long && l.n == len(l.buf):
		l.n = 0
	case l.n == len(l.buf):
		size := min(max(chunkSize, 2*len(l.buf)), l.limit())
		l.buf = append(make([]byte, 0, size), l.buf[:l.n]...)[:size]
	}
	for range maxEmptyReads {
		n, err := l.r.Read(l.buf[l.n:])
		from := l.n
		l.n += n
		if err != nil {
			l.err = err
		}
		if err == io.EOF && l.n > 0 {
			l.take(l.n)
		} else if i := bytes.LastIndexByte(l.buf[from:l.n], '\n'); i >= 0 {
			l.take(from + i + 1)
		} else if err != nil {
			return err
		}
		if n > 0 || l.text != "" {
			return nil
		}
	}
	l.err = io.ErrNoProgress
	return l.err
}

// take moves the first n bytes to text.
func (l *lines) take(n int) {
	l.text = string(l.buf[:n])
	l.n = copy(l.buf, l.buf[n:l.n])
	// A long line is seldom; the chunks after it need not be as long.
	l.buf = l.buf[:max(l.n, min(len(l.buf), chunkSize))]
}
