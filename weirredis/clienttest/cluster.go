package clienttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirredis"
)

func cluster(t *testing.T, open Open) {
	nodes := redistest.Cluster(t, 3)
	c := open(t, Where{Addresses: nodes.Addrs[:1], Cluster: true})
	t.Cleanup(c.Close)
	if !c.Cluster() {
		t.Fatal("the client does not know that it speaks to a Cluster")
	}
	// Calls for all nodes at once.
	var calls []*weirredis.Call
	for i := range 30 {
		calls = append(calls, call(counter, []string{fmt.Sprintf("{%d}", i)}))
	}
	within(t, c, plenty, calls...)
	for _, q := range calls {
		if q.Err != nil || q.Reply != "1" {
			t.Errorf("%s: %q, %v", q.Keys[0], q.Reply, q.Err)
		}
	}
	slot := redistest.Slot("{0}")
	from := nodes.Owner(slot)
	to := (from + 1) % 3

	nodes.BeginMove(slot, to)
	wantOne(t, c, "2", "a key that still stands where its slot leaves", counter, []string{"{0}"})
	wantOne(t, c, "1", "ASK for a key that stands nowhere", counter, []string{"{0}new"})
	both := `return redis.call('GET', KEYS[1]) .. redis.call('GET', KEYS[2])`
	q := call(both, []string{"{0}", "{0}new"})
	within(t, c, plenty, q)
	wantRefused(t, q, "TRYAGAIN", "keys on both sides")
	// In one pipeline: some calls are asked elsewhere, and the others are not.
	calls = nil
	for i := range 10 {
		calls = append(calls, call(counter, []string{"{0}"}), call(counter, []string{"{0}new"}), call(counter, []string{fmt.Sprintf("{%d}", 20+i)}))
	}
	within(t, c, plenty, calls...)
	for i, q := range calls {
		want := []string{fmt.Sprint(3 + i/3), fmt.Sprint(2 + i/3), "2"}[i%3]
		if q.Err != nil || q.Reply != want {
			t.Errorf("call %d during a move: %q, %v, want %s", i, q.Reply, q.Err, want)
		}
	}
	nodes.FinishMove(slot, to)
	wantOne(t, c, "1211", "MOVED", both, []string{"{0}", "{0}new"})
	nodes.Nodes[to].Must("SCRIPT", "FLUSH")
	q = byHash(counter, []string{"{0}"})
	within(t, c, plenty, q)
	wantRefused(t, q, "NOSCRIPT", "a hash that the new node does not know")
	nodes.MoveSlot(slot, from)
	wantOne(t, c, "13", "MOVED back", counter, []string{"{0}"})

	nodes.Nodes[to].Kill()
	for i := range 30 {
		key := fmt.Sprintf("{%d}", i)
		if nodes.Owner(redistest.Slot(key)) != to {
			heals(t, c, key)
			continue
		}
		q := call(echo, []string{key}, "x")
		within(t, c, plenty, q)
		if q.Err == nil || refused(q) != "" && !strings.HasPrefix(refused(q), "CLUSTERDOWN") {
			t.Errorf("the node that is gone: %q, %v", q.Reply, q.Err)
		}
	}
}

// unknownCluster: a client that was not told of the Cluster speaks to one node of it.
func unknownCluster(t *testing.T, open Open) {
	nodes := redistest.Cluster(t, 1)
	c := open(t, Where{Addresses: nodes.Addrs})
	t.Cleanup(c.Close)
	wantOne(t, c, "x", "one node", echo, []string{"a"}, "x")
	q := call(echo, []string{"a", "b"}, "x")
	within(t, c, plenty, q)
	wantRefused(t, q, "CROSSSLOT", "keys of two slots")
}

func lostAnswerInCluster(t *testing.T, open Open) {
	nodes := redistest.Cluster(t, 1)
	p := newProxy(t, nodes.Addrs[0])
	_, port, _ := strings.Cut(p.addr(), ":")
	nodes.Nodes[0].Must("CONFIG", "SET", "cluster-announce-port", port)
	c := open(t, Where{Addresses: []string{p.addr()}, Cluster: true})
	t.Cleanup(c.Close)
	losesAnswers(t, nodes.Nodes[0], p, c)
}
