// Package redis measures Weir on Redis beside the limiters people run there, all in one
// run against one redis-server that it starts, since only ratios mean anything.
//
// Each contender answers one question: may key take one unit now? They do different
// things for it. redis_rate keeps a GCRA in floating point; the log in a sorted set keeps
// an entry for every request; the two buckets keep two keys each and trust the clock of
// the caller. Only Weir decides several rules together and by Redis' own clock.
package redis
