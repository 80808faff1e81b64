// Package clienttest tests that an adapter of a client library keeps what
// [weirredis.Client] promises, against real servers.
package clienttest

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirredis"
)

// Where is what an adapter is told of a server.
type Where struct {
	Addresses []string
	Password  string
	Master    string
	Cluster   bool
}

// Open makes a client, or fails the test. It must not need a living server.
type Open func(t testing.TB, w Where) weirredis.Client

// Run runs all tests.
func Run(t *testing.T, open Open) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open Open)
	}{
		{"Answers", answers},
		{"ServerErrors", serverErrors},
		{"Many", many},
		{"Stalled", stalled},
		{"Killed", killed},
		{"NotThereYet", notThereYet},
		{"LostAnswer", lostAnswer},
		{"WrongPassword", wrongPassword},
		{"Close", closed},
		{"Cluster", cluster},
		{"Sentinel", sentinel},
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
		t.Fatalf("Run did not return when its context ended")
	}
}

// one runs a call with plenty of time.
func one(t testing.TB, c weirredis.Client, script string, keys []string, args ...string) (string, error) {
	t.Helper()
	q := call(script, keys, args...)
	within(t, c, 5*time.Second, q)
	return q.Reply, q.Err
}

// heals waits until calls work again without a new client.
func heals(t testing.TB, c weirredis.Client, key string) {
	t.Helper()
	redistest.Until(t, "calls work again", func() bool {
		q := call(`return 'here'`, []string{key})
		within(t, c, time.Second, q)
		return q.Err == nil && q.Reply == "here"
	})
}

func answers(t *testing.T, open Open) {
	c := open(t, Where{Addresses: []string{redistest.Single(t).Addr}})
	defer c.Close()
	var all strings.Builder
	for b := range 256 {
		all.WriteByte(byte(b))
	}
	for _, text := range []string{"", "x", "\r\n", all.String(), strings.Repeat("long", 100_000)} {
		if got, err := one(t, c, echo, nil, text); err != nil || got != text {
			t.Errorf("%d bytes come back as %d, %v", len(text), len(got), err)
		}
	}
	q := call(echo, []string{"a", "b"}, "y")
	within(t, c, 5*time.Second, q)
	q = call(echo, []string{"a", "b"}, "z")
	q.Text = false // EVAL has left it there
	within(t, c, 5*time.Second, q)
	if q.Err != nil || q.Reply != "z" {
		t.Errorf("by its hash: %q, %v", q.Reply, q.Err)
	}
}

func serverErrors(t *testing.T, open Open) {
	c := open(t, Where{Addresses: []string{redistest.Single(t).Addr}})
	defer c.Close()
	unknown := call(echo, nil, "x")
	unknown.Text = false
	wrong := call(`return redis.call('INCR', KEYS[1])`, []string{"list"})
	push := call(`return tostring(redis.call('RPUSH', KEYS[1], 'x'))`, []string{"list"})
	within(t, c, 5*time.Second, push, unknown, wrong)
	if push.Err != nil {
		t.Errorf("a call beside those that fail: %v", push.Err)
	}
	for _, q := range []struct {
		call *weirredis.Call
		says string
	}{{unknown, "NOSCRIPT"}, {wrong, "WRONGTYPE"}} {
		var said weirredis.ServerError
		if !errors.As(q.call.Err, &said) || !strings.HasPrefix(string(said), q.says) {
			t.Errorf("%v is no ServerError %s", q.call.Err, q.says)
		}
	}
}

func many(t *testing.T, open Open) {
	s := redistest.Single(t)
	c := open(t, Where{Addresses: []string{s.Addr}})
	defer c.Close()
	var group sync.WaitGroup
	for g := range 50 {
		group.Go(func() {
			calls := make([]*weirredis.Call, 20)
			for i := range calls {
				calls[i] = call(`redis.call('INCR', KEYS[1]) return ARGV[1]`, []string{"n"}, fmt.Sprint(g, i))
			}
			within(t, c, 10*time.Second, calls...)
			for i, q := range calls {
				if q.Err != nil || q.Reply != fmt.Sprint(g, i) {
					t.Errorf("call %d of %d: %q, %v", i, g, q.Reply, q.Err)
				}
			}
		})
	}
	group.Wait()
	if got := s.Must("GET", "n"); got != "1000" {
		t.Errorf("1000 calls ran %s times", got)
	}
}

func stalled(t *testing.T, open Open) {
	s := redistest.Single(t)
	c := open(t, Where{Addresses: []string{s.Addr}})
	defer c.Close()
	if _, err := one(t, c, echo, nil, "x"); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			q := call(counter, []string{"n"})
			within(t, c, 50*time.Millisecond, q)
			var said weirredis.ServerError
			if q.Err == nil || errors.As(q.Err, &said) {
				t.Errorf("a call to a server that stands still: %v", q.Err)
			}
		})
	}
	group.Wait()
	s.Continue()
	heals(t, c, "n")
	if n := s.Must("GET", "n"); len(n) > 2 || n > "20" && len(n) == 2 {
		t.Errorf("20 calls ran %s times", n)
	}
}

func killed(t *testing.T, open Open) {
	s := redistest.Single(t)
	c := open(t, Where{Addresses: []string{s.Addr}})
	defer c.Close()
	if _, err := one(t, c, echo, nil, "x"); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	q := call(echo, nil, "x")
	within(t, c, time.Second, q)
	var said weirredis.ServerError
	if q.Err == nil || errors.As(q.Err, &said) {
		t.Errorf("a call to a server that is gone: %v", q.Err)
	}
	s.Restart()
	heals(t, c, "n")
}

func notThereYet(t *testing.T, open Open) {
	s := redistest.Single(t)
	s.Kill()
	c := open(t, Where{Addresses: []string{s.Addr}})
	defer c.Close()
	q := call(echo, nil, "x")
	within(t, c, time.Second, q)
	if q.Err == nil {
		t.Error("a server that is not there answers")
	}
	s.Restart()
	heals(t, c, "n")
}

// lostAnswer: the call is carried out, its answer is not heard, and it does not run
// again.
func lostAnswer(t *testing.T, open Open) {
	s := redistest.Single(t)
	p := deafen(t, s.Addr)
	c := open(t, Where{Addresses: []string{p.addr()}})
	defer c.Close()
	for range 100 { // on each of the connections that there may be
		if _, err := one(t, c, echo, nil, "x"); err != nil {
			t.Fatal(err)
		}
	}
	p.deaf(true)
	q := call(counter, []string{"n"})
	within(t, c, 100*time.Millisecond, q)
	var said weirredis.ServerError
	if q.Err == nil || errors.As(q.Err, &said) {
		t.Errorf("a call whose answer is lost: %v", q.Err)
	}
	redistest.Until(t, "the call has run", func() bool { return s.Must("GET", "n") == "1" })
	p.cut()
	q = call(counter, []string{"n"})
	within(t, c, 100*time.Millisecond, q) // over a connection that breaks, or a new deaf one
	p.cut()
	p.deaf(false)
	heals(t, c, "m")
	if n := s.Must("GET", "n"); n != "1" && n != "2" {
		t.Errorf("2 calls ran %s times", n)
	}
}

func wrongPassword(t *testing.T, open Open) {
	s := redistest.Single(t, "--requirepass", "right")
	c := open(t, Where{Addresses: []string{s.Addr}, Password: "wrong"})
	defer c.Close()
	if _, err := one(t, c, echo, nil, "x"); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a wrong password: %v", err)
	}
	right := open(t, Where{Addresses: []string{s.Addr}, Password: "right"})
	defer right.Close()
	if got, err := one(t, right, echo, nil, "x"); err != nil || got != "x" {
		t.Errorf("the right password: %q, %v", got, err)
	}
}

func closed(t *testing.T, open Open) {
	s := redistest.Single(t)
	before := runtime.NumGoroutine()
	for range 5 {
		c := open(t, Where{Addresses: []string{s.Addr}})
		if _, err := one(t, c, echo, nil, "x"); err != nil {
			t.Fatal(err)
		}
		c.Close()
		if _, err := one(t, c, echo, nil, "x"); err == nil {
			t.Error("a closed client answers")
		}
	}
	redistest.Until(t, "the goroutines of closed clients end", func() bool { return runtime.NumGoroutine() <= before+1 })
}

func cluster(t *testing.T, open Open) {
	nodes := redistest.Cluster(t, 3)
	c := open(t, Where{Addresses: nodes.Addrs[:1], Cluster: true})
	defer c.Close()
	if !c.Cluster() {
		t.Fatal("the client does not know that it speaks to a Cluster")
	}
	// Calls for all nodes at once.
	var calls []*weirredis.Call
	for i := range 30 {
		calls = append(calls, call(counter, []string{fmt.Sprintf("{%d}", i)}))
	}
	within(t, c, 5*time.Second, calls...)
	for _, q := range calls {
		if q.Err != nil || q.Reply != "1" {
			t.Errorf("%s: %q, %v", q.Keys[0], q.Reply, q.Err)
		}
	}
	slot := nodes.Slot("{0}")
	to := (nodes.Owner(slot) + 1) % 3
	nodes.BeginMove(slot, to)
	if got, err := one(t, c, counter, []string{"{0}"}); err != nil || got != "2" {
		t.Errorf("a key that still stands where the slot is leaving: %q, %v", got, err)
	}
	if got, err := one(t, c, counter, []string{"{0}new"}); err != nil || got != "1" {
		t.Errorf("ASK for a key that is not there: %q, %v", got, err)
	}
	q := call(`return redis.call('GET', KEYS[1]) .. redis.call('GET', KEYS[2])`, []string{"{0}", "{0}new"})
	within(t, c, 5*time.Second, q)
	var said weirredis.ServerError
	if !errors.As(q.Err, &said) || !strings.HasPrefix(string(said), "TRYAGAIN") {
		t.Errorf("keys on both sides: %q, %v", q.Reply, q.Err)
	}
	nodes.FinishMove(slot, to)
	if got, err := one(t, c, counter, []string{"{0}"}); err != nil || got != "3" {
		t.Errorf("MOVED: %q, %v", got, err)
	}
	nodes.Nodes[to].Kill()
	other := 0
	for i := range 30 {
		if nodes.Owner(nodes.Slot(fmt.Sprintf("{%d}", i))) != to {
			other = i
			break
		}
	}
	if got, err := one(t, c, counter, []string{fmt.Sprintf("{%d}", other)}); err != nil {
		t.Errorf("a node that lives beside one that is gone: %q, %v", got, err)
	}
}

func sentinel(t *testing.T, open Open) {
	s := redistest.Sentinel(t)
	c := open(t, Where{Addresses: s.Addrs, Master: s.Name})
	defer c.Close()
	if _, err := one(t, c, counter, []string{"n"}); err != nil {
		t.Fatal(err)
	}
	first := s.Master()
	first.Kill()
	heals(t, c, "n")
	if m := s.Master(); m == first {
		t.Error("the old master answers, which is gone")
	}
	// The old master comes back as a replica, and must not be taken for the master.
	first.Restart()
	redistest.Until(t, "the old master follows the new one", func() bool {
		text, err := first.Do("INFO", "replication")
		return err == nil && strings.Contains(text, "role:slave")
	})
	heals(t, c, "n")
	if _, err := one(t, c, counter, []string{"n"}); err != nil {
		t.Errorf("after the old master came back: %v", err)
	}
}

// deafProxy passes on what is sent and, while it is deaf, no answer.
type deafProxy struct {
	ln net.Listener
	to string

	mu    sync.Mutex
	mute  bool
	conns []net.Conn
}

func deafen(t testing.TB, to string) *deafProxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &deafProxy{ln: ln, to: to}
	t.Cleanup(func() { ln.Close(); p.cut() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

func (p *deafProxy) addr() string { return p.ln.Addr().String() }

func (p *deafProxy) deaf(on bool) {
	p.mu.Lock()
	p.mute = on
	p.mu.Unlock()
}

// cut breaks all connections.
func (p *deafProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *deafProxy) serve(in net.Conn) {
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		in.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, in, out)
	p.mu.Unlock()
	go func() { _, _ = io.Copy(out, in); out.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := out.Read(buf)
		if err != nil {
			in.Close()
			return
		}
		p.mu.Lock()
		mute := p.mute
		p.mu.Unlock()
		if mute {
			continue
		}
		if _, err := in.Write(buf[:n]); err != nil {
			return
		}
	}
}
