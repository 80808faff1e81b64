package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/accesslog"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/server/daemon"
)

// logFlags are the flags that say how logs are read.
type logFlags struct {
	format  string
	window  time.Duration
	proxies []string
	header  string
	maxKeys int
	quiet   bool
}

func (l *logFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&l.format, "log-format", "auto", "`FORMAT` of the logs: auto, combined (and common), json or envoy")
	f.DurationVar(&l.window, "window", accesslog.DefaultWindow, "how far apart in `TIME` lines in the wrong order are put right")
	f.StringArrayVar(&l.proxies, "trusted-proxy", nil, "`NETWORK` of proxies whose forwarding header is believed, such as 10.0.0.0/8; may be given several times")
	f.StringVar(&l.header, "client-header", "X-Forwarded-For", "`NAME` of the header that trusted proxies write")
	f.IntVar(&l.maxKeys, "max-keys", replay.DefaultMaxKeys, "keys that are counted exactly for each rule, about 200 bytes each")
	f.BoolVar(&l.quiet, "quiet", false, "show no progress")
}

// logs are the logs of a command line.
type logs struct {
	names   []string
	stdin   io.Reader
	options accesslog.Options
}

// logs checks the flags.
func (l *logFlags) logs(c *cobra.Command, s Streams, names []string) (*logs, error) {
	if len(names) == 0 {
		names = []string{"-"}
	}
	format, err := accesslog.ParseFormat(l.format)
	switch {
	case err != nil:
		return nil, &usageError{fmt.Errorf("--log-format %.64q is not known; write auto, combined, json or envoy", l.format), c}
	case l.window < 0:
		return nil, &usageError{fmt.Errorf("--window %v is negative", l.window), c}
	case l.maxKeys <= 0:
		return nil, &usageError{fmt.Errorf("--max-keys %d is not above 0", l.maxKeys), c}
	}
	if l.window == 0 {
		l.window = -1 // for accesslog, 0 is its default
	}
	return &logs{names, s.In, accesslog.Options{Format: format, Window: l.window}}, nil
}

func (l *logs) open() (replay.Records, error) {
	r, err := accesslog.Open(l.names, l.stdin, l.options)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// title names the logs for a heading.
func (l *logs) title() string {
	var names []string
	for i, n := range l.names {
		if n == "-" {
			n = "standard input"
		}
		if i == 3 && len(l.names) > 4 {
			names = append(names, fmt.Sprintf("and %d more", len(l.names)-i))
			break
		}
		names = append(names, filepath.Base(n))
	}
	return strings.Join(names, ", ")
}

// options are those of a replay. Flags go before the client_ip of a file.
func (l *logFlags) options(c *cobra.Command, s Streams, fromFile *clientip.Resolver) (replay.Options, error) {
	o := replay.Options{Clients: fromFile, MaxKeys: l.maxKeys}
	if len(l.proxies) > 0 {
		clients := clientip.Options{Header: l.header}
		for _, p := range l.proxies {
			network, err := netip.ParsePrefix(p)
			if addr, isAddr := netip.ParseAddr(p); isAddr == nil {
				network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
			}
			if err != nil {
				return o, &usageError{fmt.Errorf("--trusted-proxy %.64q is not a network; write for example 10.0.0.0/8", p), c}
			}
			clients.TrustedProxies = append(clients.TrustedProxies, network)
		}
		var err error
		if o.Clients, err = clientip.New(clients); err != nil {
			return o, &usageError{err, c}
		}
	}
	if !l.quiet && bool(newPaint(s.Err)) {
		o.Progress = newProgress(s.Err).show
	}
	return o, nil
}

func newReplay(s Streams) *cobra.Command {
	var l logFlags
	var file, format, html string
	var top int
	c := &cobra.Command{
		Use:   "replay --rules FILE [LOG...]",
		Short: "Say what rules would have done to the traffic of access logs",
		Long: `Replay access logs under the rules of a file: the engine that limits live
traffic runs on a clock that stands where the log stands. It prints for each
rule how many requests it would have allowed and refused, how many keys there
are, which were refused most, and how fast keys ask.

Logs are read in the combined and common formats of nginx and Apache, as JSON of
nginx, Caddy, Traefik and Envoy, and as JSON lines of weir's own; plain or gzip.
Several are merged by time, so rotated logs may be named in any order. Without
LOG, or for -, the standard input is read. Lines in the wrong order are put right
within --window; lines that cannot be read are counted and reported.

The client is found as the file's client_ip says, the address in the log being
the peer. Memory grows with keys, not with lines. Ctrl-C prints what was counted
so far.

With --format json, one object is printed:

  {"lines":N,"requests":N,"skipped":N,"from":TIME,"to":TIME,"allowed":N,"refused":N,
   "rules":[{"name":S,"mode":S,"asked":N,"allowed":N,"refused":N,"keys":N,
             "keys_refused":N,"top":[{"key":S,"asked":N,"refused":N}],"would_refuse":N,…}],…}

A rule in shadow mode refuses nothing; what it would have refused is would_refuse.`,
		Example: text(`
			weir replay --rules examples/access-log.yaml /var/log/nginx/access.log*
			zcat access.log.*.gz | weir replay --rules rules.yaml --format json
			weir replay --rules rules.yaml --html report.html access.log
			weir replay --rules rules.yaml --trusted-proxy 10.0.0.0/8 caddy.json`),
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error {
			switch {
			case file == "":
				return required(c, "rules", "the file of rules, or a configuration")
			case format != "text" && format != "json":
				return &usageError{fmt.Errorf("--format %q is neither text nor json", format), c}
			case top < 0:
				return &usageError{fmt.Errorf("--top %d is negative", top), c}
			}
			in, err := l.logs(c, s, names)
			if err != nil {
				return err
			}
			conf, set, err := daemon.Load(c.Context(), file)
			if err != nil {
				return err
			}
			clients, err := conf.ClientIP.Resolver()
			if err != nil {
				return err
			}
			o, err := l.options(c, s, clients)
			if err != nil {
				return err
			}
			if o.Top = top; top == 0 {
				o.Top = -1
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process
			logs, err := accesslog.Open(in.names, in.stdin, in.options)
			if err != nil {
				return err
			}
			defer logs.Close() // read only
			report, failed := replay.Run(ctx, logs, set, o)
			endProgress(s, o)
			if report == nil {
				return failed
			}
			if err := printReport(s, report, format, html, in.title()); err != nil {
				return err
			}
			switch {
			case errors.Is(failed, context.Canceled):
				return errors.New("interrupted; the report is of what was read until then")
			case failed != nil:
				return fmt.Errorf("%w; the report is of what was read until then", failed)
			case report.Requests == 0:
				return replay.ErrNoRequests
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&file, "rules", "", "the `FILE` of rules, or a configuration")
	f.StringVar(&format, "format", "text", "text or json")
	f.StringVar(&html, "html", "", "also write a page with charts to `FILE`")
	f.IntVar(&top, "top", replay.DefaultTop, "how many keys to list for each rule")
	l.add(c)
	return c
}

// printReport writes a report to where it is wanted.
func printReport(s Streams, r *replay.Report, format, html, title string) error {
	if html != "" {
		if err := writeFile(html, func(w io.Writer) error { return r.WriteHTML(w, title) }); err != nil {
			return err
		}
	}
	if format == "json" {
		return encode(s.Out, r)
	}
	return r.WriteText(s.Out, replay.TextOptions{Colour: bool(newPaint(s.Out))})
}

// encode prints a value as JSON.
func encode(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// writeFile makes a file, which is complete or there is an error.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// progress is a bar on a terminal.
type progress struct {
	w     io.Writer
	start time.Time
	shown time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, start: time.Now()} }

const barWidth = 30

// show draws the bar, a few times a second.
func (p *progress) show(st accesslog.Stats) {
	now := time.Now()
	if now.Sub(p.shown) < 200*time.Millisecond {
		return
	}
	p.shown = now
	rate := float64(st.Lines) / max(now.Sub(p.start).Seconds(), 1e-3)
	bar := ""
	if st.BytesTotal > 0 {
		done := min(float64(st.BytesRead)/float64(st.BytesTotal), 1)
		full := int(done * barWidth)
		bar = fmt.Sprintf("%s%s %3.0f %%  ", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), 100*done)
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s%.1f million lines, %.0f thousand a second", bar, float64(st.Lines)/1e6, rate/1e3)
}

// endProgress takes the bar off the terminal.
func endProgress(s Streams, o replay.Options) {
	if o.Progress != nil {
		fmt.Fprint(s.Err, "\r\x1b[K")
	}
}
