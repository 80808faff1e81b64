package weir_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

// Five logins a minute for each address, decided in the memory of one process.
func Example() {
	limiter, err := weir.New(weir.NewMemory(weir.MemoryOptions{}), weir.Ruleset[string]{
		Rules: []weir.Rule[string]{{
			Name:   "login",
			Limits: []weir.Limit{weir.PerMinute(5)},
			Key:    func(dst []byte, addr string) ([]byte, bool) { return append(dst, addr...), true },
		}},
	}, weir.Options[string]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 6 {
		d, err := limiter.Take(context.Background(), "203.0.113.9")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Allowed, d.Limit(0).Remaining, d.RetryAfter.Round(time.Second))
	}
	// Output:
	// true 4 0s
	// true 3 0s
	// true 2 0s
	// true 1 0s
	// true 0 0s
	// false 0 12s
}

// A watched rule counts and refuses nothing, so that it can be judged before it
// is enforced.
func ExampleLimiter_Take_shadow() {
	key := func(dst []byte, user string) ([]byte, bool) { return append(dst, user...), true }
	limiter, err := weir.New(weir.NewMemory(weir.MemoryOptions{}), weir.Ruleset[string]{Rules: []weir.Rule[string]{
		{Name: "live", Limits: []weir.Limit{weir.PerHour(3)}, Key: key},
		{Name: "candidate", Limits: []weir.Limit{weir.PerHour(2)}, Key: key, Mode: weir.Shadow},
	}}, weir.Options[string]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		d, _ := limiter.Take(context.Background(), "alice")
		fmt.Print("allowed ", d.Allowed)
		for l := range d.Limits() {
			fmt.Print(", ", l.Policy.Name, " ", l.OK)
		}
		fmt.Println()
	}
	// Output:
	// allowed true, live true, candidate true
	// allowed true, live true, candidate true
	// allowed true, live true, candidate false
	// allowed false, live false, candidate false
}

// The price of a request to a language model is known when it has been answered:
// take an estimate, settle the bill.
func ExampleLimiter_Settle() {
	type call struct {
		user     string
		estimate int64
	}
	limiter, err := weir.New(weir.NewMemory(weir.MemoryOptions{Clock: new(weirtest.Clock)}), weir.Ruleset[call]{Rules: []weir.Rule[call]{{
		Name:   "llm",
		Limits: []weir.Limit{weir.PerHour(1000)},
		Unit:   "tokens",
		Key:    func(dst []byte, c call) ([]byte, bool) { return append(dst, c.user...), true },
		Cost:   func(c call) int64 { return c.estimate },
	}}}, weir.Options[call]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, c := context.Background(), call{"alice", 300}
	d, _ := limiter.Take(ctx, c)
	fmt.Println("left after the estimate:", d.Limit(0).Remaining)
	if err := limiter.Settle(ctx, c, &d, "tokens", 120); err != nil {
		fmt.Println(err)
	}
	d, _ = limiter.Peek(ctx, c)
	fmt.Println("left after the bill:", d.Limit(0).Remaining)
	// Output:
	// left after the estimate: 700
	// left after the bill: 880
}

// Wait sleeps until a request may go on, and fails at once if that would be too
// late.
func ExampleLimiter_Wait() {
	clock := new(weirtest.Clock) // moved by whoever sleeps
	limiter, err := weir.New(weir.NewMemory(weir.MemoryOptions{Clock: clock}), weir.Ruleset[string]{Rules: []weir.Rule[string]{
		{Name: "upstream", Limits: []weir.Limit{weir.PerSecond(1)}},
	}}, weir.Options[string]{Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if _, err := limiter.Wait(context.Background(), ""); err != nil {
			fmt.Println(err)
		}
		fmt.Println("goes on at", clock.Since())
	}
	// Output:
	// goes on at 0s
	// goes on at 1s
	// goes on at 2s
}
