package weirtest

import (
	"fmt"
	"time"

	"github.com/weirhq/weir"
)

// A Script is a sequence of steps, ready to be run by [Run] as often as wanted.
type Script struct {
	// File is the name that errors give.
	File string
	// Steps are the lines that do something.
	Steps []Step
}

// A Step is one line of a script.
type Step struct {
	Line int    // counted from 1
	Text string // the line without the blanks around it

	policy *Policy
	rules  string // a rule file to load
	at     time.Duration
	times  int
	every  time.Duration
	req    Request
	want   outcome
}

// A Policy is a policy line of a script.
type Policy struct {
	Name   string
	Limit  weir.Limit
	Unit   string // empty means "requests"
	Shadow bool
	Shared bool // one partition for all keys
}

// A Verb is what a [Request] asks for.
type Verb uint8

// The verbs of a script. Send is a request with a method and a path.
const (
	Take Verb = iota
	Peek
	Refund
	Settle
	Reset
	Send
)

// A Request is what a step asks of a [Target].
type Request struct {
	Verb Verb
	// Key and Cost are those of all verbs but Send. In Settle, Cost is the cost that
	// the last take of Key shall have had.
	Key  string
	Cost int64
	// Slack is the longest wait that Take or Peek accepts, or -1 for what the policy
	// itself allows.
	Slack time.Duration
	// Unit restricts Settle to the policies of that unit; empty is all.
	Unit string
	// Method, Path, Host, From and Header are those of Send. Path may have a query;
	// From is the address of the peer, with or without a port; a line of Header is
	// "Name: value".
	Method, Path, Host, From string
	Header                   []string
}

// outcome is what must come of a step. The zero value wants nothing.
type outcome struct {
	results []bool // of each request in order; one stands for all
	counted bool   // allow is what is wanted, instead of results
	allow   int
	clauses []clause
}

// clause is one thing that must be true of the last answer.
type clause struct {
	what string        // by, over, wait, remaining, reset or retry
	of   string        // a policy; empty is the request as a whole
	n    int64         // of remaining
	d    time.Duration // of wait, reset and retry; below 0 is never
}

// A SyntaxError says where a script cannot be read and why.
type SyntaxError struct {
	File string
	Line int // counted from 1
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the reason.
func (e *SyntaxError) Unwrap() error { return e.Err }
