package weirredis

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
)

//go:embed nodes.lua
var nodesScript string

// NodesOptions are those of a Nodes.
type NodesOptions struct {
	// Prefix is that of the Store; "weir" if empty.
	Prefix string
	// Every is how often the node says that it lives; 2 s if 0. One that has been
	// silent for three times as long does not count.
	Every time.Duration
	// OnLoss, if not nil, is called when Redis turns out to have lost its state.
	OnLoss func()
}

// Nodes counts the processes that share a Redis, and notices when Redis has lost its
// state. It holds two keys there, and one of them stays.
type Nodes struct {
	client Client
	every  time.Duration
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
	if o.Prefix == "" {
		o.Prefix = "weir"
	}
	if o.Every <= 0 {
		o.Every = 2 * time.Second
	}
	head := newNamer(o.Prefix).head + "nodes}"
	n := &Nodes{client: c, every: o.Every, onLoss: o.OnLoss, id: rand.Text(), keys: []string{head, head + "born"}}
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
	_, _ = n.call(context.WithoutCancel(ctx), "0") // else it is forgotten in time
}

// beat is one sign of life.
func (n *Nodes) beat(ctx context.Context) {
	answer, err := n.call(ctx, strconv.FormatInt((3*n.every).Milliseconds(), 10))
	if err != nil {
		return
	}
	text, birth, _ := strings.Cut(answer, " ")
	count, err := strconv.Atoi(text)
	if err != nil || birth == "" {
		return
	}
	if n.learn(time.Now(), count, birth) && n.onLoss != nil {
		n.onLoss()
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

// call runs the script once, within the time of a beat.
func (n *Nodes) call(ctx context.Context, life string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, min(n.every, time.Second))
	defer cancel()
	sum := sha1.Sum([]byte(nodesScript))
	c := Call{Script: nodesScript, SHA1: hex.EncodeToString(sum[:]), Keys: n.keys, Args: []string{n.id, life}}
	n.client.Run(ctx, []*Call{&c})
	if refusal(c.Err, "NOSCRIPT") {
		c.Err, c.Text = nil, true
		n.client.Run(ctx, []*Call{&c})
	}
	return c.Reply, c.Err
}
