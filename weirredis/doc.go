// Package weirredis keeps the state of limits in Redis or Valkey, for several nodes
// that share them. It knows no client library: a [Client] runs its one script.
package weirredis
