package redistest

import (
	"slices"
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
	if first != s.Servers[0] {
		t.Fatalf("the master is %v", first)
	}
	first.Kill()
	Until(t, "a replica takes over", func() bool { m := s.Master(); return m != nil && m != first })
	if m := s.Master(); !slices.Contains(s.Servers[1:], m) {
		t.Errorf("the master is %v", m)
	}
}

func TestClusterMovesSlots(t *testing.T) {
	c := Cluster(t, 3)
	slot := c.Slot("{x}")
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
