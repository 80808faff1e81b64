package weirtest

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/weirhq/weir"
)

// RunScripts runs every *.weir file of fsys, each on a store of its own that
// open makes: once on the bare store and once through a [weir.Limiter]. The
// store decides by the clock that open is given.
func RunScripts(t *testing.T, fsys fs.FS, open func(testing.TB, weir.Clock) weir.Store) {
	t.Helper()
	t.Run("store", func(t *testing.T) {
		RunScriptsOn(t, fsys, func(tb testing.TB, c *Clock) Target { return OnStore(open(tb, c)) })
	})
	t.Run("limiter", func(t *testing.T) {
		RunScriptsOn(t, fsys, func(tb testing.TB, c *Clock) Target { return OnLimiter(open(tb, c), c) })
	})
}

// RunScriptsOn runs every *.weir file of fsys, each on a target of its own. A
// script that asks for what the target says it cannot do is skipped from there on.
func RunScriptsOn(t *testing.T, fsys fs.FS, open func(testing.TB, *Clock) Target) {
	t.Helper()
	found := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".weir" {
			return err
		}
		found++
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		t.Run(strings.TrimSuffix(name, ".weir"), func(t *testing.T) {
			script, err := Parse(name, text)
			if err != nil {
				t.Fatal(err)
			}
			var clock Clock
			err = Run(t.Context(), script, &clock, open(t, &clock))
			if errors.Is(err, ErrCannot) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("weirtest: there is no *.weir file")
	}
}
