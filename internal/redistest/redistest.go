// Package redistest starts real redis-server processes for tests, on ports of their
// own: one, a master with replicas and Sentinels, or a Cluster. All end with the test.
//
// It has a few lines of Redis' protocol of its own, so that tests of the root module
// need no client library.
package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test that is about to fail waits.
const patience = 60 * time.Second

// Until waits for a condition that other processes bring about, and fails the test if
// it never comes.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("redistest: in vain waited until %s", what)
		}
	}
}

// Server is a process.
type Server struct {
	// Addr is where it listens, and will after Restart.
	Addr string

	t    testing.TB
	dir  string
	name string // of the program
	args []string
	auth []string // of Do

	mu    sync.Mutex
	cmd   *exec.Cmd     // nil while it does not run
	ended chan struct{} // closed when cmd has
}

// Single starts a redis-server without persistence; args are further ones of its
// command line, such as "--requirepass", "x".
func Single(t testing.TB, args ...string) *Server {
	t.Helper()
	all := append([]string{"--save", "", "--appendonly", "no"}, args...)
	return start(t, "redis-server", nil, all...)
}

// port is a free port of the loopback, with the one 10,000 above it free too, which a
// Cluster's nodes speak to each other by.
func port() (int, error) {
	for range 100 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		p := ln.Addr().(*net.TCPAddr).Port
		_ = ln.Close() // only its number is wanted
		if p > 55000 {
			p -= 15000
		}
		if free(p) && free(p+10000) {
			return p, nil
		}
	}
	return 0, errors.New("redistest: no free port")
}

func free(port int) bool {
	ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	return ln.Close() == nil
}

// start starts a program on a port of its own. Another process may be quicker to take
// the port that was free: then it is tried with the next.
func start(t testing.TB, program string, front []string, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("redistest: %v; install it: apt-get install %s", err, program)
	}
	s := &Server{t: t, dir: t.TempDir(), name: program}
	for i, a := range args {
		if a == "--requirepass" && i+1 < len(args) {
			s.auth = []string{"AUTH", args[i+1]}
		}
	}
	t.Cleanup(s.Kill)
	for try := 1; ; try++ {
		p, err := port()
		if err != nil {
			t.Fatal(err)
		}
		number := strconv.Itoa(p)
		s.Addr = "127.0.0.1:" + number
		s.args = slices.Concat(front, []string{"--port", number, "--bind", "127.0.0.1", "--dir", s.dir}, args)
		err = s.launch()
		if err == nil {
			return s
		}
		if try == 3 {
			t.Fatal(err)
		}
	}
}

// Restart starts the process again, on the same port and with the same arguments, and
// waits until it answers. Without persistence it is empty.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.launch(); err != nil {
		s.t.Fatal(err)
	}
}

// launch returns when the process answers, or says why it ended.
func (s *Server) launch() error {
	s.Kill()
	out, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(s.name, s.args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that is killed leaves nothing
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended, its log says
		close(ended)
	}()
	s.mu.Lock()
	s.cmd, s.ended = cmd, ended
	s.mu.Unlock()
	for late := time.After(patience); ; {
		if _, err := s.Do("PING"); err == nil {
			return nil
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(out.Name())
			return fmt.Errorf("redistest: %s ended at once:\n%s", s.name, text)
		case <-late:
			return fmt.Errorf("redistest: %s does not answer at %s", s.name, s.Addr)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Kill ends the process at once, as kill -9 does, and waits until it is gone.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.ended
	s.cmd = nil
}

// Stop makes the process stand still, with its connections open; Continue lets it go on.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Continue ends a Stop.
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		s.t.Fatal("redistest: the server does not run")
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Do sends a command on a connection of its own and returns the answer. The items of a
// list are joined by newlines. The error may be one that Redis answered with.
func (s *Server) Do(args ...string) (string, error) {
	c, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	r := bufio.NewReader(c)
	for _, command := range [][]string{s.auth, args} {
		if command == nil {
			continue
		}
		if _, err := io.WriteString(c, request(command)); err != nil {
			return "", err
		}
		answer, err := reply(r)
		if err != nil || &command[0] == &args[0] {
			return answer, err
		}
	}
	return "", errors.New("redistest: no command")
}

// Must is Do for a command that has to succeed.
func (s *Server) Must(args ...string) string {
	s.t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		s.t.Fatalf("redistest: %s: %q: %v", s.Addr, args, err)
	}
	return answer
}

func request(args []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func reply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", errors.New("redistest: an empty line in place of an answer")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New(rest)
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 {
		return "", err
	}
	if kind == '*' {
		items := make([]string, n)
		for i := range items {
			if items[i], err = reply(r); err != nil {
				return "", err
			}
		}
		return strings.Join(items, "\n"), nil
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", err
	}
	return string(text[:n]), nil
}
