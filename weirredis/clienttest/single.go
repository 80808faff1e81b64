package clienttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirredis"
)

// single starts a server and opens a client of it.
func single(t *testing.T, open Open) (*redistest.Server, weirredis.Client) {
	t.Helper()
	s := redistest.Single(t)
	c := open(t, Where{Addresses: []string{s.Addr}})
	t.Cleanup(c.Close)
	return s, c
}

func answers(t *testing.T, open Open) {
	_, c := single(t, open)
	if c.Cluster() {
		t.Error("the client takes one server for a Cluster")
	}
	var all strings.Builder
	for b := range 256 {
		all.WriteByte(byte(b))
	}
	for _, text := range []string{"", "x", "\r\n", all.String(), strings.Repeat("long", 100_000)} {
		if got, err := one(t, c, echo, nil, text); err != nil || got != text {
			t.Errorf("%d bytes come back as %d, %v", len(text), len(got), err)
		}
	}
	wantOne(t, c, all.String(), "keys of any bytes", `return KEYS[2]`, []string{"a", all.String()})
	wantOne(t, c, "2 3", "keys and arguments", `return #KEYS .. ' ' .. #ARGV`, []string{"a", "b"}, "", "x", "")
	q := byHash(echo, []string{"a", "b"}, "z") // EVAL has left it there
	if within(t, c, plenty, q); q.Err != nil || q.Reply != "z" {
		t.Errorf("by its hash: %q, %v", q.Reply, q.Err)
	}
	within(t, c, plenty) // no calls at all
}

func serverErrors(t *testing.T, open Open) {
	_, c := single(t, open)
	push := call(`return tostring(redis.call('RPUSH', KEYS[1], 'x'))`, []string{"list"})
	unknown := byHash(echo, nil, "x")
	wrong := call(`return redis.call('INCR', KEYS[1])`, []string{"list"})
	own := call(`return redis.error_reply('MINE is so')`, nil)
	last := call(echo, nil, "last")
	within(t, c, plenty, push, unknown, wrong, own, last)
	for _, q := range []*weirredis.Call{push, last} {
		if q.Err != nil {
			t.Errorf("a call beside those that fail: %v", q.Err)
		}
	}
	wantRefused(t, unknown, "NOSCRIPT", "an unknown hash")
	wantRefused(t, wrong, "WRONGTYPE", "a command that fails")
	wantRefused(t, own, "MINE is so", "a script that fails")
}

func order(t *testing.T, open Open) {
	s, c := single(t, open)
	calls := make([]*weirredis.Call, 100)
	var want []string
	for i := range calls {
		calls[i] = call(`redis.call('RPUSH', KEYS[1], ARGV[1]) return ARGV[1]`, []string{"list"}, strconv.Itoa(i))
		want = append(want, strconv.Itoa(i))
	}
	within(t, c, plenty, calls...)
	for i, q := range calls {
		if q.Err != nil || q.Reply != want[i] {
			t.Errorf("call %d: %q, %v", i, q.Reply, q.Err)
		}
	}
	if got := s.Must("LRANGE", "list", "0", "-1"); got != strings.Join(want, "\n") {
		t.Errorf("they ran in the order %q", got)
	}
}

func many(t *testing.T, open Open) {
	s, c := single(t, open)
	var group sync.WaitGroup
	for g := range 50 {
		group.Go(func() {
			calls := make([]*weirredis.Call, 20)
			for i := range calls {
				calls[i] = call(`redis.call('INCR', KEYS[1]) return ARGV[1]`, []string{"n"}, fmt.Sprint(g, i))
			}
			within(t, c, plenty, calls...)
			for i, q := range calls {
				if q.Err != nil || q.Reply != fmt.Sprint(g, i) {
					t.Errorf("call %d of %d: %q, %v", i, g, q.Reply, q.Err)
				}
			}
		})
	}
	group.Wait()
	wantCount(t, s, "n", 1000)
}

// wantCount wants that a counter has counted so many calls.
func wantCount(t testing.TB, s *redistest.Server, key string, want int) {
	t.Helper()
	if got := s.Must("GET", key); got != strconv.Itoa(want) {
		t.Errorf("%d calls were carried out %s times", want, got)
	}
}

func leaves(t *testing.T, open Open) {
	s, c := single(t, open)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	q := call(counter, []string{"over"})
	c.Run(over, []*weirredis.Call{q})
	if !errors.Is(q.Err, context.Canceled) {
		t.Errorf("a context that is over already: %v", q.Err)
	}
	if got := s.Must("EXISTS", "over"); got != "0" {
		t.Error("a call ran for whom nobody waited from the beginning")
	}
	warm(t, c)
	s.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	q = call(echo, nil, "x")
	done := make(chan struct{})
	go func() { c.Run(ctx, []*weirredis.Call{q}); close(done) }()
	cancel()
	<-done
	if !errors.Is(q.Err, context.Canceled) {
		t.Errorf("a context that was cancelled: %v", q.Err)
	}
	q = call(echo, nil, "x")
	within(t, c, 20*time.Millisecond, q)
	if !errors.Is(q.Err, context.DeadlineExceeded) {
		t.Errorf("a context whose time was over: %v", q.Err)
	}
	s.Continue()
	heals(t, c, "healed")
}

func stalled(t *testing.T, open Open) {
	s, c := single(t, open)
	warm(t, c)
	s.Stop()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			q := call(counter, []string{"n"})
			within(t, c, 50*time.Millisecond, q)
			wantUnknown(t, q, "a call to a server that stands still")
		})
	}
	group.Wait()
	s.Continue()
	heals(t, c, "healed")
	if n, _ := strconv.Atoi(s.Must("GET", "n")); n > 20 {
		t.Errorf("20 calls were carried out %d times", n)
	}
	// What was asked and given up must not answer those who ask now.
	for i := range 50 {
		wantOne(t, c, strconv.Itoa(i), "after the stall", echo, nil, strconv.Itoa(i))
	}
}

func killed(t *testing.T, open Open) {
	s, c := single(t, open)
	warm(t, c)
	s.Kill()
	for range 3 {
		q := call(echo, nil, "x")
		within(t, c, time.Second, q)
		wantUnknown(t, q, "a call to a server that is gone")
	}
	s.Restart()
	heals(t, c, "healed")
}

func notThereYet(t *testing.T, open Open) {
	s := redistest.Single(t)
	s.Kill()
	c := open(t, Where{Addresses: []string{s.Addr}})
	t.Cleanup(c.Close)
	q := call(echo, nil, "x")
	within(t, c, time.Second, q)
	wantUnknown(t, q, "a server that is not there")
	s.Restart()
	heals(t, c, "healed")
}

func lostAnswer(t *testing.T, open Open) {
	s := redistest.Single(t)
	p := newProxy(t, s.Addr)
	c := open(t, Where{Addresses: []string{p.addr()}})
	t.Cleanup(c.Close)
	losesAnswers(t, s, p, c)
}

// losesAnswers has calls carried out whose answers are not heard, and wants that none
// of them runs again.
func losesAnswers(t *testing.T, s *redistest.Server, p *proxy, c weirredis.Client) {
	warm(t, c)
	p.allow(0)
	q := call(counter, []string{"late"})
	within(t, c, 50*time.Millisecond, q)
	wantUnknown(t, q, "an answer that does not come in time")
	redistest.Until(t, "the call was carried out", func() bool { return s.Must("EXISTS", "late") == "1" })
	p.cut()
	p.allow(everything)
	heals(t, c, "healed")
	wantCount(t, s, "late", 1)

	warm(t, c)
	p.allow(len("$1\r\n1\r\n"))
	calls := []*weirredis.Call{call(counter, []string{"a"}), call(counter, []string{"b"}), call(counter, []string{"c"})}
	done := make(chan struct{})
	go func() { within(t, c, plenty, calls...); close(done) }()
	redistest.Until(t, "the calls were carried out", func() bool { return s.Must("EXISTS", "c") == "1" })
	p.cut()
	p.allow(everything) // so that whoever asks again can
	<-done
	for _, q := range calls[1:] {
		wantUnknown(t, q, "an answer that a connection broke before")
	}
	heals(t, c, "healed")
	for _, q := range calls {
		wantCount(t, s, q.Keys[0], 1)
	}
}

// readOnly: behind an address stands a replica, and then a master.
func readOnly(t *testing.T, open Open) {
	master, replica := redistest.Single(t), redistest.Single(t)
	p := newProxy(t, replica.Addr)
	c := open(t, Where{Addresses: []string{p.addr()}})
	t.Cleanup(c.Close)
	warm(t, c)
	replica.Must("REPLICAOF", "127.0.0.1", "1")
	p.lead(master.Addr)
	q := call(counter, []string{"n"})
	within(t, c, plenty, q)
	wantRefused(t, q, "READONLY", "a replica")
	heals(t, c, "healed")
}

func passwords(t *testing.T, open Open) {
	s := redistest.Single(t, "--requirepass", "right")
	s.Must("ACL", "SETUSER", "weir", "on", ">own", "~*", "+@all")
	for _, w := range []struct {
		user, password, says string
	}{{"", "wrong", "WRONGPASS"}, {"weir", "wrong", "WRONGPASS"}, {"", "", "NOAUTH"}, {"", "right", ""}, {"weir", "own", ""}} {
		c := open(t, Where{Addresses: []string{s.Addr}, Username: w.user, Password: w.password})
		q := call(echo, nil, "x")
		within(t, c, plenty, q)
		if w.says != "" {
			wantRefused(t, q, w.says, "the password "+strconv.Quote(w.password))
		} else if q.Err != nil {
			t.Errorf("the right password: %v", q.Err)
		}
		c.Close()
	}
}

func database(t *testing.T, open Open) {
	s := redistest.Single(t)
	c := open(t, Where{Addresses: []string{s.Addr}, Database: 3})
	t.Cleanup(c.Close)
	heals(t, c, "healed")
	if got := s.Must("INFO", "keyspace"); !strings.Contains(got, "db3:keys=1") || strings.Contains(got, "db0") {
		t.Errorf("the key stands in %q", got)
	}
}

func closed(t *testing.T, open Open) {
	s := redistest.Single(t)
	before := runtime.NumGoroutine()
	for range 5 {
		c := open(t, Where{Addresses: []string{s.Addr}})
		warm(t, c)
		c.Close()
		c.Close()
		q := call(echo, nil, "x")
		within(t, c, time.Second, q)
		wantUnknown(t, q, "a closed client")
	}
	open(t, Where{Addresses: []string{s.Addr}}).Close() // which never was used
	redistest.Until(t, "the goroutines of closed clients end", func() bool { return runtime.NumGoroutine() <= before })
	redistest.Until(t, "their connections are closed", func() bool {
		return !strings.Contains(s.Must("INFO", "clients"), "connected_clients:2")
	})
}

func closeEnds(t *testing.T, open Open) {
	s, c := single(t, open)
	warm(t, c)
	s.Stop()
	done := make(chan struct{})
	q := call(echo, nil, "x")
	go func() { c.Run(context.Background(), []*weirredis.Call{q}); close(done) }()
	c.Close()
	<-done
	wantUnknown(t, q, "a call that Close found under way")
	s.Continue()
}
