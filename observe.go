package weir

import "context"

// An Observer hears of every decision. Its methods are called on the goroutine
// of the request, from many at once, and must be quick.
type Observer[R any] interface {
	// Decided is called after each Take and each attempt of Wait. d and what its
	// Key method returns are valid only during the call.
	Decided(ctx context.Context, r R, d *Decision)
	// StoreFailed is called when the store could not be asked; the rules' OnOutage
	// has decided, and Decided follows with a Degraded decision.
	StoreFailed(ctx context.Context, r R, err error)
}
