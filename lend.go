package weir

import (
	"context"

	"github.com/weirhq/weir/algo"
)

// A Lender is a store that charges units of a key ahead of their use, so that who
// borrows them can decide by itself for a while. What is never used is lost to the
// others until the loan is dead; what is used was charged, so borrowing never lets
// anybody be allowed too much.
type Lender interface {
	Store
	// Lend asks for loans and writes a Grant for each to out, which is as long as
	// loans; a grant of 0 units is no error. The loans of one call differ in policy
	// or key. Each is decided by itself. A call that failed must not be repeated
	// with its reports: they may have been taken.
	Lend(ctx context.Context, loans []Loan, out []Grant) error
}

// A Loan asks for units of a key ahead of their use, and reports on an earlier one.
type Loan struct {
	Policy *Policy
	// Key is the partition key. A store does not keep it after the call.
	Key []byte
	// Loan has what is wanted and the report.
	algo.Loan
}

// A Grant is the answer to a [Loan]. Its Life counts from the store's instant At,
// and hence ends no earlier than as many ticks after the call was made.
type Grant struct {
	algo.Grant
	// At is the instant of the grant, by the store's clock.
	At int64
}
