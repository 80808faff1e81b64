// Package daemon assembles what a configuration names and runs it: store, limiter,
// gateway, admin door, and the files that are watched. It decides nothing about
// requests.
//
// A change of the rules' file, or Reload, parses, checks and compiles the new rules
// and swaps them in one step; what was used stays used. If anything is wrong with
// them the old ones stay in force, and the problems are logged and counted. The
// other sections (doors, routes, store, client_ip, headers) are read once; that
// they changed is logged.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/admin"
	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/server/demo"
	"github.com/weirhq/weir/server/gateway"
	"github.com/weirhq/weir/server/metrics"
	"github.com/weirhq/weir/source"
	"github.com/weirhq/weir/weirhttp"
)

// Options say what to run.
type Options struct {
	// Config is the path of the configuration.
	Config string
	// Listen replaces the address of the gateway; empty keeps it.
	Listen string
	// Demo puts a small site in place of every upstream. A configuration that names
	// no gateway gets one on 127.0.0.1:8080.
	Demo bool
	// Log hears what an operator may want to know; nil is slog.Default. Lines that
	// requests cause are sampled.
	Log *slog.Logger
	// Watch tunes how files are watched; its Notify is not used.
	Watch source.Options
}

// ErrNoDoor is returned by New for a configuration that opens nothing.
var ErrNoDoor = errors.New("daemon: the configuration names no gateway; add gateway: {listen: …, routes: […]}, or try the demo with --demo")

// A Daemon is an assembled weir. It is made by New, run once, and closed by that.
type Daemon struct {
	o       Options
	log     *slog.Logger
	sampled *sampler
	running *config.Config // what was installed
	metrics *metrics.Metrics
	memory  *weir.Memory // nil if the store is shared
	shared  *shared      // nil if it is not
	limiter *weirhttp.Limiter
	gateway *gateway.Gateway
	demo    *demo.Site // nil without one
	files   []*source.File

	gatewayDoor, adminDoor, demoDoor net.Listener

	stopping atomic.Bool

	mu    sync.Mutex
	rules *rules.Document // in force
	stale map[string]bool // files whose content is not in force
}

// New reads the configuration and opens the doors; Run answers at them. The error
// is [rules.Problems] if the configuration or the rules have any.
func New(ctx context.Context, o Options) (d *Daemon, err error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	d = &Daemon{o: o, log: o.Log, sampled: newSampler(o.Log.Handler()), metrics: metrics.New(), stale: make(map[string]bool)}
	defer func() {
		if err != nil {
			d.close()
			d = nil
		}
	}()
	if d.running, d.rules, err = Load(ctx, o.Config); err != nil {
		return d, err
	}
	installed, err := d.doors()
	if err != nil {
		return d, err
	}
	if err := d.limit(); err != nil {
		return d, err
	}
	resolver, err := d.running.ClientIP.Resolver()
	if err != nil {
		return d, err
	}
	d.gateway, err = gateway.New(gateway.Options{
		Routes: installed.Routes, Timeouts: installed.Timeouts.Fill(), Limiter: d.limiter,
		Headers: fields(d.running.Headers), Resolver: resolver, Metrics: d.metrics, Log: slog.New(d.sampled),
	})
	if err != nil {
		return d, err
	}
	return d, d.watch()
}

// doors opens the listeners, and returns the gateway as it is to be.
func (d *Daemon) doors() (config.Gateway, error) {
	var g config.Gateway
	switch {
	case d.running.Gateway != nil:
		g = *d.running.Gateway
	case d.o.Demo:
		g = config.Gateway{Listen: "127.0.0.1:8080", Routes: []config.Route{{Match: rules.Match{Pattern: "/**"}}}}
	default:
		return g, ErrNoDoor
	}
	if d.o.Listen != "" {
		if err := g.Listen.UnmarshalText([]byte(d.o.Listen)); err != nil {
			return g, fmt.Errorf("daemon: --listen: %w", err)
		}
	}
	var err error
	if d.gatewayDoor, err = net.Listen("tcp", string(g.Listen)); err != nil {
		return g, fmt.Errorf("daemon: gateway: %w", err)
	}
	if d.running.Admin != nil {
		if d.adminDoor, err = admin.Listen(d.running.Admin.Listen); err != nil {
			return g, fmt.Errorf("daemon: %w", err)
		}
	}
	if d.o.Demo {
		if d.demoDoor, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return g, fmt.Errorf("daemon: demo: %w", err)
		}
		d.demo = demo.New()
		site := config.Upstream{URL: &url.URL{Scheme: "http", Host: d.demoDoor.Addr().String()}}
		routes := make([]config.Route, len(g.Routes))
		for i, r := range g.Routes {
			r.Upstreams = []config.Upstream{site}
			routes[i] = r
		}
		g.Routes = routes
	}
	return g, nil
}

// limit makes the store and the limiter.
func (d *Daemon) limit() error {
	program, err := rules.Compile(d.rules, weirhttp.Binding())
	if err != nil {
		return err
	}
	o := weir.Options[*weirhttp.Request]{}
	var store weir.Store
	if d.running.Store.Redis != nil {
		if d.shared, err = newShared(d.running.Store, d.log); err != nil {
			return err
		}
		d.metrics.Shared(d.shared.figures)
		store, o.Local = d.shared.store(), d.shared.share
	} else {
		d.memory = weir.NewMemory(weir.MemoryOptions{MaxKeys: d.running.Store.Memory.MaxKeys})
		d.metrics.Memory(d.memory.Stats)
		store = d.memory
	}
	heard := observers{
		metrics.Observer[*weirhttp.Request](d.metrics),
		refusals{slog.New(d.sampled)},
	}
	if d.demo != nil {
		heard = append(heard, audience{d.demo})
	}
	o.Observer = heard
	d.limiter, err = weir.New(d.metrics.Store(store), program.Ruleset, o)
	if err != nil {
		return err
	}
	d.metrics.InForce(program.Ruleset.Version)
	d.warn(d.running.Warn())
	if d.running.RulesFile != "" {
		d.warn(d.rules.Lint())
	}
	d.warn(d.rules.LintNodes(d.shared != nil))
	return nil
}

// fields are the headers by the middleware's name.
func fields(h config.Headers) weirhttp.Headers {
	switch {
	case h.IETF && h.X:
		return weirhttp.IETFAndX
	case h.X:
		return weirhttp.OnlyX
	case h.IETF:
		return weirhttp.IETF
	}
	return weirhttp.NoHeaders
}

// Gateway is the address at which the gateway listens.
func (d *Daemon) Gateway() net.Addr { return d.gatewayDoor.Addr() }

// Admin is the address of the admin door, nil if there is none.
func (d *Daemon) Admin() net.Addr {
	if d.adminDoor == nil {
		return nil
	}
	return d.adminDoor.Addr()
}

// close lets go of what New opened.
func (d *Daemon) close() {
	for _, ln := range []net.Listener{d.gatewayDoor, d.adminDoor, d.demoDoor} {
		if ln != nil {
			_ = ln.Close() // nobody was served
		}
	}
	if d.shared != nil {
		d.shared.close()
	}
}

// Run answers until ctx ends, and then returns when the requests that were being
// answered are finished, or were cut off after gateway.timeouts.shutdown, and every
// goroutine has ended. It returns nil if nothing went wrong.
func (d *Daemon) Run(ctx context.Context) error {
	front, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// What stands behind the gateway ends after it: its last requests need it.
	behind, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var parts sync.WaitGroup
	part := func(run func(context.Context) error) {
		parts.Go(func() {
			if err := run(behind); err != nil && behind.Err() == nil {
				stop(err)
			}
		})
	}
	d.log.Info("gateway open", "address", d.Gateway().String(), "rules", len(d.rules.Rules), "version", d.limiter.Version())
	for i, f := range d.files {
		part(func(ctx context.Context) error { return f.Run(ctx, d.deliver(i)) })
	}
	if d.adminDoor != nil {
		part(func(ctx context.Context) error {
			return serve(ctx, d.adminDoor, admin.Handler(admin.Options{Metrics: d.metrics.Handler(), Ready: d.ready}))
		})
		d.log.Info("admin door open", "address", d.Admin().String())
	}
	if d.demo != nil {
		part(func(ctx context.Context) error { return serve(ctx, d.demoDoor, d.demo) })
	}
	if d.shared != nil {
		part(d.shared.run)
	}
	part(d.tidy)
	context.AfterFunc(front, func() {
		d.stopping.Store(true)
		d.log.Info("stopping: requests in flight may finish")
		if d.demo != nil {
			d.demo.Close()
		}
	})
	err := d.gateway.Serve(front, d.gatewayDoor)
	if cause := context.Cause(front); err == nil && ctx.Err() == nil && cause != nil {
		err = cause
	}
	end()
	parts.Wait()
	d.sampled.flush(time.Time{})
	if err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	d.log.Info("stopped")
	return nil
}

// ready is nil while requests are taken.
func (d *Daemon) ready() error {
	if d.stopping.Load() {
		return errors.New("stopping")
	}
	return nil
}

// tidy says what the sampled log left out, every second, and forgets keys that have
// expired, every minute: a store that is asked nothing does not do so by itself.
func (d *Daemon) tidy(ctx context.Context) error {
	const sweep = 60
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			d.sampled.flush(now)
			if n%sweep == 0 && d.memory != nil {
				d.memory.Sweep()
			}
		}
	}
}

// serve answers at a door inside, where nobody has to be waited for.
func serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	err := server.Close()
	<-ended
	return err
}
