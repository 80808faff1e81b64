package weirredis

import "context"

// A Client runs scripts on Redis. It is what an adapter of a client library
// implements; packages weirrueidis and weirgoredis are such adapters. All methods may
// be called concurrently.
type Client interface {
	// Run sends the calls, all before it waits for the first answer, and writes a
	// Reply or an Err to each. It returns when all are answered or have failed, and no
	// later than ctx ends.
	//
	// A call is sent once. One that may have been carried out is never sent again, not
	// after a timeout and not after a lost connection: a script that charges must not
	// charge twice. Only what is certain not to have happened is mended inside: MOVED
	// and ASK are followed.
	Run(ctx context.Context, calls []*Call)
	// Cluster is whether the keys of a call must lie in one slot.
	Cluster() bool
	// Close lets go of the connections. Calls under way fail.
	Close()
}

// A Call is one run of a script.
type Call struct {
	// Script is the Lua text, SHA1 its hash in hex.
	Script, SHA1 string
	// Text sends the text (EVAL), which leaves it in Redis' cache, instead of the
	// hash (EVALSHA).
	Text bool
	Keys []string
	Args []string
	// Reply is the answer, which is always one bulk string of any bytes.
	Reply string
	// Err is a ServerError, or else says that it is not known whether the call was
	// carried out.
	Err error
}

// ServerError is an error that Redis itself answered with, such as
// "NOSCRIPT No matching script. Please use EVAL.": the call was not carried out, or
// stopped at a command that failed.
type ServerError string

func (e ServerError) Error() string { return "redis: " + string(e) }
