package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/source"
	"github.com/weirhq/weir/weirredis"
)

// Load reads a configuration and the rules that it holds or leads to. The error is
// [rules.Problems] if either has any.
func Load(ctx context.Context, path string) (*config.Config, *rules.Document, error) {
	doc, err := read(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	c, err := configuration(doc)
	if err != nil {
		return nil, nil, err
	}
	set := c.Rules
	if c.RulesFile != "" {
		if doc, err = read(ctx, c.RulesFile); err != nil {
			return nil, nil, err
		}
		if set, err = ruleset(doc); err != nil {
			return nil, nil, err
		}
	}
	return c, set, runnable(c, set)
}

// runnable returns what the configured store cannot do of rules.
func runnable(c *config.Config, set *rules.Document) error {
	if c.Store.Redis == nil {
		return nil
	}
	return set.Unsupported(weirredis.Supports).Err()
}

// read waits for a file, or the files of a directory, to stand still, and returns
// what they hold.
func read(ctx context.Context, path string) (doc source.Document, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	var failed error
	f, err := source.NewFile(path, source.Options{PollOnly: true, Notify: func(e source.Event) {
		if e.Kind == source.Unreadable {
			failed = e.Err
			done()
		}
	}})
	if err != nil {
		return doc, err
	}
	read := false
	err = f.Run(ctx, func(_ context.Context, d source.Document) error {
		doc, read = d, true
		done()
		return nil
	})
	switch {
	case read:
		return doc, nil
	case failed != nil:
		return doc, failed
	}
	return doc, err
}

// configuration is a document that is one.
func configuration(doc source.Document) (*config.Config, error) {
	if len(doc.Parts) != 1 {
		return nil, fmt.Errorf("daemon: %s is a directory; a configuration is one file, and only rules_file may name a directory", doc.Name)
	}
	c, problems := config.Load(doc.Parts[0].Name, doc.Parts[0].Data)
	return c, problems.Err()
}

// ruleset is a document of rules and nothing else.
func ruleset(doc source.Document) (*rules.Document, error) {
	var parts []config.Part
	for _, p := range doc.Parts {
		parts = append(parts, config.Part{Name: p.Name, Data: p.Data})
	}
	set, problems := config.LoadRules(parts...)
	return set, problems.Err()
}

// problemsOf are the problems that an error holds, or the error as one.
func problemsOf(err error) rules.Problems {
	var problems rules.Problems
	if errors.As(err, &problems) {
		return problems
	}
	return rules.Problems{{Msg: err.Error()}}
}
