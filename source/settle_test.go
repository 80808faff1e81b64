package source_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/source"
)

// In a bubble time stands at 2000-01-01 until it is slept away, and the times of
// new files are in its future.
var (
	longAgo = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)
	t0      = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
)

func TestFirstDocumentIsDeliveredAtOnce(t *testing.T) {
	for _, c := range []struct {
		name     string
		modified time.Time
		after    time.Duration
	}{
		{"old", longAgo, 0},
		{"modified the quiet time ago", t0.Add(-100 * time.Millisecond), 0},
		{"modified a moment less ago", t0.Add(-99 * time.Millisecond), 100 * time.Millisecond},
		{"modified now", t0, 100 * time.Millisecond},
		{"modified in the future", t0.Add(time.Hour), 100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, source.Options{}, func(t *testing.T, w *world) {
				write(t, w.path, "first")
				ok(t, os.Chtimes(w.path, c.modified, c.modified))
				w.start()
				w.want("first")
				if got := time.Since(t0); got != c.after {
					t.Errorf("delivered after %v, want %v", got, c.after)
				}
				synctest.Wait()
				s := w.file.Status()
				if !s.Accepted.Equal(t0.Add(c.after)) || !s.Offered.Equal(s.Accepted) || !s.Read.Equal(s.Accepted) || !s.Polling {
					t.Errorf("status %+v, want everything at %v", s, t0.Add(c.after))
				}
			})
		})
	}
}

// In a directory where a file has just come or gone, others may follow.
func TestFirstDocumentWaitsForItsDirectory(t *testing.T) {
	inBubble(t, source.Options{}, func(t *testing.T, w *world) {
		ok(t, os.Mkdir(w.path, 0o755))
		write(t, w.path+"/a.yaml", "a")
		ok(t, os.Chtimes(w.path+"/a.yaml", longAgo, longAgo))
		w.start()
		time.Sleep(50 * time.Millisecond)
		write(t, w.path+"/b.yaml", "b")
		w.want("a", "b")
	})
}

func TestFirstTroubleIsReportedAtOnce(t *testing.T) {
	inBubble(t, source.Options{}, func(t *testing.T, w *world) {
		w.start()
		w.hearTrouble(fs.ErrNotExist)
		if got := time.Since(t0); got != 0 {
			t.Errorf("reported after %v, want at once", got)
		}
		time.Sleep(time.Hour)
		if s := w.file.Status(); s.ReadErrors != 1 || !s.Accepted.IsZero() || s.Version != "" {
			t.Errorf("status %+v, want one error that lasts, and no document", s)
		}
	})
}

func TestTroubleThatPassesInTheQuietTimeIsNotReported(t *testing.T) {
	inBubble(t, source.Options{Poll: 50 * time.Millisecond}, func(t *testing.T, w *world) {
		write(t, w.path, "first")
		w.start()
		w.want("first")
		for range 20 {
			ok(t, os.Remove(w.path))
			time.Sleep(90 * time.Millisecond)
			write(t, w.path, "first")
			time.Sleep(110 * time.Millisecond)
		}
		w.pass()
		w.wantNothing()
		if s := w.file.Status(); s.ReadErrors != 0 {
			t.Errorf("%d read errors, want none", s.ReadErrors)
		}
	})
}

func TestDocumentIsDeliveredWhenItHasStoodStill(t *testing.T) {
	inBubble(t, source.Options{Poll: 100 * time.Millisecond}, func(t *testing.T, w *world) {
		write(t, w.path, "first")
		w.start()
		w.want("first")
		time.Sleep(10 * time.Millisecond) // between the readings

		f := must(os.OpenFile(w.path, os.O_WRONLY|os.O_TRUNC, 0))
		defer f.Close()
		for i := range 20 {
			time.Sleep(90 * time.Millisecond)
			must(fmt.Fprintf(f, "rule %d\n", i))
		}
		last := time.Now()
		w.wantNothing()
		if d := <-w.docs; strings.Count(string(d.Parts[0].Data), "\n") != 20 {
			t.Errorf("delivered %q, want all 20 lines", d.Parts[0].Data)
		}
		if d := time.Since(last); d < 100*time.Millisecond || d > 200*time.Millisecond {
			t.Errorf("delivered %v after the last write, want 100ms to 200ms", d)
		}
	})
}

// A writer that keeps sizes and times, or writes faster than the file system's
// clock ticks, is seen by content.
func TestContentAloneIsAChange(t *testing.T) {
	inBubble(t, source.Options{Poll: 100 * time.Millisecond}, func(t *testing.T, w *world) {
		save := func(i int) {
			write(t, w.path, fmt.Sprintf("version %02d", i))
			ok(t, os.Chtimes(w.path, longAgo, longAgo))
		}
		save(0)
		w.start()
		w.want("version 00")
		for i := 1; i <= 20; i++ {
			time.Sleep(90 * time.Millisecond)
			save(i)
		}
		w.wantNothing()
		w.want("version 20")
	})
}

func TestDocumentThatKeepsChangingIsReportedNotDelivered(t *testing.T) {
	inBubble(t, source.Options{MaxDelay: time.Second}, func(t *testing.T, w *world) {
		write(t, w.path, "first")
		w.start()
		w.want("first")
		w.hear(source.Accepted)
		for i := range 100 {
			write(t, w.path, fmt.Sprint("version ", i))
			time.Sleep(60 * time.Millisecond)
		}
		w.wantNothing()
		e := w.hear(source.Unreadable)
		if !errors.Is(e.Err, source.ErrUnsettled) {
			t.Errorf("error %v, want %v", e.Err, source.ErrUnsettled)
		}
		if s := w.file.Status(); s.ReadErrors != 1 || s.Err != e.Err {
			t.Errorf("status %+v, want the error once", s)
		}
		w.want("version 99")
		w.hear(source.Accepted)
		if s := w.file.Status(); s.Err != nil {
			t.Errorf("error %v, want none", s.Err)
		}
	})
}

// Being touched is not changing.
func TestTouchingForeverIsNoTrouble(t *testing.T) {
	inBubble(t, source.Options{MaxDelay: time.Second}, func(t *testing.T, w *world) {
		write(t, w.path, "first")
		w.start()
		w.want("first")
		for i := range 1000 {
			at := t0.Add(time.Duration(i) * time.Second)
			ok(t, os.Chtimes(w.path, at, at))
			time.Sleep(60 * time.Millisecond)
		}
		w.wantNothing()
		if s := w.file.Status(); s.Err != nil || s.ReadErrors != 0 {
			t.Errorf("status %+v, want no error", s)
		}
	})
}

func TestReloadIsAtOnceUnlessTheFileIsBeingWritten(t *testing.T) {
	inBubble(t, source.Options{}, func(t *testing.T, w *world) {
		write(t, w.path, "first")
		w.start()
		w.want("first")
		time.Sleep(10500 * time.Millisecond)

		began := time.Now()
		w.file.Reload()
		w.want("first")
		if d := time.Since(began); d != 0 {
			t.Errorf("an unchanged file was delivered after %v, want at once", d)
		}

		write(t, w.path, "half")
		w.file.Reload()
		time.Sleep(50 * time.Millisecond)
		write(t, w.path, "half and half")
		w.want("half and half")
		if d := time.Since(began); d < 150*time.Millisecond || d > 250*time.Millisecond {
			t.Errorf("a file being written was delivered after %v, want 100ms to 200ms after its last write", d)
		}
		w.pass()
		w.wantNothing()
	})
}

// sealed is a text that says of itself whether it is whole: a body of length n
// and its sum.
func sealed(i, n int) string {
	body := fmt.Sprintf("%d\n%s\n", i, strings.Repeat("x", n))
	return fmt.Sprintf("%s%x", body, sha256.Sum256([]byte(body)))
}

func checkSealed(t *testing.T, text string) {
	t.Helper()
	i := strings.LastIndexByte(text, '\n') + 1
	if fmt.Sprintf("%x", sha256.Sum256([]byte(text[:i]))) != text[i:] {
		t.Errorf("a torn document of %d bytes was delivered", len(text))
	}
}

// The writer writes in place, in pieces, never pausing for the quiet time within
// a text and at random between two.
func TestNoTornDocumentFromAWriterInPlace(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	inBubble(t, source.Options{MaxDelay: time.Hour, Poll: 30 * time.Millisecond}, func(t *testing.T, w *world) {
		w.answer = func(d source.Document) error {
			checkSealed(t, string(d.Parts[0].Data))
			return nil
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		write(t, w.path, sealed(0, 0))
		w.start()
		w.want(sealed(0, 0))
		var last string
		for i := 1; i <= 500; i++ {
			last = sealed(i, rng.IntN(2000))
			f := must(os.OpenFile(w.path, os.O_WRONLY|os.O_TRUNC, 0))
			for rest := last; rest != ""; {
				time.Sleep(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
				n := min(len(rest), 1+rng.IntN(1000))
				must(f.WriteString(rest[:n]))
				rest = rest[n:]
			}
			ok(t, f.Close())
			time.Sleep(time.Duration(rng.Int64N(int64(400 * time.Millisecond))))
		}
		w.pass()
		if s := w.file.Status(); s.Version != (source.Document{Parts: []source.Part{{Data: []byte(last)}}}).Version() {
			t.Error("the last document was not delivered")
		} else if s.Acceptances < 100 {
			t.Errorf("%d of 500 documents were delivered, want those with a pause after them", s.Acceptances)
		}
	})
}

// The writer renames, as fast as it can, on the real kernel. Whatever the
// scheduler does, no document can be torn and the last must arrive.
func TestNoTornDocumentFromAWriterThatRenames(t *testing.T) {
	w := newWorld(t, source.Options{Quiet: time.Millisecond, MaxDelay: time.Hour, Poll: 10 * time.Millisecond})
	w.answer = func(d source.Document) error {
		checkSealed(t, string(d.Parts[0].Data))
		return nil
	}
	write(t, w.path, sealed(0, 0))
	w.start()
	var last string
	for i := 1; i <= 500; i++ {
		last = sealed(i, i*40)
		write(t, w.in("new"), last)
		ok(t, os.Rename(w.in("new"), w.path))
	}
	for {
		select {
		case d := <-w.docs:
			if string(d.Parts[0].Data) == last {
				return
			}
		case <-time.After(patience):
			t.Fatal("the last document was not delivered")
		}
	}
}
