package weirredis

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// until waits for what other goroutines bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain waited for: ", what)
		}
	}
}

// node runs a Nodes until it is left.
func node(t *testing.T, addr string, onLoss func()) (n *Nodes, leave func()) {
	n = NewNodes(dial(t, addr), NodesOptions{Prefix: t.Name(), Every: 20 * time.Millisecond, OnLoss: onLoss})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.Run(ctx); close(done) }()
	leave = func() { cancel(); <-done }
	t.Cleanup(leave)
	return n, leave
}

func TestNodesSeeEachOtherComeAndGo(t *testing.T) {
	addr := server(t)
	a, _ := node(t, addr, nil)
	if a.Live() != 1 {
		t.Fatalf("one node alone sees %d", a.Live())
	}
	b, leave := node(t, addr, nil)
	until(t, "both see both", func() bool { return a.Live() == 2 && b.Live() == 2 })
	leave()
	c, _ := node(t, addr, nil)
	until(t, "a late one sees one more", func() bool { return c.Live() == 2 })
	if a.Live() != 2 {
		t.Errorf("%d nodes, of which one has left for another", a.Live())
	}
}

func TestANodeThatIsGoneCountsForAMinuteMore(t *testing.T) {
	n := NewNodes(nil, NodesOptions{})
	start := time.Unix(1_800_000_000, 0)
	n.learn(start, 5, "x")
	for at, want := range map[time.Duration]int{0: 5, 30 * time.Second: 5, 59 * time.Second: 5} {
		if n.learn(start.Add(at), 1, "x"); n.Live() != want {
			t.Errorf("after %v: %d nodes, want %d", at, n.Live(), want)
		}
	}
	n.learn(start.Add(61*time.Second), 1, "x")
	if n.Live() != 5 {
		t.Errorf("just after a minute: %d nodes, want 5", n.Live())
	}
	n.learn(start.Add(122*time.Second), 1, "x")
	if n.Live() != 1 {
		t.Errorf("after two minutes: %d nodes, want 1", n.Live())
	}
	if n.learn(start.Add(200*time.Second), 0, "x"); n.Live() != 1 {
		t.Errorf("none at all: %d nodes, want 1", n.Live())
	}
}

func TestARedisThatForgotIsNoticedOnce(t *testing.T) {
	addr := server(t)
	var calls atomic.Int32
	n, _ := node(t, addr, func() { calls.Add(1) })
	by := dial(t, addr)
	there := func() bool { return by.do(t, "EXISTS", n.keys[2]) == "1" }
	until(t, "a birth", there)
	by.do(t, "SCRIPT", "FLUSH")
	by.do(t, "DEL", n.keys[0], n.keys[2])
	until(t, "the loss", func() bool { return n.Losses() == 1 && calls.Load() == 1 })
	until(t, "a birth", there)
	if n.Losses() != 1 {
		t.Errorf("one loss was counted %d times", n.Losses())
	}
}

func TestNodesKeysLieInOneSlotWhateverThePrefix(t *testing.T) {
	n := NewNodes(nil, NodesOptions{Prefix: "a{b}c"})
	if n.keys[0] != "a(b)c:{nodes}" || n.keys[1] != "a(b)c:{nodes}asking" || n.keys[2] != "a(b)c:{nodes}born" {
		t.Errorf("keys %q", n.keys)
	}
}

// TestNodesGather: those that are back wait for the others.
func TestNodesGather(t *testing.T) {
	addr := server(t)
	a, _ := node(t, addr, nil)
	b, _ := node(t, addr, nil)
	until(t, "both see both", func() bool { return a.Live() == 2 && b.Live() == 2 })
	var gathered atomic.Int64
	done := make(chan struct{}, 2)
	gather := func(n *Nodes) { n.Gather(t.Context()); gathered.Add(1); done <- struct{}{} }
	go gather(a)
	until(t, "one says that it is back", func() bool {
		got, err := a.call(t.Context(), time.Minute, false, 1)
		return err == nil && got.asking == 1
	})
	if gathered.Load() != 0 {
		t.Error("one of two nodes went on alone")
	}
	go gather(b)
	<-done
	<-done
	// One that asks Redis all the time says so with its next beat.
	c := NewNodes(dial(t, addr), NodesOptions{Prefix: t.Name(), Every: 20 * time.Millisecond, Asks: func() bool { return true }})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { c.Run(ctx); done <- struct{}{} }()
	until(t, "all see three", func() bool { return a.Live() == 3 && b.Live() == 3 })
	go gather(a)
	go gather(b)
	<-done
	<-done
	cancel()
	<-done
	a.Gather(ctx) // returns
}
