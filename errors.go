package weir

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrNever is returned by Wait for a cost that no wait can ever cover.
	ErrNever = errors.New("weir: the cost exceeds the limit and can never be allowed")
	// ErrDeadline is returned by Wait when the context would end before the request
	// could be allowed; nothing was taken. It is also a context.DeadlineExceeded.
	ErrDeadline error = deadlineError{}
	// ErrUnavailable is wrapped by the errors of a store that could not be asked.
	ErrUnavailable = errors.New("weir: the store is unavailable")
	// ErrUnsupported is wrapped by the error of a store that cannot run an algorithm.
	ErrUnsupported = errors.New("weir: the store does not support this algorithm")
)

// A ConfigError says which rule is wrong and why.
type ConfigError struct {
	Rule string // the rule's name, or its position such as "#3" if it has none
	Err  error
}

func (e *ConfigError) Error() string { return fmt.Sprintf("weir: rule %q: %v", e.Rule, e.Err) }

// Unwrap returns the reason.
func (e *ConfigError) Unwrap() error { return e.Err }

type deadlineError struct{}

func (deadlineError) Error() string {
	return "weir: the request could not be allowed before the deadline"
}
func (deadlineError) Is(target error) bool { return target == context.DeadlineExceeded }
func (deadlineError) Timeout() bool        { return true }
