package cli

import (
	"io"
	"os"
)

// paint colours text for a terminal, and leaves it alone for anything else.
type paint bool

// newPaint colours if w is a terminal, which NO_COLOR (no-color.org) can refuse.
func newPaint(w io.Writer) paint {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return paint(err == nil && info.Mode()&os.ModeCharDevice != 0)
}

func (p paint) wrap(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) bold(s string) string  { return p.wrap("1", s) }
func (p paint) faint(s string) string { return p.wrap("2", s) }
func (p paint) good(s string) string  { return p.wrap("32", s) }
