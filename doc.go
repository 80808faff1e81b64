// Package weir limits the rate of requests.
//
// A policy is a quota of units per window. A [Rule] says which requests its
// policies apply to and how they split into partitions; the partition key is
// the bytes that select one counter. A [Limiter] turns one request into a few
// asks, hands them to a [Store] in one call, and gets one [Decision]: all
// enforced policies agree and are charged, or nobody is. The arithmetic is the
// pure package algo, which knows no clock, lock, network or log; [Memory] calls
// it under a lock, and a replay runs it on yesterday's log. Everything else is a
// door (net/http in weirhttp, the gateway in the server module) or a window onto
// what happened (an [Observer]). Rules change while they run, by
// [Limiter.Swap], and what was used stays used.
//
// # Where to read on
//
// algo/algo.go is the arithmetic and its promises. limit.go lists the
// algorithms, with the most that each allows. limiter.go is the walk of a
// request; memory.go, table.go and evict.go are where its state lives.
// testdata/decisions holds the behaviour of all of it, as scripts.
package weir
