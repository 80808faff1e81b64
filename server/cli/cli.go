// Package cli is the command line of weir: it parses flags and prints, and can do
// nothing that the library cannot.
//
// Exit codes: 0, all is well; 1, what was asked for has problems, or failed; 2, the
// command line itself is wrong.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirhq/weir/rules"
)

// The exit codes.
const (
	exitOK       = 0
	exitProblems = 1
	exitUsage    = 2
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run carries out a command line, without the program's name, until it is done or
// ctx ends, and returns the exit code.
func Run(ctx context.Context, args []string, s Streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var usage *usageError
	var problems rules.Problems
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(s.Err, "weir: %v\n", err)
		if usage.command != nil {
			fmt.Fprintf(s.Err, "Try: %s --help\n", usage.command.CommandPath())
		}
		return exitUsage
	case errors.Is(err, errSaid):
	case errors.As(err, &problems):
		fmt.Fprintln(s.Err, problems)
	default:
		fmt.Fprintf(s.Err, "weir: %v\n", err)
	}
	return exitProblems
}

// errSaid ends a command whose problems have been printed.
var errSaid = errors.New("cli: problems were printed")

// usageError is a command line that cannot be carried out.
type usageError struct {
	err     error
	command *cobra.Command
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// subcommands makes the commands, in the order in which help lists them. A new one
// is a function in a file of its own, and a line here.
func subcommands() []func(Streams) *cobra.Command {
	return []func(Streams) *cobra.Command{
		newServe,
		newCheck,
		newExplain,
		newTest,
		newReplay,
		newAdvise,
		newVersion,
	}
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Limit the rate of requests to an API",
		Long: `Weir limits the rate of requests to an API: a gateway in front of your servers,
or a library in them, that reads one file of rules.

Exit codes: 0 all is well, 1 problems were found or the command failed,
2 the command line is wrong.`,
		Example: text(`
			weir serve --config examples/quickstart.yaml --demo
			weir check examples/quickstart.yaml
			weir explain --rules examples/quickstart.yaml --method POST --url http://localhost/api/auth/login --peer 203.0.113.9`),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := ""
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				hint = fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
			}
			return &usageError{fmt.Errorf("there is no command %q%s", args[0], hint), c}
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{err, c} })
	for _, add := range subcommands() {
		root.AddCommand(add(s))
	}
	root.InitDefaultCompletionCmd()
	strict(root.Commands())
	return root
}

// strict makes wrong arguments of all commands errors of the command line, also of
// those that cobra brings.
func strict(commands []*cobra.Command) {
	for _, c := range commands {
		c.Args = usage(c.Args)
		strict(c.Commands())
	}
}

// usage makes the errors of a check of arguments those of the command line.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check == nil {
			check = cobra.NoArgs
		}
		if err := check(c, args); err != nil {
			return &usageError{err, c}
		}
		return nil
	}
}

// required is the error for a flag that is missing.
func required(c *cobra.Command, flag, what string) error {
	return &usageError{fmt.Errorf("--%s is missing: %s", flag, what), c}
}

// text takes the indent of the source code off a text.
func text(s string) string {
	lines := strings.Split(strings.Trim(s, "\n\t"), "\n")
	for i, l := range lines {
		lines[i] = "  " + strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "\n")
}

// oneFile is for commands that read files and nothing else.
func oneFile(_ *cobra.Command, files []string) error {
	if len(files) == 0 {
		return errors.New("name at least one FILE")
	}
	return nil
}
