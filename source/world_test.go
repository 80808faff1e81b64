package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/source"
)

// patience is when a test that waits for something has failed.
const patience = 30 * time.Second

// A world is a directory, a File that watches something in it, and what came of it.
type world struct {
	t       *testing.T
	dir     string
	path    string
	options source.Options
	file    *source.File
	docs    chan source.Document
	events  chan source.Event
	answer  func(source.Document) error // what deliver answers, nil for always nil
	pass    func()                      // lets everything that is under way come to rest, where time is ours
	stop    func()                      // ends Run
}

// onBothEngines runs a scenario on polls, in a bubble where time is ours, and on
// inotify, with the kernel's events alone: no poll comes to its help.
func onBothEngines(t *testing.T, scenario func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("polling", func(t *testing.T) {
		inBubble(t, source.Options{}, scenario)
	})
	t.Run("inotify", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("inotify is Linux's")
		}
		w := newWorld(t, source.Options{Quiet: 2 * time.Millisecond, MaxDelay: time.Minute, Poll: time.Hour})
		w.pass = func() {}
		scenario(t, w)
	})
}

// inBubble runs a scenario on polls in a synctest bubble.
func inBubble(t *testing.T, o source.Options, scenario func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.PollOnly = true
		w := newWorld(t, o)
		w.pass = func() { time.Sleep(time.Minute); synctest.Wait() }
		scenario(t, w)
	})
}

func newWorld(t *testing.T, o source.Options) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(),
		docs: make(chan source.Document, 10000), events: make(chan source.Event, 10000),
	}
	w.options = o
	w.options.Notify = func(e source.Event) { w.events <- e }
	w.stop = func() {}
	w.watch("rules.yaml")
	return w
}

// watch makes the File one for a name in the directory of the world.
func (w *world) watch(name string) {
	w.path = filepath.Join(w.dir, name)
	w.file = must(source.NewFile(w.path, w.options))
}

// start runs the File until the test ends.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- w.file.Run(ctx, func(_ context.Context, d source.Document) error {
			var err error
			if w.answer != nil {
				err = w.answer(d)
			}
			w.docs <- d
			return err
		})
	}()
	var stopped bool
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.t.Errorf("Run = %v, want the error of its context", err)
		}
	}
	w.t.Cleanup(w.stop)
}

// want waits for the next document and compares the text of its parts.
func (w *world) want(parts ...string) source.Document {
	w.t.Helper()
	select {
	case d := <-w.docs:
		var got []string
		for _, p := range d.Parts {
			got = append(got, string(p.Data))
		}
		if !slices.Equal(got, parts) {
			w.t.Fatalf("delivered %q, want %q", got, parts)
		}
		return d
	case <-time.After(patience):
		w.t.Fatalf("nothing was delivered, want %q; status %+v", parts, w.file.Status())
	}
	panic("unreachable")
}

// wantNothing checks that no document waits to be looked at. It says something
// only after pass.
func (w *world) wantNothing() {
	w.t.Helper()
	select {
	case d := <-w.docs:
		w.t.Fatalf("delivered %q, want nothing", d.Parts)
	default:
	}
}

// hear waits for the next event of a kind and returns it.
func (w *world) hear(k source.Kind) source.Event {
	w.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case e := <-w.events:
			if e.Kind == k {
				return e
			}
		case <-timeout:
			w.t.Fatalf("no event %v; status %+v", k, w.file.Status())
		}
	}
}

// hearTrouble waits until the document is reported unreadable because of err.
func (w *world) hearTrouble(err error) {
	w.t.Helper()
	for {
		if e := w.hear(source.Unreadable); errors.Is(e.Err, err) {
			return
		}
	}
}

func (w *world) in(name string) string { return filepath.Join(w.dir, name) }

func write(t *testing.T, path, text string) {
	t.Helper()
	ok(t, os.WriteFile(path, []byte(text), 0o644))
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
