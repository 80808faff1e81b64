package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/rules"
)

func newAdvise(s Streams) *cobra.Command {
	var l logFlags
	var o replay.AdviseOptions
	var share float64
	var by []string
	var file, format string
	c := &cobra.Command{
		Use:   "advise [LOG...]",
		Short: "Propose limits from the traffic of access logs",
		Long: `Propose a limit for each route of a site from its access logs, such that a share
of the keys stays untouched: --share of each route's keys, 99.9 % unless told
otherwise, would not have been refused a single request.

Routes are the busiest groups of requests by method and the first segments of the
path; segments that look like identifiers are one. For each it looks how often
each key asks in its busiest second, minute and hour, takes the peak that the
share does not exceed, gives it some room, and rounds up. The proposal is replayed
over the same logs, and loosened until the share holds.

With -o the rules are written to a file, in shadow mode: they count and refuse
nothing until "mode: shadow" is dropped. Each has its reason as a description.

The logs are read several times; the standard input is kept in a temporary file
meanwhile. What a log shows is what people did, attackers included: read the
proposal before you enforce it.`,
		Example: text(`
			weir advise /var/log/nginx/access.log*
			weir advise --share 99 --by header:X-Api-Key -o rules.yaml caddy.json
			weir advise -o rules.yaml access.log && weir replay --rules rules.yaml access.log`),
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error {
			switch {
			case !(share > 0 && share <= 100):
				return &usageError{fmt.Errorf("--share %v is not a percentage above 0 and at most 100", share), c}
			case format != "text" && format != "json":
				return &usageError{fmt.Errorf("--format %q is neither text nor json", format), c}
			case o.Routes < 1 || o.Routes > 1000:
				return &usageError{fmt.Errorf("--routes %d is not within 1 and 1000", o.Routes), c}
			}
			o.Share, o.Key = share/100, rules.Key(by)
			if err := replay.CheckKey(o.Key); err != nil {
				return &usageError{fmt.Errorf("--by %s: %w", strings.Join(by, ","), err), c}
			}
			in, err := l.logs(c, s, names)
			if err != nil {
				return err
			}
			if o.Options, err = l.options(c, s, nil); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process
			remove, err := in.keepInput(ctx)
			if err != nil {
				return err
			}
			defer remove()
			advice, err := replay.Advise(ctx, in.open, o)
			endProgress(s, o.Options)
			switch {
			case errors.Is(err, context.Canceled):
				return errors.New("interrupted; there is no advice from half a log")
			case err != nil:
				return err
			}
			if file != "" {
				err := writeFile(file, func(w io.Writer) error {
					_, err := w.Write(advice.AppendYAML(nil))
					return err
				})
				if err != nil {
					return err
				}
			}
			if format == "json" {
				return encode(s.Out, advice)
			}
			if err := advice.WriteText(s.Out, replay.TextOptions{Colour: bool(newPaint(s.Out))}); err != nil || file == "" {
				return err
			}
			_, err = fmt.Fprintf(s.Out, "\n%s holds these rules in shadow mode.\n", file)
			return err
		},
	}
	f := c.Flags()
	f.Float64Var(&share, "share", 99.9, "`PERCENT` of each route's keys that no limit may touch")
	f.StringSliceVar(&by, "by", []string{"ip"}, "the `KEY` that tells clients apart, or several with commas")
	f.IntVar(&o.Routes, "routes", 12, "how many routes get a rule of their own at most")
	f.StringVarP(&file, "output", "o", "", "write the rules to `FILE`")
	f.StringVar(&format, "format", "text", "text or json")
	l.add(c)
	return c
}

// keepInput keeps the standard input in a file, if it is among the logs, so that
// it can be read again.
func (l *logs) keepInput(ctx context.Context) (remove func(), err error) {
	at := slices.Index(l.names, "-")
	if at < 0 {
		return func() {}, nil
	}
	f, err := os.CreateTemp("", "weir-advise-*.log")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.Remove(f.Name()) } // a temporary file that stays does no harm
	_, err = io.Copy(f, readerUntil{ctx, l.stdin})
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return nil, err
	}
	l.names = slices.Clone(l.names)
	l.names[at] = f.Name()
	return remove, nil
}

// readerUntil reads until a context ends.
type readerUntil struct {
	ctx context.Context
	r   io.Reader
}

func (r readerUntil) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
