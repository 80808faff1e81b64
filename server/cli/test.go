package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/daemon"
	"github.com/weirhq/weir/weirhttp"
	"github.com/weirhq/weir/weirtest"
)

func newTest(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE.weir...",
		Short: "Run scripts that say what rules have to answer",
		Long: `Run scripts. A script names a file of rules, makes requests at given instants,
and says what must come of each:

  rules quickstart.yaml
  at 0s   POST /api/auth/login from 203.0.113.9  5 times   ok  remaining 0
  at 1s   POST /api/auth/login from 203.0.113.9            refuse by login retry 11s
  at 1s   GET  /api/items      from 203.0.113.9            ok
  at 12s  POST /api/auth/login from 203.0.113.9            ok

No time passes while it runs, and nothing is sent. Names of files are relative to
the script. A script ends at the first answer that is not the wanted one; it is
printed with the line, what was wanted and what came.`,
		Example: text(`
			weir test examples/quickstart.weir`),
		Args: oneFile,
		RunE: func(c *cobra.Command, files []string) error {
			p := newPaint(s.Out)
			failed := false
			for _, file := range files {
				err := runScript(c.Context(), file)
				if err == nil {
					fmt.Fprintf(s.Out, "%s: %s\n", file, p.good("ok"))
					continue
				}
				failed = true
				fmt.Fprintln(s.Out, err) // names the file and the line
			}
			if failed {
				return errSaid
			}
			return nil
		},
	}
}

// maxScript bounds a script in bytes: it is written by hand.
const maxScript = 1 << 20

func readScript(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a file", file)
	case info.Size() > maxScript:
		return nil, fmt.Errorf("%s: %d bytes; a script has at most %d", file, info.Size(), maxScript)
	}
	return os.ReadFile(file)
}

func runScript(ctx context.Context, file string) error {
	text, err := readScript(file)
	if err != nil {
		return err
	}
	script, err := weirtest.Parse(file, text)
	if err != nil {
		return err
	}
	if len(script.Steps) == 0 {
		return fmt.Errorf("%s: no step in it, so it tests nothing", file)
	}
	clock := new(weirtest.Clock)
	store := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	return weirtest.Run(ctx, script, clock, &target{
		Target: weirtest.OnLimiter(store, clock), store: store, clock: clock, dir: filepath.Dir(file)})
}

// target is what scripts run on: rules of a file, asked as the gateway asks them,
// beside the policies that a script may define itself.
type target struct {
	weirtest.Target
	store weir.Store
	clock weir.Clock
	dir   string // what names of files are relative to

	limiter  *weirhttp.Limiter
	resolver *clientip.Resolver
}

// Load implements weirtest.Target.
func (t *target) Load(ctx context.Context, file string) error {
	if !filepath.IsAbs(file) {
		file = filepath.Join(t.dir, file)
	}
	conf, set, err := daemon.Load(ctx, file)
	if err != nil {
		return err
	}
	program, err := rules.Compile(set, weirhttp.Binding())
	if err != nil {
		return err
	}
	if t.resolver, err = conf.ClientIP.Resolver(); err != nil {
		return err
	}
	if t.limiter != nil {
		return t.limiter.Swap(program.Ruleset)
	}
	t.limiter, err = weir.New(t.store, program.Ruleset, weir.Options[*weirhttp.Request]{Clock: t.clock})
	return err
}

// Do implements weirtest.Target.
func (t *target) Do(ctx context.Context, r weirtest.Request) (weirtest.Answer, error) {
	if r.Verb != weirtest.Send {
		return t.Target.Do(ctx, r)
	}
	if t.limiter == nil {
		return weirtest.Answer{}, errors.New("no rules are loaded; begin with: rules FILE")
	}
	host := r.Host
	if host == "" {
		host = "localhost"
	}
	asked, err := request(r.Method, "http://"+host+r.Path, r.From, r.Header)
	if err != nil {
		return weirtest.Answer{}, err
	}
	q, err := weirhttp.NewRequest(asked.WithContext(ctx), t.resolver)
	if err != nil {
		return weirtest.Answer{}, fmt.Errorf("the gateway answers 400 before it asks any rule: %w", err)
	}
	d, err := t.limiter.Take(ctx, q)
	return weirtest.Answered(&d), err
}
