package weirredis

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
)

//go:embed nodes.lua
var nodesScript string

var nodesSHA = hash(nodesScript)

// NodesOptions are those of a Nodes.
type NodesOptions struct {
	// Prefix is that of the Store; "weir" if empty.
	Prefix string
	// Every is how often the node says that it lives; 1 s if 0. One that has been
	// silent for three times as long does not count.
	Every time.Duration
	// Asks, if not nil, tells whether the node asks Redis now, and does not decide without
	// it: those that gather need not wait for one that does.
	Asks func() bool
	// OnLoss, if not nil, is called when Redis turns out to have lost its state.
	OnLoss func()
}

// Nodes counts the processes that share a Redis, and notices when Redis has lost its
// state. It holds three keys there, and one of them stays.
type Nodes struct {
	client Client
	every  time.Duration
	asks   func() bool
	onLoss func()
	id     string
	keys   []string

	live   atomic.Int64
	losses atomic.Uint64

	// What a beat has learnt, for Run alone.
	birth string
	seen  [2]int // the most nodes in this period and the one before
	since time.Time
}

// memoryOfNodes is for how long a node that is gone still counts in Live, at least: a
// share that grows the moment a node seems gone would be too much if it is not.
const memoryOfNodes = time.Minute

// NewNodes makes one. It does nothing before Run.
func NewNodes(c Client, o NodesOptions) *Nodes {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	head := newNamer(o.Prefix).head + "nodes}"
	n := &Nodes{client: c, every: o.Every, asks: o.Asks, onLoss: o.OnLoss, id: rand.Text(), keys: []string{head, head + "asking", head + "born"}}
	n.live.Store(1)
	return n
}

// Live is the most nodes that were seen in the last minute that Redis could be asked,
// this one included. It stays while Redis is down, and is 1 at least.
func (n *Nodes) Live() int { return int(n.live.Load()) }

// Losses is how often Redis was found without the state it had before: restarted
// without a copy of it, or wiped. A replica that took over and lacks the last moments
// only is not noticed.
func (n *Nodes) Losses() uint64 { return n.losses.Load() }

// Run tells Redis that this node lives, until ctx ends; then it says that it leaves. It
// is called once. A Redis that does not answer is asked again the next time.
func (n *Nodes) Run(ctx context.Context) {
	for {
		n.beat(ctx)
		if weir.SystemClock().Sleep(ctx, n.every) != nil {
			break
		}
	}
	_, _ = n.call(context.WithoutCancel(ctx), 0, false, 0) // else it is forgotten in time
}

// beat is one sign of life.
func (n *Nodes) beat(ctx context.Context) {
	a, err := n.call(ctx, 3*n.every, n.asks != nil && n.asks(), 0)
	if err != nil {
		return
	}
	if n.learn(time.Now(), a.nodes, a.birth) && n.onLoss != nil {
		n.onLoss()
	}
}

const (
	// gatherEvery is how often a node that is back looks for the others.
	gatherEvery = 20 * time.Millisecond
	// gatherWithin is for how long Gather waits for nodes that do not come back: longer
	// than the breakers of tier wait between two probes.
	gatherWithin = 3 * time.Second
	// GatherSpread is by how much Gather returns earlier on one node than on another, if
	// all come back.
	GatherSpread = 5 * gatherEvery
)

// Gather tells the other nodes that this one can ask Redis again, and waits until all
// that live have said so since, at most gatherWithin, and no longer than ctx.
func (n *Nodes) Gather(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, gatherWithin)
	defer cancel()
	var since int64
	for {
		a, err := n.call(ctx, 3*n.every, since > 0, since)
		switch {
		case err != nil:
		case since == 0:
			since = a.now
			continue
		case a.asking >= n.Live():
			return
		}
		if weir.SystemClock().Sleep(ctx, gatherEvery) != nil {
			return
		}
	}
}

// learn takes what Redis has said, and returns whether it had lost its state.
func (n *Nodes) learn(now time.Time, count int, birth string) (lost bool) {
	if now.Sub(n.since) >= memoryOfNodes {
		n.seen, n.since = [2]int{0, n.seen[0]}, now
	}
	n.seen[0] = max(n.seen[0], count)
	n.live.Store(int64(max(n.seen[0], n.seen[1], 1)))
	if lost = n.birth != "" && n.birth != birth; lost {
		n.losses.Add(1)
	}
	n.birth = birth
	return lost
}

// count is what the script answers.
type count struct {
	nodes, asking int
	now           int64
	birth         string
}

// call runs the script once, within the time of a beat. The node counts for life, and as
// one that asks Redis if it does.
func (n *Nodes) call(ctx context.Context, life time.Duration, asks bool, since int64) (a count, err error) {
	asking := "0"
	if asks {
		asking = "1"
	}
	ctx, cancel := context.WithTimeout(ctx, min(n.every, time.Second))
	defer cancel()
	c := Call{Script: nodesScript, SHA1: nodesSHA, Keys: n.keys,
		Args: []string{n.id, strconv.FormatInt(life.Milliseconds(), 10), asking, strconv.FormatInt(since, 10)}}
	n.client.Run(ctx, []*Call{&c})
	if refusal(c.Err, "NOSCRIPT") {
		c.Err, c.Text = nil, true
		n.client.Run(ctx, []*Call{&c})
	}
	if c.Err != nil {
		return a, c.Err
	}
	if _, err = fmt.Sscan(c.Reply, &a.nodes, &a.asking, &a.now, &a.birth); err != nil && life > 0 {
		return a, fmt.Errorf("weirredis: the nodes' script answered %q: %w", c.Reply, err)
	}
	return a, nil
}
