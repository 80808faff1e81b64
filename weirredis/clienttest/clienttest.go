// Package clienttest tests that an adapter of a client library keeps what
// [weirredis.Client] promises, against real servers.
package clienttest

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirredis"
)

// Where is what an adapter is told of a server.
type Where struct {
	Addresses          []string
	Username, Password string
	TLS                *tls.Config
	Database           int
	Master             string
	Cluster            bool
}

// Open makes a client, or fails the test. It must not need a living server. Whoever
// calls it closes the client.
type Open func(t testing.TB, w Where) weirredis.Client

// Run runs all tests. They ask for one thing more than the contract: a call that is
// given up because its context ends has the context's error.
func Run(t *testing.T, open Open) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open Open)
	}{
		{"Answers", answers},
		{"ServerErrors", serverErrors},
		{"CallsOfOneRunKeepTheirOrder", order},
		{"ManyAtOnce", many},
		{"WhoseContextEndsLeaves", leaves},
		{"AServerStandsStill", stalled},
		{"AServerIsKilled", killed},
		{"AServerIsNotThereYet", notThereYet},
		{"ALostAnswerIsNotAskedForAgain", lostAnswer},
		{"ALostAnswerIsNotAskedForAgainInACluster", lostAnswerInCluster},
		{"AReplicaIsLeft", readOnly},
		{"Passwords", passwords},
		{"TLS", encrypted},
		{"ADatabase", database},
		{"AClosedClientLetsGoOfAll", closed},
		{"CloseEndsCalls", closeEnds},
		{"AClusterItWasNotTold", unknownCluster},
		{"Cluster", cluster},
		{"SentinelsWhenTheMasterIsKilled", masterKilled},
		{"SentinelsWhenTheMasterStandsStill", masterStalled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open) })
	}
}

const (
	echo    = `return ARGV[1]`
	counter = `return tostring(redis.call('INCR', KEYS[1]))`
)

func call(script string, keys []string, args ...string) *weirredis.Call {
	sum := sha1.Sum([]byte(script))
	return &weirredis.Call{Script: script, SHA1: hex.EncodeToString(sum[:]), Text: true, Keys: keys, Args: args}
}

// byHash is a call that names its script only.
func byHash(script string, keys []string, args ...string) *weirredis.Call {
	q := call(script, keys, args...)
	q.Text = false
	return q
}

// within runs calls with so much time, and fails the test if they take much longer.
func within(t testing.TB, c weirredis.Client, limit time.Duration, calls ...*weirredis.Call) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	done := make(chan struct{})
	go func() { c.Run(ctx, calls); close(done) }()
	select {
	case <-done:
	case <-time.After(limit + 10*time.Second):
		t.Fatal("Run does not return when its context ends")
	}
}

// plenty is time enough for a call that a living server answers.
const plenty = 10 * time.Second

// one runs a call with plenty of time.
func one(t testing.TB, c weirredis.Client, script string, keys []string, args ...string) (string, error) {
	t.Helper()
	q := call(script, keys, args...)
	within(t, c, plenty, q)
	return q.Reply, q.Err
}

// wantOne is one that must answer so.
func wantOne(t testing.TB, c weirredis.Client, want, what, script string, keys []string, args ...string) {
	t.Helper()
	if got, err := one(t, c, script, keys, args...); err != nil || got != want {
		t.Errorf("%s: %q, %v, want %q", what, got, err, want)
	}
}

// warm uses each of the connections that there may be.
func warm(t testing.TB, c weirredis.Client) {
	t.Helper()
	redistest.Until(t, "calls on all connections work", func() bool {
		for range 100 {
			if _, err := one(t, c, echo, []string{"warm"}, "x"); err != nil {
				return false // one that has broken may be noticed by a call
			}
		}
		return true
	})
}

// heals waits until calls that write work again, without a new client.
func heals(t testing.TB, c weirredis.Client, key string) {
	t.Helper()
	var last error
	defer func() {
		if t.Failed() {
			t.Logf("the last error: %v", last)
		}
	}()
	redistest.Until(t, "calls work again", func() bool {
		q := call(`redis.call('SET', KEYS[1], 'x') return 'here'`, []string{key})
		within(t, c, time.Second, q)
		last = q.Err
		return q.Err == nil && q.Reply == "here"
	})
}

// refused returns what Redis answered a call with, "" if its error is another or nil.
func refused(q *weirredis.Call) string {
	var said weirredis.ServerError
	if errors.As(q.Err, &said) {
		return string(said)
	}
	return ""
}

// wantRefused wants that Redis answered with an error of this kind.
func wantRefused(t testing.TB, q *weirredis.Call, kind, what string) {
	t.Helper()
	if !strings.HasPrefix(refused(q), kind) {
		t.Errorf("%s: %q, %v, want a ServerError %s", what, q.Reply, q.Err, kind)
	}
}

// wantUnknown wants an error that does not claim that Redis answered.
func wantUnknown(t testing.TB, q *weirredis.Call, what string) {
	t.Helper()
	if q.Err == nil || refused(q) != "" {
		t.Errorf("%s: %q, %v, want an error that is no ServerError", what, q.Reply, q.Err)
	}
}
