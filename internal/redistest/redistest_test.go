package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSingleComesAndGoes(t *testing.T) {
	s := Single(t, "--requirepass", "x y")
	if got := s.Must("SET", "a", "1"); got != "OK" {
		t.Errorf("SET answers %q", got)
	}
	if _, err := s.Do("INCR"); err == nil || !strings.Contains(err.Error(), "wrong number") {
		t.Errorf("a wrong command: %v", err)
	}
	s.Kill()
	if _, err := s.Do("PING"); err == nil {
		t.Error("a server that was killed answers")
	}
	s.Restart()
	if got := s.Must("EXISTS", "a"); got != "0" {
		t.Errorf("a restarted server has %s of the keys", got)
	}
}

func TestSentinelsFailOver(t *testing.T) {
	s := Sentinel(t)
	first := s.Master()
	if first == nil || slices.Contains(s.Replicas, first) {
		t.Fatalf("the master is %v", first)
	}
	first.Kill()
	Until(t, "a replica takes over", func() bool { m := s.Master(); return m != nil && m != first })
	if m := s.Master(); !slices.Contains(s.Replicas, m) {
		t.Errorf("the master is %v", m)
	}
}

func TestSlotIsThatOfRedis(t *testing.T) {
	s := Single(t, "--cluster-enabled", "yes")
	for _, key := range []string{"", "a", "123456789", "weir:{abc}d", "{}x", "x{}{y}", "{a{b}c}", "a}b{c", "\xff\x00"} {
		if got, want := strconv.Itoa(Slot(key)), s.Must("CLUSTER", "KEYSLOT", key); got != want {
			t.Errorf("%q is in slot %s, want %s", key, got, want)
		}
	}
}

func TestAStoppedServerGoesOn(t *testing.T) {
	s := Single(t)
	s.Stop()
	done := make(chan error)
	go func() { _, err := s.Do("PING"); done <- err }()
	s.Continue()
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.Stop()
	s.Kill() // which a server that stands still must not outlive
}

func TestASlotMovesBackAtOnce(t *testing.T) {
	c := Cluster(t, 2)
	slot := Slot("x")
	c.Nodes[c.Owner(slot)].Must("SET", "x", "1")
	for range 10 {
		c.MoveSlot(slot, 1-c.Owner(slot))
	}
	if got := c.Nodes[c.Owner(slot)].Must("GET", "x"); got != "1" {
		t.Errorf("after ten moves: %q", got)
	}
}

func TestClusterMovesSlots(t *testing.T) {
	c := Cluster(t, 3)
	slot := Slot("{x}")
	from := c.Owner(slot)
	to := (from + 1) % 3
	c.Nodes[from].Must("SET", "{x}1", "one")
	c.Nodes[from].Must("SET", "{x}2", "two")
	c.BeginMove(slot, to)
	if n := c.MoveKeys(slot, to, 1); n != 1 {
		t.Fatalf("%d keys moved", n)
	}
	if _, err := c.Nodes[from].Do("MGET", "{x}1", "{x}2"); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN") {
		t.Errorf("keys on both sides: %v", err)
	}
	c.FinishMove(slot, to)
	if got := c.Nodes[to].Must("MGET", "{x}1", "{x}2"); got != "one\ntwo" {
		t.Errorf("after the move: %q", got)
	}
	if _, err := c.Nodes[from].Do("GET", "{x}1"); err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
		t.Errorf("at the old node: %v", err)
	}
}
