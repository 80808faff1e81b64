package clienttest

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
)

func masterKilled(t *testing.T, open Open) {
	s := redistest.Sentinel(t)
	c := open(t, Where{Addresses: s.Addrs, Master: s.Name})
	t.Cleanup(c.Close)
	wantOne(t, c, "1", "the first master", counter, []string{"n"})
	first := s.Master()
	first.Kill()
	heals(t, c, "healed")
	if s.Master() == first {
		t.Error("the old master answers, which is gone")
	}
}

// masterStalled: the old master lives on with its connections, and is told to follow.
func masterStalled(t *testing.T, open Open) {
	s := redistest.Sentinel(t)
	c := open(t, Where{Addresses: s.Addrs, Master: s.Name})
	t.Cleanup(c.Close)
	warm(t, c)
	first := s.Master()
	first.Stop()
	heals(t, c, "healed")
	if s.Master() == first {
		t.Error("the old master answers, which stands still")
	}
	first.Continue()
	redistest.Until(t, "the old master follows the new one", func() bool {
		text, err := first.Do("INFO", "replication")
		return err == nil && strings.Contains(text, "role:slave") && strings.Contains(text, "master_link_status:up")
	})
	heals(t, c, "healed")
}
