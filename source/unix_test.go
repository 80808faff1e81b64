//go:build unix

package source_test

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/source"
)

// unprivileged gives up root until the test ends, since no permission is
// missing to root. The caller's temporary directories are made afterwards.
func unprivileged(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	// A user with nothing of its own: inotify instances are counted by user, and
	// another run of these tests may be using them up.
	nobody := 20000 + os.Getpid()%40000
	if err := syscall.Seteuid(nobody); err != nil {
		t.Skipf("cannot become user %d: %v", nobody, err)
	}
	t.Cleanup(func() { ok(t, syscall.Seteuid(0)) })
}

func TestLostPermissionTakesNothingAwayAndPasses(t *testing.T) {
	unprivileged(t)
	for _, c := range []struct {
		name string
		of   func(*world) string
		mode fs.FileMode
	}{
		{"of the file", func(w *world) string { return w.path }, 0o644},
		{"of its directory", func(w *world) string { return w.dir }, 0o755},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, w *world) {
				t.Cleanup(func() { os.Chmod(c.of(w), 0o755) }) // or it could not be removed
				write(t, w.path, "first")
				w.start()
				w.want("first")
				ok(t, os.Chmod(c.of(w), 0))
				w.hearTrouble(fs.ErrPermission)
				ok(t, os.Chmod(c.of(w), c.mode))
				w.hear(source.Recovered)
				write(t, w.path, "second")
				w.want("second")
			})
		})
	}
}

// To open a named pipe is to wait for its writer; Run must not.
func TestNamedPipeIsRefused(t *testing.T) {
	inBubble(t, source.Options{}, func(t *testing.T, w *world) {
		ok(t, syscall.Mkfifo(w.path, 0o644))
		w.start()
		e := w.hear(source.Unreadable)
		if !strings.Contains(e.Err.Error(), "not a regular file") {
			t.Errorf("error %q, want one that says what it is", e.Err)
		}
	})
}

// A name is shown in problems, and must not begin a new line there.
func TestNameWithControlCharacterIsRefused(t *testing.T) {
	inBubble(t, source.Options{}, func(t *testing.T, w *world) {
		ok(t, os.Mkdir(w.path, 0o755))
		write(t, w.path+"/a.yaml", "a")
		write(t, w.path+"/b\nlevel=ERROR.yaml", "b")
		w.start()
		e := w.hear(source.Unreadable)
		if s := e.Err.Error(); !strings.Contains(s, `b\nlevel=ERROR.yaml`) || strings.Contains(s, "\n") {
			t.Errorf("error %q, want the name on one line", s)
		}
	})
}
