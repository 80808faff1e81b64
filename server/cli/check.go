package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/server/daemon"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirhttp"
)

func newCheck(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Say what is wrong with configurations and rules",
		Long: `Check files as weir serve reads them: configurations, or documents of rules
alone. Every problem is printed on a line of its own,

  FILE:LINE:COL: PATH: what is wrong and what to do

and warnings, which do not fail the check, on the standard error. If there are no
problems, each rule is printed with the most that it really allows. If the
configuration names a store that nodes share, what it keeps among them follows,
and what it allows while the store cannot be asked.`,
		Example: text(`
			weir check weir.yaml
			weir check rules/*.yaml`),
		Args: oneFile,
		RunE: func(c *cobra.Command, files []string) error {
			var good []func() // prints the bounds of a file
			for _, file := range files {
				conf, set, err := daemon.Load(c.Context(), file)
				var program *rules.Program[*weirhttp.Request]
				if err == nil {
					program, err = rules.Compile(set, weirhttp.Binding())
				}
				if err != nil {
					report(s, file, err)
					continue
				}
				for _, w := range doubts(conf, set) {
					fmt.Fprintln(s.Err, w)
				}
				good = append(good, func() { bounds(s, file, conf, set, program.Ruleset.Rules) })
			}
			if len(good) < len(files) {
				return errSaid
			}
			for _, show := range good {
				show()
			}
			return nil
		},
	}
}

// report prints the problems of a file, one a line.
func report(s Streams, file string, err error) {
	var problems rules.Problems
	if !errors.As(err, &problems) {
		fmt.Fprintf(s.Out, "%s: %v\n", file, err)
		return
	}
	for _, p := range problems {
		if p.Warning {
			fmt.Fprintln(s.Err, p)
		} else {
			fmt.Fprintln(s.Out, p)
		}
	}
}

// doubts are the warnings about a configuration and its rules.
func doubts(conf *config.Config, set *rules.Document) rules.Problems {
	warnings := conf.Warn()
	if conf.RulesFile != "" {
		warnings = append(warnings, set.Lint()...)
	}
	// Rules that stand alone may be meant for any store.
	if conf.RulesFile != "" || conf.Gateway != nil || conf.Admin != nil || conf.Store.Redis != nil {
		warnings = append(warnings, set.LintNodes(conf.Store.Redis != nil)...)
	}
	return warnings
}

// bounds prints what each rule really keeps (case B07), and among nodes, if they share
// a store.
func bounds(s Streams, file string, conf *config.Config, set *rules.Document, compiled []weir.Rule[*weirhttp.Request]) {
	p := newPaint(s.Out)
	fmt.Fprintf(s.Out, "%s: %s\n", file, p.good(fmt.Sprintf("ok, %d rules", len(set.Rules))))
	widest := 0
	for i := range set.Rules {
		widest = max(widest, len(set.Rules[i].Name))
	}
	for i := range set.Rules {
		r := &set.Rules[i]
		kept := r.Bounds()
		if len(kept) == 0 {
			kept = []string{"unlimited"}
		} else if conf.Store.Redis != nil {
			kept = among(&compiled[i], kept)
		}
		for n, text := range kept {
			name := r.Name
			if n > 0 {
				name = ""
			}
			fmt.Fprintf(s.Out, "  %-*s  %s\n", widest, name, text)
		}
	}
}

// among puts below the bounds of a rule's limits what is kept of them among nodes. One
// line is enough for limits that are kept alike.
func among(r *weir.Rule[*weirhttp.Request], bounds []string) (lines []string) {
	if r.Mode == weir.Off {
		return bounds
	}
	last := ""
	for i, bound := range bounds {
		text := "nodes: " + promise(r, r.Limits[i])
		if last != "" && text != last {
			lines = append(lines, last)
		}
		lines, last = append(lines, bound), text
	}
	lines = append(lines, last)
	if r.Mode == weir.Enforce {
		lines = append(lines, "outage: "+outage(r))
	}
	return lines
}

// promise says what nodes that share a store keep of a limit.
func promise(r *weir.Rule[*weirhttp.Request], l weir.Limit) string {
	p, err := weir.NewPolicy(r.Name, l)
	if err != nil || !r.Fast { // a compiled rule has no limit that is none
		return "strict: exact, never above, all nodes together"
	}
	p.Fast = true
	return tier.Promise(p)
}

// outage says what a rule allows while the store that nodes share cannot be asked.
func outage(r *weir.Rule[*weirhttp.Request]) string {
	switch {
	case r.OnOutage == weir.FailOpen:
		return "open: allows everything"
	case r.OnOutage == weir.FailClosed:
		return "closed: refuses everything, with 503"
	case slices.ContainsFunc(r.Limits, func(l weir.Limit) bool { return l.Quota == 0 }):
		return "local: refuses everything, as ever"
	}
	return "local: the limit ÷ nodes, at least 1 per window, so at most the limit + 1 for each node"
}
