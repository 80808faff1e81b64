// Package weirrueidis runs Weir's scripts on Redis or Valkey through rueidis, which
// sends what many goroutines ask for in pipelines by itself. It is the client that weir
// serve uses.
package weirrueidis

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/weirredis"
)

// Options say where Redis is and how it is spoken to; see New.
type Options = weirredis.ClientOptions

// ErrOptions is wrapped by what New says of options that contradict each other.
var ErrOptions = weirredis.ErrClientOptions

// most is how many connections to a server there can be.
const most = 1 << 8

// topologyEvery is how often Sentinels are asked who the master is, for those who missed
// that it was said.
const topologyEvery = 2 * time.Second

// translate makes the options those of rueidis.
func translate(o *Options) rueidis.ClientOption {
	r := rueidis.ClientOption{
		InitAddress: slices.Clone(o.Addresses), Username: o.Username, Password: o.Password, TLSConfig: o.TLS, SelectDB: o.Database,
		ClientName: "weir",
		Sentinel: rueidis.SentinelOption{MasterSet: o.Master, Username: o.SentinelUsername, Password: o.SentinelPassword,
			TLSConfig: o.TLS, TopologyRefreshInterval: topologyEvery},
		DisableCache: true,
		// A script that charges must not run twice.
		DisableRetry: true,
		// A connection that says nothing for so long is asked, and then given up: by the
		// TCP alone it would live for minutes.
		ConnWriteTimeout: time.Second,
		ClusterOption:    rueidis.ClusterOption{MaxMovedRedirections: 8},
		// Else rueidis finds a Cluster by itself, whose commands must not mix slots.
		ForceSingleClient: !o.Cluster && o.Master == "",
	}
	r.Dialer.Timeout, r.Dialer.KeepAlive = o.DialTimeout, time.Second
	r.Sentinel.Dialer = r.Dialer
	if o.Connections > 0 {
		if r.PipelineMultiplex = bits.Len(uint(o.Connections - 1)); r.PipelineMultiplex == 0 {
			r.PipelineMultiplex = -1 // one; 0 is rueidis' own choice
		}
	}
	return r
}

// Client implements [weirredis.Client]. All methods may be called concurrently.
type Client struct {
	cluster bool
	option  rueidis.ClientOption
	sound   atomic.Bool    // the last call was answered
	done    chan struct{}  // closed by Close
	gone    sync.WaitGroup // connections that are let go of

	mu      sync.Mutex
	closed  bool
	live    rueidis.Client // nil until the first connection
	attempt *attempt       // to connect, nil if there is none
}

// attempt is one to connect, for which all callers wait.
type attempt struct {
	done chan struct{}
	live rueidis.Client
	err  error
}

var _ weirredis.Client = (*Client)(nil)

// New makes a client. It connects with the first call, so that Redis need not be there
// yet; the error wraps ErrOptions. DialTimeout is with the greeting. Connections are up
// to 256, rounded up to a power of two; 0 leaves it to rueidis, which takes one to four
// by the processors.
func New(o Options) (*Client, error) {
	if err := o.Check(most); err != nil {
		return nil, err
	}
	return &Client{cluster: o.Cluster, option: translate(&o), done: make(chan struct{})}, nil
}

// Cluster implements [weirredis.Client].
func (c *Client) Cluster() bool { return c.cluster }

// ErrClosed is the error of calls that Close finds under way, and of those after it.
var ErrClosed = errors.New("weirrueidis: the client is closed")

// Run implements [weirredis.Client].
func (c *Client) Run(ctx context.Context, calls []*weirredis.Call) {
	live, err := c.connected(ctx)
	if err != nil {
		fail(calls, err)
		return
	}
	commands := commands(live, calls)
	if c.sound.Load() {
		c.read(ctx, live, calls, live.DoMulti(ctx, commands...))
		return
	}
	// By itself rueidis does not leave a connection that another call is making, nor a
	// queue that is full, when ctx ends. So after a failure a call is left behind, with a
	// copy of all it needs, until one has succeeded.
	answered := make(chan []rueidis.RedisResult, 1)
	go func() { answered <- live.DoMulti(ctx, commands...) }()
	select {
	case results := <-answered:
		c.read(ctx, live, calls, results)
	case <-ctx.Done():
		fail(calls, ctx.Err())
	case <-c.done:
		fail(calls, ErrClosed)
	}
}

func fail(calls []*weirredis.Call, err error) {
	for _, call := range calls {
		call.Err = err
	}
}

func commands(live rueidis.Client, calls []*weirredis.Call) []rueidis.Completed {
	all := make([]rueidis.Completed, len(calls))
	for i, call := range calls {
		n := int64(len(call.Keys))
		if call.Text {
			all[i] = live.B().Eval().Script(call.Script).Numkeys(n).Key(call.Keys...).Arg(call.Args...).Build()
		} else {
			all[i] = live.B().Evalsha().Sha1(call.SHA1).Numkeys(n).Key(call.Keys...).Arg(call.Args...).Build()
		}
	}
	return all
}

// read writes the answers to the calls.
func (c *Client) read(ctx context.Context, live rueidis.Client, calls []*weirredis.Call, results []rueidis.RedisResult) {
	sound := true
	for i, call := range calls {
		call.Reply, call.Err = results[i].ToString()
		said, ok := rueidis.IsRedisErr(call.Err)
		if !ok {
			if call.Err != nil {
				sound = false
				if ctx.Err() != nil { // else it may be the timeout of a connection
					call.Err = ctx.Err()
				}
			}
			continue
		}
		call.Err = weirredis.ServerError(said.Error())
		if strings.HasPrefix(said.Error(), "READONLY") {
			c.drop(live)
		}
	}
	if sound != c.sound.Load() {
		c.sound.Store(sound)
	}
}

// connected returns the connection, or waits for an attempt to make it.
func (c *Client) connected(ctx context.Context) (rueidis.Client, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	if c.live != nil {
		defer c.mu.Unlock()
		return c.live, nil
	}
	a := c.attempt
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		c.attempt = a
		go c.connect(a)
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.live, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.done:
		return nil, ErrClosed
	}
}

func (c *Client) connect(a *attempt) {
	live, err := rueidis.NewClient(c.option)
	if err != nil && live != nil {
		live.Close()
		live = nil
	}
	if said, ok := rueidis.IsRedisErr(err); ok { // such as WRONGPASS
		err = weirredis.ServerError(said.Error())
	}
	c.mu.Lock()
	if c.closed && live != nil {
		go live.Close()
		live, err = nil, ErrClosed
	}
	a.live, a.err = live, err
	c.live, c.attempt = live, nil
	c.mu.Unlock()
	close(a.done)
}

// drop disconnects from a server that turned out to be a replica; the next call looks
// for the master anew.
func (c *Client) drop(live rueidis.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live != live {
		return
	}
	c.live = nil
	c.gone.Go(live.Close)
}

// Close implements [weirredis.Client]. A server that does not answer delays it by about
// a second for each connection. An attempt to connect ends by itself, within the
// DialTimeout or, with Sentinels, some seconds.
func (c *Client) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.done)
	}
	live := c.live
	c.live = nil
	c.mu.Unlock()
	if live != nil {
		live.Close()
	}
	c.gone.Wait()
}
