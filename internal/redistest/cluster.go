package redistest

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// slots is how many a Cluster has.
const slots = 16384

// Nodes are a Cluster of masters.
type Nodes struct {
	Addrs []string
	Nodes []*Server

	t     testing.TB
	ids   []string
	owner [slots]int
}

// Cluster starts a Cluster of n masters that share the slots evenly.
func Cluster(t testing.TB, n int) *Nodes {
	t.Helper()
	c := &Nodes{t: t}
	for range n {
		s := Single(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no")
		c.Nodes, c.Addrs = append(c.Nodes, s), append(c.Addrs, s.Addr)
		c.ids = append(c.ids, s.Must("CLUSTER", "MYID"))
	}
	for i, s := range c.Nodes {
		s.Must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		from, to := i*slots/n, (i+1)*slots/n
		s.Must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(from), strconv.Itoa(to-1))
		for slot := from; slot < to; slot++ {
			c.owner[slot] = i
		}
		host, number, _ := strings.Cut(c.Addrs[0], ":")
		s.Must("CLUSTER", "MEET", host, number)
	}
	Until(t, "all nodes of the Cluster know each other", func() bool {
		for _, s := range c.Nodes {
			text, err := s.Do("CLUSTER", "INFO")
			if err != nil || !strings.Contains(text, "cluster_state:ok") || !strings.Contains(text, "cluster_slots_ok:16384") ||
				!strings.Contains(text, "cluster_known_nodes:"+strconv.Itoa(n)) {
				return false
			}
		}
		return true
	})
	return c
}

// Owner is the node that has a slot.
func (c *Nodes) Owner(slot int) int { return c.owner[slot] }

// BeginMove opens a slot's way to another node: those of its keys that are there are
// found by ASK, and calls with keys on both sides are told TRYAGAIN.
func (c *Nodes) BeginMove(slot, to int) {
	c.t.Helper()
	s := strconv.Itoa(slot)
	c.Nodes[to].Must("CLUSTER", "SETSLOT", s, "IMPORTING", c.ids[c.owner[slot]])
	c.Nodes[c.owner[slot]].Must("CLUSTER", "SETSLOT", s, "MIGRATING", c.ids[to])
}

// MoveKeys moves up to n keys of a slot on its way, and returns how many there were.
func (c *Nodes) MoveKeys(slot, to, n int) int {
	c.t.Helper()
	from := c.Nodes[c.owner[slot]]
	keys := from.Must("CLUSTER", "GETKEYSINSLOT", strconv.Itoa(slot), strconv.Itoa(n))
	if keys == "" {
		return 0
	}
	host, number, _ := strings.Cut(c.Addrs[to], ":")
	list := strings.Split(keys, "\n")
	from.Must(append([]string{"MIGRATE", host, number, "", "0", "5000", "KEYS"}, list...)...)
	return len(list)
}

// FinishMove moves what is left and hands the slot over.
func (c *Nodes) FinishMove(slot, to int) {
	c.t.Helper()
	for c.MoveKeys(slot, to, 100) > 0 {
	}
	s := strconv.Itoa(slot)
	old := c.owner[slot]
	for _, i := range append([]int{to, old}, c.others(to, old)...) {
		c.Nodes[i].Must("CLUSTER", "SETSLOT", s, "NODE", c.ids[to])
	}
	c.owner[slot] = to
}

func (c *Nodes) others(a, b int) (all []int) {
	for i := range c.Nodes {
		if i != a && i != b {
			all = append(all, i)
		}
	}
	return all
}

// MoveSlot moves a slot with its keys.
func (c *Nodes) MoveSlot(slot, to int) {
	c.t.Helper()
	if c.owner[slot] == to {
		return
	}
	c.BeginMove(slot, to)
	c.FinishMove(slot, to)
}

// Slot is that of a key, by its part in braces if it has one.
func (c *Nodes) Slot(key string) int {
	c.t.Helper()
	var answer string
	err := errors.New("redistest: no node of the Cluster lives")
	for _, s := range c.Nodes {
		if answer, err = s.Do("CLUSTER", "KEYSLOT", key); err == nil {
			break
		}
	}
	if err != nil {
		c.t.Fatal(err)
	}
	n, err := strconv.Atoi(answer)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
