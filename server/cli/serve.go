package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/server/daemon"
)

func newServe(s Streams) *cobra.Command {
	var o daemon.Options
	var format string
	var level slog.Level
	c := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Run the gateway",
		Long: `Run the gateway of a configuration, and its admin door.

The rules are read again when their file changes and on SIGHUP. If they have
problems, the old ones stay in force and the problems are logged. Everything
else in the file takes effect at the next start.

Ctrl-C or SIGTERM stops: no new connections are taken, and requests in flight
may finish. A second Ctrl-C does not wait for them.`,
		Example: text(`
			weir serve --config weir.yaml
			weir serve --config examples/quickstart.yaml --demo
			weir serve --config rules.yaml --demo --listen 127.0.0.1:9090`),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Config == "" {
				return required(c, "config", "the file to serve, such as examples/quickstart.yaml")
			}
			handler, err := logHandler(s, format, level)
			if err != nil {
				return &usageError{err, c}
			}
			o.Log = slog.New(handler)
			return runServe(c.Context(), s, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Config, "config", "", "the configuration `FILE`, or one with rules alone")
	f.StringVar(&o.Listen, "listen", "", "the `ADDRESS` of the gateway, in place of the configured one")
	f.BoolVar(&o.Demo, "demo", false, "put a small demo site in place of every upstream")
	f.StringVar(&format, "log-format", "text", "text or json")
	f.TextVar(&level, "log-level", slog.LevelInfo, "the least `LEVEL` that is logged: debug, info, warn or error")
	return c
}

func logHandler(s Streams, format string, level slog.Level) (slog.Handler, error) {
	o := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.NewTextHandler(s.Err, o), nil
	case "json":
		return slog.NewJSONHandler(s.Err, o), nil
	}
	return nil, fmt.Errorf("--log-format %q is neither text nor json", format)
}

func runServe(ctx context.Context, s Streams, o daemon.Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(end)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	d, err := daemon.New(ctx, o)
	if err != nil {
		return err
	}
	if o.Demo {
		tryThis(s, d)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	for {
		select {
		case <-hangup:
			o.Log.Info("SIGHUP: reading the files again")
			d.Reload()
		case <-end:
			if ctx.Err() != nil {
				return errForced
			}
			stop()
		case err := <-ended:
			return err
		}
	}
}

// errForced is the end of a weir that did not wait for the requests in flight.
var errForced = errors.New("told twice to stop: requests in flight were cut off")

// tryThis says what to do with the demo.
func tryThis(s Streams, d *daemon.Daemon) {
	p := newPaint(s.Out)
	at := "http://" + d.Gateway().String()
	fmt.Fprintf(s.Out, "%s\n\n", p.bold("weir is in front of a demo site: "+at+"/"))
	fmt.Fprintln(s.Out, p.faint("# the sixth login within a minute is refused"))
	fmt.Fprintf(s.Out, "for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%%{http_code}\\n' -X POST %s/api/auth/login; done\n", at)
	fmt.Fprintf(s.Out, "curl -i -X POST %s/api/auth/login\n", at)
	fmt.Fprintln(s.Out, p.faint("# a forged address does not help"))
	fmt.Fprintf(s.Out, "curl -i -X POST -H 'X-Forwarded-For: 192.0.2.7' %s/api/auth/login\n", at)
	fmt.Fprintln(s.Out, p.faint("# everything else has a limit of its own"))
	fmt.Fprintf(s.Out, "curl -i %s/api/items\n", at)
	if a := d.Admin(); a != nil {
		fmt.Fprintln(s.Out, p.faint("# figures"))
		fmt.Fprintf(s.Out, "curl -s http://%s/metrics | grep ^weir_\n", a)
	}
	fmt.Fprintf(s.Out, "\n%s\n", p.faint("Edit the limits in the file while it runs. Ctrl-C stops."))
}
