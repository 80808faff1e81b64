package source_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/source"
)

func TestEveryWayOfSavingIsDelivered(t *testing.T) {
	for _, c := range []struct {
		name string
		save func(t *testing.T, w *world, text string)
	}{
		{"written in place", func(t *testing.T, w *world, text string) {
			write(t, w.path, text)
		}},
		{"truncated, later written", func(t *testing.T, w *world, text string) {
			f := must(os.OpenFile(w.path, os.O_WRONLY|os.O_TRUNC, 0))
			w.pass()
			must(f.WriteString(text))
			ok(t, f.Close())
		}},
		{"renamed over", func(t *testing.T, w *world, text string) {
			write(t, w.in("rules.yaml.tmp"), text)
			ok(t, os.Rename(w.in("rules.yaml.tmp"), w.path))
		}},
		{"removed and written", func(t *testing.T, w *world, text string) {
			ok(t, os.Remove(w.path))
			write(t, w.path, text)
		}},
		// backupcopy=no: a test file, the old one moved aside, a new one in its place.
		{"vim", func(t *testing.T, w *world, text string) {
			write(t, w.in(".rules.yaml.swp"), "b0VIM 9.0")
			write(t, w.in("4913"), "")
			ok(t, os.Remove(w.in("4913")))
			ok(t, os.Rename(w.path, w.in("rules.yaml~")))
			write(t, w.path, text)
			ok(t, os.Remove(w.in("rules.yaml~")))
			ok(t, os.Remove(w.in(".rules.yaml.swp")))
		}},
		// The lock is a symbolic link that leads nowhere and ends in .yaml.
		{"emacs", func(t *testing.T, w *world, text string) {
			ok(t, os.Symlink("ada@host.4711:1", w.in(".#rules.yaml")))
			write(t, w.in("#rules.yaml#"), "draft")
			ok(t, os.Rename(w.path, w.in("rules.yaml~")))
			write(t, w.path, text)
			ok(t, os.Remove(w.in(".#rules.yaml")))
			ok(t, os.Remove(w.in("#rules.yaml#")))
		}},
		// sed -i and rsync: same size, and the time of the old file.
		{"same size and time", func(t *testing.T, w *world, text string) {
			old := must(os.Stat(w.path)).ModTime()
			write(t, w.in("sedX7bQ2"), text)
			ok(t, os.Chtimes(w.in("sedX7bQ2"), old, old))
			ok(t, os.Rename(w.in("sedX7bQ2"), w.path))
		}},
		{"link to another file", func(t *testing.T, w *world, text string) {
			write(t, w.in("v2"), text)
			ok(t, os.Symlink("v2", w.in("link")))
			ok(t, os.Rename(w.in("link"), w.path))
		}},
		{"behind a link", func(t *testing.T, w *world, text string) {
			ok(t, os.MkdirAll(w.in("a/b"), 0o755))
			write(t, w.in("a/b/real"), "other")
			ok(t, os.Symlink(w.in("a/b/real"), w.in("a/hop")))
			ok(t, os.Remove(w.path))
			ok(t, os.Symlink("a/../a/./hop", w.path))
			w.want("other")
			write(t, w.in("a/b/real"), text)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, w *world) {
				write(t, w.path, "first")
				w.start()
				w.want("first")
				c.save(t, w, "other")
				if c.name != "behind a link" {
					w.want("other")
				} else {
					w.pass()
					write(t, w.in("a/b/real"), "third")
					w.want("third")
				}
				w.pass()
				w.wantNothing()
			})
		})
	}
}

func TestDirectoryIsOneDocument(t *testing.T) {
	onBothEngines(t, func(t *testing.T, w *world) {
		ok(t, os.Mkdir(w.path, 0o755))
		write(t, w.path+"/b.yml", "b")
		write(t, w.path+"/a.yaml", "a")
		write(t, w.path+"/c.json", "c")
		for _, other := range []string{".hidden.yaml", "a.yaml~", ".a.yaml.swp", "README", "a.YAML.bak", ".yaml"} {
			write(t, w.path+"/"+other, "not a document")
		}
		ok(t, os.Mkdir(w.path+"/sub", 0o755))
		write(t, w.path+"/sub/d.yaml", "d")
		w.start()

		d := w.want("a", "b", "c")
		for i, name := range []string{"a.yaml", "b.yml", "c.json"} {
			if got, want := d.Parts[i].Name, filepath.Join(w.path, name); got != want {
				t.Errorf("part %d is named %q, want %q", i, got, want)
			}
		}
		if d.Name != w.path {
			t.Errorf("the document is named %q, want %q", d.Name, w.path)
		}

		write(t, w.path+"/aa.yaml", "aa")
		w.want("a", "aa", "b", "c")
		write(t, w.path+"/b.yml", "B")
		w.want("a", "aa", "B", "c")
		ok(t, os.Remove(w.path+"/c.json"))
		w.want("a", "aa", "B")
		ok(t, os.Rename(w.path+"/b.yml", w.path+"/0.yml"))
		w.want("B", "a", "aa")
	})
}

// A new release is written beside the old one and ..data is renamed to it, as
// kubelet's AtomicWriter does. The names that are mounted never change.
func TestKubernetesVolumeIsSwapped(t *testing.T) {
	release := func(t *testing.T, w *world, name, text string) {
		t.Helper()
		volume := w.in("volume")
		ok(t, os.MkdirAll(volume+"/"+name, 0o755))
		write(t, volume+"/"+name+"/a.yaml", text)
		write(t, volume+"/"+name+"/b.yaml", "also "+text)
		old, _ := os.Readlink(volume + "/..data") // there is none the first time
		ok(t, os.Symlink(name, volume+"/..data_tmp"))
		ok(t, os.Rename(volume+"/..data_tmp", volume+"/..data"))
		if old == "" {
			ok(t, os.Symlink("..data/a.yaml", volume+"/a.yaml"))
			ok(t, os.Symlink("..data/b.yaml", volume+"/b.yaml"))
		} else {
			ok(t, os.RemoveAll(volume+"/"+old))
		}
	}
	for _, c := range []struct {
		name, link string
		also       bool
	}{
		{"one file", "volume/a.yaml", false},
		{"the directory", "volume", true},
		{"the release itself", "volume/..data", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, w *world) {
				release(t, w, "..2026_03_01_08_00_00.1", "v1")
				ok(t, os.Symlink(c.link, w.path))
				w.start()
				for i := 1; ; i++ {
					v := fmt.Sprintf("v%d", i)
					if c.also {
						w.want(v, "also "+v)
					} else {
						w.want(v)
					}
					if i == 5 {
						return
					}
					release(t, w, fmt.Sprintf("..2026_03_01_08_00_00.%d", i+1), fmt.Sprintf("v%d", i+1))
				}
			})
		})
	}
}

func TestTroubleTakesNothingAwayAndPasses(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  error
		spoil func(t *testing.T, w *world)
		mend  func(t *testing.T, w *world)
	}{
		{"vanished", fs.ErrNotExist,
			func(t *testing.T, w *world) { ok(t, os.Rename(w.path, w.in("away"))) },
			func(t *testing.T, w *world) { ok(t, os.Rename(w.in("away"), w.path)) }},
		{"directory renamed", fs.ErrNotExist,
			func(t *testing.T, w *world) { ok(t, os.Rename(w.dir, w.dir+"-away")) },
			func(t *testing.T, w *world) { ok(t, os.Rename(w.dir+"-away", w.dir)) }},
		{"emptied", source.ErrEmpty,
			func(t *testing.T, w *world) { ok(t, os.Truncate(w.path, 0)) },
			func(t *testing.T, w *world) { write(t, w.path, "first") }},
		{"too large", source.ErrTooLarge,
			func(t *testing.T, w *world) { ok(t, os.Truncate(w.path, 16<<20+1)) },
			func(t *testing.T, w *world) { write(t, w.path, "first") }},
		{"replaced by an empty directory", source.ErrEmpty,
			func(t *testing.T, w *world) { ok(t, os.Remove(w.path)); ok(t, os.Mkdir(w.path, 0o755)) },
			func(t *testing.T, w *world) { ok(t, os.Remove(w.path)); write(t, w.path, "first") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, w *world) {
				write(t, w.path, "first")
				w.start()
				w.want("first")
				accepted := w.hear(source.Accepted)

				c.spoil(t, w)
				w.hearTrouble(c.want)
				w.pass()
				s := w.file.Status()
				if !errors.Is(s.Err, c.want) || s.Version != accepted.Version || s.ReadErrors == 0 {
					t.Errorf("in trouble the status is %+v, want the error and the old version %s", s, accepted.Version)
				}

				c.mend(t, w)
				if e := w.hear(source.Recovered); e.Version != accepted.Version {
					t.Errorf("recovered version %q, want %q", e.Version, accepted.Version)
				}
				if s := w.file.Status(); s.Err != nil || s.Acceptances != 1 {
					t.Errorf("after the trouble the status is %+v, want no error and no second delivery", s)
				}
				c.spoil(t, w)
				w.hearTrouble(c.want)
				c.mend(t, w)
				write(t, w.path, "second")
				w.want("second")
			})
		})
	}
}

func TestFileAndDirectoryMayReplaceEachOther(t *testing.T) {
	onBothEngines(t, func(t *testing.T, w *world) {
		write(t, w.path, "file")
		w.start()
		w.want("file")
		ok(t, os.Mkdir(w.in("new"), 0o755))
		write(t, w.in("new/a.yaml"), "a")
		write(t, w.in("new/b.yaml"), "b")
		ok(t, os.Remove(w.path))
		ok(t, os.Rename(w.in("new"), w.path))
		w.want("a", "b")
		write(t, w.path+"/b.yaml", "B")
		w.want("a", "B")
		ok(t, os.Rename(w.path, w.in("old")))
		write(t, w.path, "file again")
		w.want("file again")
	})
}

func TestUnchangedContentIsNotDeliveredAgain(t *testing.T) {
	onBothEngines(t, func(t *testing.T, w *world) {
		write(t, w.path, "same")
		w.start()
		w.want("same")
		now := time.Now()
		ok(t, os.Chtimes(w.path, now, now))
		w.pass()
		write(t, w.path, "same")
		w.pass()
		write(t, w.in("copy"), "same")
		ok(t, os.Rename(w.in("copy"), w.path))
		w.pass()
		write(t, w.path, "other")
		w.want("other")
		if s := w.file.Status(); s.Rejections != 0 {
			t.Errorf("%d rejections, want none", s.Rejections)
		}
	})
}

func TestReloadDeliversUnchangedContent(t *testing.T) {
	onBothEngines(t, func(t *testing.T, w *world) {
		write(t, w.path, "same")
		ok(t, os.Chtimes(w.path, longAgo, longAgo))
		w.file.Reload() // before Run there is nothing to repeat
		w.start()
		w.want("same")
		w.pass()
		w.wantNothing()
		for range 3 {
			w.file.Reload()
			w.want("same")
		}
		ok(t, os.Remove(w.path))
		w.hearTrouble(fs.ErrNotExist)
		w.file.Reload()
		w.hearTrouble(fs.ErrNotExist)
		write(t, w.path, "same")
		w.hear(source.Recovered)
		w.pass()
		w.wantNothing()
	})
}

func TestRejectedDocumentIsNotOfferedAgainUntilItChanges(t *testing.T) {
	onBothEngines(t, func(t *testing.T, w *world) {
		wrong := errors.New("rules: line 1: no")
		w.answer = func(d source.Document) error {
			if strings.HasPrefix(string(d.Parts[0].Data), "bad") {
				return wrong
			}
			return nil
		}
		write(t, w.path, "good")
		w.start()
		w.want("good")
		good := w.hear(source.Accepted).Version

		write(t, w.path, "bad")
		w.want("bad")
		if e := w.hear(source.Rejected); e.Err != wrong || e.Version == good || e.Path != w.path {
			t.Errorf("event %+v, want the answer and the version of the rejected document", e)
		}
		w.pass()
		w.wantNothing()
		if s := w.file.Status(); s.Err != wrong || s.Version != good || s.Acceptances != 1 || s.Rejections != 1 {
			t.Errorf("status %+v, want the rejection and the old version %s", s, good)
		}

		// Out of sight and back it is still rejected, without being asked again.
		ok(t, os.Rename(w.path, w.in("away")))
		w.hearTrouble(fs.ErrNotExist)
		ok(t, os.Rename(w.in("away"), w.path))
		w.hear(source.Recovered)
		if s := w.file.Status(); s.Err != wrong {
			t.Errorf("error %v, want %v", s.Err, wrong)
		}

		w.file.Reload()
		w.want("bad")
		write(t, w.path, "good")
		w.want("good")
		w.hear(source.Accepted)
		if s := w.file.Status(); s.Err != nil || s.Version != good || s.Acceptances != 2 || s.Rejections != 2 {
			t.Errorf("status %+v, want nothing wrong", s)
		}
	})
}

func TestMissingFileIsPickedUp(t *testing.T) {
	onBothEngines(t, func(t *testing.T, w *world) {
		w.watch("later/still/rules.yaml")
		w.start()
		w.hearTrouble(fs.ErrNotExist)
		ok(t, os.MkdirAll(filepath.Dir(w.path), 0o755))
		write(t, w.path, "there")
		w.want("there")
	})
}

func TestSizeIsBounded(t *testing.T) {
	inBubble(t, source.Options{MaxBytes: 10}, func(t *testing.T, w *world) {
		write(t, w.path, "0123456789")
		w.start()
		w.want("0123456789")
		write(t, w.path, "0123456789!")
		e := w.hear(source.Unreadable)
		if !errors.Is(e.Err, source.ErrTooLarge) || !strings.Contains(e.Err.Error(), "10 bytes") || !strings.Contains(e.Err.Error(), w.path) {
			t.Errorf("error %q, want the name and the bound", e.Err)
		}

		// A directory's files share it.
		ok(t, os.Remove(w.path))
		ok(t, os.Mkdir(w.path, 0o755))
		write(t, w.path+"/a.yaml", "01234")
		write(t, w.path+"/b.yaml", "56789")
		w.want("01234", "56789")
		write(t, w.path+"/c.yaml", "!")
		w.hearTrouble(source.ErrTooLarge)
	})
	inBubble(t, source.Options{}, func(t *testing.T, w *world) {
		ok(t, os.Mkdir(w.path, 0o755))
		for i := range 1001 {
			write(t, fmt.Sprintf("%s/%d.yaml", w.path, i), "x")
		}
		w.start()
		w.hearTrouble(source.ErrTooLarge)
		ok(t, os.Remove(w.path+"/7.yaml"))
		if d := <-w.docs; len(d.Parts) != 1000 {
			t.Errorf("%d parts, want 1000", len(d.Parts))
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []source.Options{
		{Quiet: -1}, {MaxDelay: -1}, {Poll: -1}, {MaxBytes: -1},
		{Quiet: time.Second, MaxDelay: time.Millisecond},
	} {
		if _, err := source.NewFile("rules.yaml", o); err == nil || !strings.HasPrefix(err.Error(), "source: ") {
			t.Errorf("%+v: error %v, want one that says why", o, err)
		}
	}
	if _, err := source.NewFile("", source.Options{}); err == nil {
		t.Error("an empty path was accepted")
	}
}
