package chaos

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/redistest"
)

// workerVariable makes the test binary a node in a process of its own: ADDRESS FILE.
const workerVariable = "WEIR_CHAOS_WORKER"

// workers is how many processes there are at once.
const workers = 4

// worker is a node that writes what it allows to a file, until its input ends.
func worker(work string) int {
	addr, name, _ := strings.Cut(work, " ")
	out, err := os.Create(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	n, err := newNode(single(addr))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w := &world{nodes: []*node{n}}
	w.start(workers)
	written := 0
	flush := func() {
		n.notes.mu.Lock()
		fresh := n.notes.all[written:]
		written = len(n.notes.all)
		n.notes.mu.Unlock()
		b := bufio.NewWriter(out)
		for _, a := range fresh {
			fmt.Fprintln(b, a.rule, a.at)
		}
		if err := b.Flush(); err != nil {
			panic(err)
		}
	}
	end := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(end) }()
	for {
		select {
		case <-end:
			w.end()
			flush()
			return 0
		case <-time.After(2 * time.Millisecond):
			flush()
		}
	}
}

// process is a worker.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer
	file string
}

func startProcess(t *testing.T, addr string, n int) *process {
	t.Helper()
	p := &process{file: filepath.Join(t.TempDir(), strconv.Itoa(n))}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), workerVariable+"="+addr+" "+p.file)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // it may have ended
	redistest.Until(t, "the process allows something", func() bool {
		s, err := os.Stat(p.file)
		return err == nil && s.Size() > 0
	})
	return p
}

// allowed is what the process has written. The last line of one that was killed may be
// cut.
func (p *process) allowed(t *testing.T) (all []admission) {
	t.Helper()
	text, err := os.ReadFile(p.file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		rule, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		at, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, admission{rule, at})
	}
	return all
}

// TestProcessesDieAndComeAndSleep: several processes share the limits; one is killed, one
// sleeps for longer than its loans live, and others come.
func TestProcessesDieAndComeAndSleep(t *testing.T) {
	s := redistest.Single(t)
	var all []*process
	for i := range workers {
		all = append(all, startProcess(t, s.Addr, i))
	}
	lasts()
	if err := all[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = all[0].cmd.Wait() // it was killed
	if err := all[1].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	all = append(all, startProcess(t, s.Addr, workers))
	time.Sleep(max(2*time.Second, *span))
	if err := all[1].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	lasts()
	var admitted []admission
	for i, p := range all {
		if i > 0 {
			_ = p.in.Close()
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}
		admitted = append(admitted, p.allowed(t)...)
	}
	// One that wakes finds its calls late, and decides by its share for a moment.
	w := &world{TB: t, waits: []time.Duration{0}, decided: int64(len(admitted))}
	w.verdict("processes killed, stopped for 2 s, and new", promise{nodes: workers}, admitted)
}
