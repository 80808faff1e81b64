package smooth

import (
	"context"
	"fmt"
	"time"
)

// An ArgumentError tells that a number cannot be used. Nothing has changed.
type ArgumentError struct {
	// Name is what the number is, as in "rate" or "cold factor".
	Name string
	// Value is the number as it was given.
	Value any
	// Want is what would be right.
	Want string
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("smooth: %s %v: want %s", e.Name, e.Value, e.Want)
}

// A DeadlineError tells that the wait would not end before the deadline of the
// context. Nothing was taken. It is a context.DeadlineExceeded to errors.Is.
type DeadlineError struct {
	// Wait is how long the caller would have waited.
	Wait time.Duration
	// Left is the time that was left to the context.
	Left time.Duration
}

func (e *DeadlineError) Error() string {
	return fmt.Sprintf("smooth: a wait of %v would not end before the deadline, %v away", e.Wait, e.Left)
}

// Is reports whether target is context.DeadlineExceeded.
func (e *DeadlineError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout is true, as for context.DeadlineExceeded.
func (e *DeadlineError) Timeout() bool { return true }
