//go:build !race

package accesslog_test

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/weirhq/weir/accesslog"
)

// endless repeats a day's lines over and over, for as many bytes.
type endless struct {
	text string
	at   int
	left int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := copy(b, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	e.left -= n
	return n, nil
}

func TestReadingAllocatesPerChunkAndNotPerLine(t *testing.T) {
	text := strings.Repeat(line(1, "a")+line(2, "b?c=d")+line(2, "c"), 1000)
	r := open(t, []string{"-"}, &endless{text: text, left: 64 << 20}, accesslog.Options{MaxBuffered: 1000})
	const lines = 10000 // about 750 kB, or a dozen chunks
	next := func() {
		for range lines {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := testing.AllocsPerRun(20, next); got > 30 {
		t.Errorf("%v allocations for %d lines", got, lines)
	}
}

func TestMemoryStaysTheSameHoweverLongTheLog(t *testing.T) {
	text := strings.Repeat(line(3, "a")+line(1, "b")+line(90, "c"), 100)
	r := open(t, []string{"-"}, &endless{text: text, left: 128 << 20}, accesslog.Options{MaxBuffered: 1000})
	var most uint64
	for n := 0; ; n++ {
		if _, err := r.Next(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n%100000 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	if most > 16<<20 {
		t.Errorf("%d MiB in use for 128 MiB of log and 1000 records waiting", most>>20)
	}
}

func TestWrongClocksKeepNoChunksAlive(t *testing.T) {
	// In each chunk of 64 KiB a line from the future waits to the end.
	text := line(1_000_000, "z") + strings.Repeat(line(1, "a"), 900)
	r := open(t, []string{"-"}, &endless{text: text, left: 1000 * len(text)}, accesslog.Options{})
	for range 899_000 {
		if rec, err := r.Next(); err != nil || rec.Path != "/a" {
			t.Fatalf("%v, %v", rec, err)
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 16<<20 {
		t.Errorf("%d MiB in use for 1000 lines that wait", m.HeapAlloc>>20)
	}
}
