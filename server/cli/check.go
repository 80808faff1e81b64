package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/daemon"
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
problems, each rule is printed with the most that it really allows.`,
		Example: text(`
			weir check weir.yaml
			weir check rules/*.yaml`),
		Args: oneFile,
		RunE: func(c *cobra.Command, files []string) error {
			var good []func() // prints the bounds of a file
			for _, file := range files {
				conf, set, err := daemon.Load(c.Context(), file)
				if err == nil {
					_, err = rules.Compile(set, weirhttp.Binding())
				}
				if err != nil {
					report(s, file, err)
					continue
				}
				warnings := conf.Warn()
				if conf.RulesFile != "" {
					warnings = append(warnings, set.Lint()...)
				}
				for _, w := range warnings {
					fmt.Fprintln(s.Err, w)
				}
				good = append(good, func() { bounds(s, file, set) })
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

// bounds prints what each rule really keeps (case B07).
func bounds(s Streams, file string, set *rules.Document) {
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
