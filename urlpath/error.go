package urlpath

import (
	"errors"
	"fmt"
)

// The reasons why a path has no normal form.
var (
	// ErrSlash: %2F is a separator to some servers and data to others.
	ErrSlash = errors.New("urlpath: escaped slash (separate segments with /)")
	// ErrBackslash: a backslash, or %5C, is a slash to some servers.
	ErrBackslash = errors.New("urlpath: backslash (separate segments with /)")
	// ErrControl: a control character, raw or escaped; NUL ends the path for some.
	ErrControl = errors.New("urlpath: control character (a path has none)")
	// ErrEscape: a percent sign without two hexadecimal digits behind it.
	ErrEscape = errors.New("urlpath: malformed escape (a percent sign is %25)")
	// ErrDots: `..;x` is the parent to servers that cut parameters off first.
	ErrDots = errors.New("urlpath: dot segment with parameters (write . or .. alone)")
)

// An Error tells where a path was refused, and why.
type Error struct {
	Path   string // as it came, of any length and content
	Offset int    // of the byte or, for ErrDots, of the segment; from 0
	Reason error  // one of the Err variables
}

// Error quotes the path, cut to 64 characters, so that it cannot forge a log
// line.
func (e *Error) Error() string {
	return fmt.Sprintf("%v at byte %d of %.64q", e.Reason, e.Offset, e.Path)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }
