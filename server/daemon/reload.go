package daemon

import (
	"context"
	"log/slog"

	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/source"
	"github.com/weirhq/weir/weirhttp"
)

// maxLines is how many problems or changes of one reload are logged.
const maxLines = 50

// watch prepares the watching of the files: the configuration, and the rules if
// they have files of their own.
func (d *Daemon) watch() error {
	paths := []string{d.o.Config}
	if d.running.RulesFile != "" {
		paths = append(paths, d.running.RulesFile)
	}
	for _, path := range paths {
		o := d.o.Watch
		o.Notify = d.notice
		f, err := source.NewFile(path, o)
		if err != nil {
			return err
		}
		d.files = append(d.files, f)
	}
	return nil
}

// Reload reads the files again, as a change of them does. It does not wait.
func (d *Daemon) Reload() {
	for _, f := range d.files {
		f.Reload()
	}
}

// deliver takes documents of the file with that number.
func (d *Daemon) deliver(file int) source.Deliver {
	if file == 0 {
		return d.configured
	}
	return func(_ context.Context, doc source.Document) error {
		set, err := ruleset(doc)
		if err != nil {
			return err
		}
		return d.apply(set)
	}
}

// configured takes a new configuration, of which only the rules can be applied.
func (d *Daemon) configured(_ context.Context, doc source.Document) error {
	c, err := configuration(doc)
	if err != nil {
		return err
	}
	if changed := config.Installed(d.running, c); len(changed) > 0 {
		d.log.Warn("these sections take effect when weir starts again", "changed", changed)
	}
	if c.Rules == nil || d.running.RulesFile != "" {
		return nil
	}
	return d.apply(c.Rules)
}

// apply puts rules in force, or says why not and changes nothing.
func (d *Daemon) apply(set *rules.Document) error {
	program, err := rules.Compile(set, weirhttp.Binding())
	if err != nil {
		return err
	}
	if err := runnable(d.running, set); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	changes := rules.Diff(d.rules, set)
	if err := d.limiter.Swap(program.Ruleset); err != nil {
		return err
	}
	d.rules = set
	if len(changes) == 0 {
		return nil
	}
	d.metrics.InForce(program.Ruleset.Version)
	d.log.Info("rules changed", "version", program.Ruleset.Version, "changes", len(changes))
	for i, c := range changes {
		if i == maxLines {
			d.log.Info("more changes are not listed", "count", len(changes)-i)
			break
		}
		d.log.Info("changed", "change", c.String())
	}
	d.warn(set.Lint())
	d.warn(set.LintNodes(d.shared != nil))
	return nil
}

// warn logs what looks like a mistake.
func (d *Daemon) warn(problems rules.Problems) {
	d.list(slog.LevelWarn, "doubtful", problems)
}

// list logs problems, one a line.
func (d *Daemon) list(level slog.Level, message string, problems rules.Problems) {
	for i, p := range problems {
		if i == maxLines {
			d.log.Log(context.Background(), level, "more problems are not listed", "count", len(problems)-i)
			return
		}
		d.log.Log(context.Background(), level, message, "problem", p.String())
	}
}

// notice logs and counts what happens to a watched file.
func (d *Daemon) notice(e source.Event) {
	switch e.Kind {
	case source.Accepted:
		d.metrics.Reloaded("accepted")
		d.log.Info("file in force", "file", e.Path)
	case source.Rejected:
		d.metrics.Reloaded("rejected")
		problems := problemsOf(e.Err)
		d.log.Error("file rejected: the old rules stay in force", "file", e.Path, "problems", len(problems))
		d.list(slog.LevelError, "wrong", problems)
	case source.Unreadable:
		d.metrics.Reloaded("unreadable")
		d.log.Error("file unreadable: the old rules stay in force", "file", e.Path, "error", e.Err)
	case source.Recovered:
		d.log.Info("file readable again", "file", e.Path)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stale[e.Path] = e.Err != nil
	ok := true
	for _, stale := range d.stale {
		ok = ok && !stale
	}
	d.metrics.UpToDate(ok)
}
