package accesslog

import (
	"fmt"
	"maps"
	"slices"
)

// Reason says why a line was skipped. It is an error, so that Record.Parse may
// return it and errors.Is may compare it.
type Reason string

// The reasons why lines are skipped.
const (
	NoTime    Reason = "no time that can be read"    // missing, impossible (31 February) or in an unknown form
	NoClient  Reason = "no client before the time"   // text formats only
	NoRequest Reason = "no request"                  // no quoted field after the time, or JSON that tells of something else
	NoStatus  Reason = "no status after the request" // what follows is no number and no dash
	BadJSON   Reason = "malformed JSON"              // often a line cut off by a full disk or a crash
	TooLong   Reason = "line longer than the bound"  // Options.MaxLine
)

// Error returns the reason with the package's prefix.
func (r Reason) Error() string { return "accesslog: " + string(r) }

// Stats counts what a Reader has done so far.
type Stats struct {
	Lines   int64 // read, the empty and the skipped ones among them
	Empty   int64 // empty lines, which are no reason to worry
	Records int64 // delivered by Next
	NotHTTP int64 // delivered without a method, since what was received was no HTTP request
	Late    int64 // came later than the window allows: moved up, or left out with Options.SkipLate
	Skipped int64 // lines that could not be read, the sum over Reasons

	// Reasons counts the skipped lines; a reason that never was is absent.
	Reasons map[Reason]int64
	// Examples are the first lines skipped for each reason, in reading order.
	Examples []Example

	BytesRead  int64 // of the files as they lie on disk, so before decompression
	BytesTotal int64 // sum of the files' sizes at Open; -1 if one of them is no regular file
}

// clone returns a copy that the Reader does not change any more.
func (s *Stats) clone() Stats {
	c := *s
	c.Reasons = maps.Clone(s.Reasons)
	c.Examples = slices.Clone(s.Examples)
	return c
}

// Example is a line that was skipped.
type Example struct {
	File    string // as given to Open; "-" is the standard input
	Line    int64  // from 1
	Reason  Reason
	Excerpt string // the beginning of the line, quoted in Go syntax: safe to print
}

// String returns the example on one line: file, line, reason, excerpt.
func (e Example) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", e.File, e.Line, string(e.Reason), e.Excerpt)
}

const (
	examplesPerReason = 3
	excerptBytes      = 120 // of the line; quoting may make four of one
)

// skip counts a line that cannot be used.
func (s *Stats) skip(file string, number int64, why Reason, line string) {
	if s.Reasons == nil {
		s.Reasons = make(map[Reason]int64)
	}
	s.Skipped++
	s.Reasons[why]++
	if s.Reasons[why] > examplesPerReason {
		return
	}
	s.Examples = append(s.Examples, Example{file, number, why, excerpt(line)})
}

func excerpt(line string) string {
	more := ""
	if len(line) > excerptBytes {
		line, more = line[:excerptBytes], "…"
	}
	return fmt.Sprintf("%+q", line) + more
}
