// Package weirgoredis runs Weir's scripts on Redis or Valkey through go-redis, for
// services that use it already. Package weirrueidis does the same through rueidis; weir
// serve uses that.
package weirgoredis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/weirhq/weir/weirredis"
)

// Options say where Redis is and how it is spoken to; see New.
type Options = weirredis.ClientOptions

// ErrOptions is wrapped by what New says of options that contradict each other.
var ErrOptions = weirredis.ErrClientOptions

// most is how many connections to a server there can be.
const most = 1 << 10

// patience is how long a connection may say nothing before it is given up.
const patience = time.Second

// client makes that of go-redis.
func client(o *Options) redis.UniversalClient {
	u := redis.UniversalOptions{
		Addrs:    slices.Clone(o.Addresses), // go-redis appends to it
		Username: o.Username, Password: o.Password, TLSConfig: o.TLS, DB: o.Database,
		MasterName: o.Master, SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
		ClientName:    "weir",
		IsClusterMode: o.Cluster,
		// A script that charges must not run twice. See also once.
		MaxRetries: -1,
		// What is sent again after MOVED, ASK or a failed connect need not wait first.
		MinRetryBackoff: -1, MaxRetryBackoff: -1,
		MaxRedirects: 8,
		DialTimeout:  o.DialTimeout, DialerRetries: 1,
		// The context of a call does not reach the connection, so that a call that is given
		// up does not take it along: reconnecting is what a slow Redis needs least.
		ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience,
		PoolSize: o.Connections, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if u.PoolSize == 0 {
		u.PoolSize = 16
	}
	switch {
	case o.Cluster:
		cluster := u.Cluster()
		cluster.DisableRoutingPolicies = true // it need not say which of its commands have keys
		return redis.NewClusterClient(cluster)
	case o.Master != "":
		return redis.NewFailoverClient(u.Failover())
	}
	return redis.NewClient(u.Simple())
}

// Client implements [weirredis.Client]. All methods may be called concurrently.
type Client struct {
	cluster bool
	redis   redis.UniversalClient
	done    chan struct{} // closed by Close
	close   func() error
}

var _ weirredis.Client = (*Client)(nil)

// New makes a client. It connects with the first call, so that Redis need not be there
// yet; the error wraps ErrOptions. DialTimeout is without the greeting. Connections are
// up to 1024, and 16 if 0, which is as many as a Store has calls under way; each carries
// one Run at a time.
func New(o Options) (*Client, error) {
	if err := o.Check(most); err != nil {
		return nil, err
	}
	c := &Client{cluster: o.Cluster, redis: client(&o), done: make(chan struct{})}
	c.close = sync.OnceValue(func() error {
		close(c.done)
		return c.redis.Close()
	})
	return c, nil
}

// Cluster implements [weirredis.Client].
func (c *Client) Cluster() bool { return c.cluster }

// ErrClosed is the error of calls that Close finds under way, and of those after it.
var ErrClosed = errors.New("weirgoredis: the client is closed")

// once is a command that is not sent again. A ClusterClient repeats whole pipelines, even
// after a lost connection, unless a command of them says so.
type once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }

// Run implements [weirredis.Client].
func (c *Client) Run(ctx context.Context, calls []*weirredis.Call) {
	select {
	case <-c.done:
		fail(calls, ErrClosed)
		return
	default:
	}
	if err := ctx.Err(); err != nil || len(calls) == 0 {
		fail(calls, err)
		return
	}
	pipeline := c.redis.Pipeline()
	commands := make([]once, len(calls))
	for i, call := range calls {
		commands[i] = once{redis.NewCmd(ctx, arguments(call)...)}
		_ = pipeline.Process(ctx, commands[i]) // only queues it
	}
	answered := make(chan struct{})
	go func() {
		_, _ = pipeline.Exec(ctx) // every command has its own error
		close(answered)
	}()
	select {
	case <-answered:
		for i, call := range calls {
			call.Reply, call.Err = answer(commands[i])
		}
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

func arguments(call *weirredis.Call) []any {
	all := make([]any, 0, 3+len(call.Keys)+len(call.Args))
	if call.Text {
		all = append(all, "eval", call.Script)
	} else {
		all = append(all, "evalsha", call.SHA1)
	}
	all = append(all, len(call.Keys))
	for _, k := range call.Keys {
		all = append(all, k)
	}
	for _, a := range call.Args {
		all = append(all, a)
	}
	return all
}

// answer is what Redis said.
func answer(c once) (string, error) {
	text, err := c.Text()
	var said redis.Error
	if errors.As(err, &said) {
		err = weirredis.ServerError(said.Error())
	}
	return text, err
}

// Close implements [weirredis.Client].
func (c *Client) Close() { _ = c.close() } // the connections are gone whatever it says
