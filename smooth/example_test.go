package smooth_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir/smooth"
)

// Mails are sent one by one at an even pace, without a burst at the start.
func ExampleLimiter_Acquire() {
	mails, err := smooth.NewBursty(50, smooth.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, to := range []string{"ada", "grace", "edsger"} {
		if _, err := mails.Acquire(ctx, 1); err != nil {
			fmt.Println(err) // the context is over; nothing was taken
			return
		}
		fmt.Println("to", to)
	}
	// Output:
	// to ada
	// to grace
	// to edsger
}

func ExampleLimiter_TryAcquire() {
	reports, err := smooth.NewBursty(1.0/60, smooth.Options{}) // one a minute
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		ok, err := reports.TryAcquire(1, 5*time.Second)
		fmt.Println(ok, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

// A cache that was idle gets its first calls slowly, and is at its
// 5 calls a second when it has warmed up.
func ExamplePace() {
	pace, err := smooth.WarmingUp(5, time.Second.Microseconds(), 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	var state smooth.State
	for range 6 {
		var wait int64
		state, wait = pace.Reserve(state, 0, 1) // all at instant 0
		fmt.Println(time.Duration(wait) * time.Microsecond)
	}
	fmt.Println("cold again after", time.Duration(pace.Full(state))*time.Microsecond)
	// Output:
	// 0s
	// 520ms
	// 880ms
	// 1.1s
	// 1.3s
	// 1.5s
	// cold again after 2.7s
}

func ExampleArgumentError() {
	_, err := smooth.NewWarmingUp(100, smooth.Options{WarmUp: time.Minute, ColdFactor: 0.5})
	fmt.Println(err)
	// Output: smooth: cold factor 0.5: want a finite number, at least 1
}
