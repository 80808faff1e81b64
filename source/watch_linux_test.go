package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/source"
)

func TestRunLeavesNoDescriptor(t *testing.T) {
	before := inotifies(t)
	w := newWorld(t, source.Options{Quiet: time.Millisecond, Poll: time.Hour})
	write(t, w.path, "first")
	for range 3 {
		w.start()
		w.want("first")
		if got := inotifies(t); got != before+1 {
			t.Errorf("%d inotify descriptors while running, want %d", got, before+1)
		}
		if w.file.Status().Polling {
			t.Error("polling, want inotify")
		}
		w.stop()
		if got := inotifies(t); got != before {
			t.Errorf("%d inotify descriptors after Run, want %d", got, before)
		}
	}
}

func inotifies(t *testing.T) (n int) {
	t.Helper()
	for _, name := range must(filepath.Glob("/proc/self/fd/*")) {
		if to, err := os.Readlink(name); err == nil && to == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

// As many directories come and go, the watches do not pile up.
func TestWatchesAreReleased(t *testing.T) {
	w := newWorld(t, source.Options{Quiet: time.Millisecond, MaxDelay: time.Minute, Poll: time.Hour})
	var before int
	for i := range 50 {
		dir := w.in(fmt.Sprint("release", i))
		ok(t, os.Mkdir(dir, 0o755))
		write(t, dir+"/rules.yaml", fmt.Sprint(i))
		ok(t, os.Symlink(dir+"/rules.yaml", w.in("link")))
		ok(t, os.Rename(w.in("link"), w.path))
		if i == 0 {
			w.start()
		}
		w.want(fmt.Sprint(i))
		if got := watches(t); i == 0 {
			before = got
		} else if got != before {
			t.Fatalf("%d watches after %d releases, want %d", got, i, before)
		}
	}
}

// watches counts the lines of all inotify descriptors in /proc/self/fdinfo.
func watches(t *testing.T) (n int) {
	t.Helper()
	for _, name := range must(filepath.Glob("/proc/self/fd/*")) {
		if to, err := os.Readlink(name); err == nil && to == "anon_inode:inotify" {
			info := must(os.ReadFile(filepath.Join("/proc/self/fdinfo", filepath.Base(name))))
			n += strings.Count(string(info), "inotify wd:")
		}
	}
	return n
}

// Without inotify, here since the user has used up all instances, polls find
// what changes, and Status says so.
func TestPollsRemainWhenInotifyIsUsedUp(t *testing.T) {
	unprivileged(t)
	if os.Geteuid() == os.Getuid() {
		t.Skip("only root can become a user whose inotify instances it may use up")
	}
	var fds []int
	defer func() {
		for _, fd := range fds {
			syscall.Close(fd)
		}
	}()
	for {
		fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
		if err == syscall.EMFILE {
			break
		}
		ok(t, err)
		if fds = append(fds, fd); len(fds) > 1000 {
			t.Skip("this kernel gives out inotify instances without end")
		}
	}
	w := newWorld(t, source.Options{Quiet: time.Millisecond, Poll: 5 * time.Millisecond})
	write(t, w.path, "first")
	w.start()
	w.want("first")
	if !w.file.Status().Polling {
		t.Error("not polling, want polls since there is no inotify")
	}
	write(t, w.path, "second")
	w.want("second")
}

// Directories that appear between the resolving of the path and the watching of
// what it led to are told by no event. A matter of luck, so it is tried often.
func TestPathThatAppearsWhileItIsResolvedIsNotMissed(t *testing.T) {
	w := newWorld(t, source.Options{Quiet: time.Microsecond, MaxDelay: time.Minute, Poll: time.Hour})
	for i := range 100 {
		w.watch(fmt.Sprintf("%d/a/b/c/d/e/rules.yaml", i))
		w.start()
		w.hear(source.Unreadable)
		for dir := w.in(fmt.Sprint(i)); dir != w.path; {
			ok(t, os.Mkdir(dir, 0o755))
			rest := strings.TrimPrefix(w.path, dir+"/")
			name, _, _ := strings.Cut(rest, "/")
			dir += "/" + name
		}
		write(t, w.path, "there")
		w.want("there")
		w.stop()
	}
}

// The size of a file is what it says; what counts is what is read.
func TestSizeIsBoundedWhateverTheFileSays(t *testing.T) {
	inBubble(t, source.Options{MaxBytes: 10}, func(t *testing.T, w *world) {
		ok(t, os.Symlink("/proc/self/status", w.path)) // says 0 bytes
		w.start()
		w.hearTrouble(source.ErrTooLarge)
	})
}
