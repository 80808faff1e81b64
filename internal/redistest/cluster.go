package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// slots is how many a Cluster has.
const slots = 16384

// ClusterNodes are a Cluster of masters.
type ClusterNodes struct {
	Addrs []string
	Nodes []*Server

	t     testing.TB
	ids   []string
	owner [slots]int
}

// Cluster starts a Cluster of n masters that share the slots evenly.
func Cluster(t testing.TB, n int) *ClusterNodes {
	t.Helper()
	c := &ClusterNodes{t: t}
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
				!strings.Contains(text, "cluster_known_nodes:"+strconv.Itoa(n)+"\r") {
				return false
			}
		}
		return c.agree()
	})
	return c
}

// agree is whether all nodes have the same idea of all.
func (c *ClusterNodes) agree() bool {
	var first []string
	for i, s := range c.Nodes {
		text, err := s.Do("CLUSTER", "NODES")
		if err != nil {
			return false
		}
		var view []string
		for line := range strings.Lines(text) {
			f := strings.Fields(line) // ID address flags master ping pong epoch link slots
			if len(f) < 8 {
				return false
			}
			on := slices.DeleteFunc(f[8:], func(slot string) bool { return slot[0] == '[' }) // on its way
			view = append(view, f[0]+" "+f[6]+" "+strings.Join(on, " "))
		}
		slices.Sort(view)
		if i == 0 {
			first = view
		} else if !slices.Equal(view, first) {
			return false
		}
	}
	return true
}

// Owner is the node that has a slot.
func (c *ClusterNodes) Owner(slot int) int { return c.owner[slot] }

// BeginMove opens a slot's way to another node: those of its keys that are there are
// found by ASK, and calls with keys on both sides are told TRYAGAIN.
func (c *ClusterNodes) BeginMove(slot, to int) {
	c.t.Helper()
	s := strconv.Itoa(slot)
	c.Nodes[to].Must("CLUSTER", "SETSLOT", s, "IMPORTING", c.ids[c.owner[slot]])
	c.Nodes[c.owner[slot]].Must("CLUSTER", "SETSLOT", s, "MIGRATING", c.ids[to])
}

// MoveKeys moves up to n keys of a slot on its way, and returns how many there were.
func (c *ClusterNodes) MoveKeys(slot, to, n int) int {
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
func (c *ClusterNodes) FinishMove(slot, to int) {
	c.t.Helper()
	for c.MoveKeys(slot, to, 100) > 0 {
	}
	s := strconv.Itoa(slot)
	old := c.owner[slot]
	for _, i := range append([]int{to, old}, c.others(to, old)...) {
		c.Nodes[i].Must("CLUSTER", "SETSLOT", s, "NODE", c.ids[to])
	}
	c.owner[slot] = to
	// Else a slot that moves on at once could fall back to whom it has left: a node whose
	// number for its idea is not yet known to all wins against one that says less.
	Until(c.t, "all nodes of the Cluster agree on a slot that has moved", c.agree)
}

func (c *ClusterNodes) others(a, b int) (all []int) {
	for i := range c.Nodes {
		if i != a && i != b {
			all = append(all, i)
		}
	}
	return all
}

// MoveSlot moves a slot with its keys.
func (c *ClusterNodes) MoveSlot(slot, to int) {
	c.t.Helper()
	if c.owner[slot] == to {
		return
	}
	c.BeginMove(slot, to)
	c.FinishMove(slot, to)
}

// Slot is that of a key: by the CRC16 of XMODEM of it, or of its first part in braces
// that is not empty.
func Slot(key string) int {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % slots)
}
