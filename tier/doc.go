// Package tier has the stores that stand between a limiter and a store that several
// nodes share. Each saves a call to it, or decides while it cannot.
//
// A [Refusals] remembers who was refused and answers them until they could pass. A
// [Lease] borrows units ahead of their use and lets them go one by one. A [Breaker] fails
// at once while the store is down. A [Share] is this node's part of each limit for the
// time of an outage.
//
// They stand in this order, the limiter on the left:
//
//	Refusals → Lease → Breaker → the shared store
//	Share: weir.Options.Local, asked when the above fail
//
// Refusals come first, since a refusal is the cheapest answer and needs no loan. Lease
// stands before the Breaker, so that what has been lent is used up while the store is
// down. Breaker stands next to the store, because what the tiers before it answer by
// themselves says nothing of the store's health.
//
// None of them lets anybody be allowed what the store would have refused, but Share,
// which decides without it: what all nodes admit together then is written there. Each
// tier is a [weir.Store] and may be used by itself.
package tier
