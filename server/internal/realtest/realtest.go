// Package realtest finds and starts the programs that tests run against.
package realtest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Need returns where a program is. A test without it is skipped only where nobody
// has promised that it is there: CI and WEIR_TOOLS are such promises.
func Need(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("CI") == "" && os.Getenv("WEIR_TOOLS") == "" {
			t.Skipf("%v; make tools installs it", err)
		}
		t.Fatal(err)
	}
	return path
}

// Nginx starts an nginx in dir with the given text in its http block, where LISTEN
// stands for the listen directive, and returns its address. It inherits a socket that
// listens already, as in an upgrade of its own, so nobody has to guess a port or wait
// until it is up. Once stop has returned, which the test's end calls too, its logs are
// whole.
func Nginx(t testing.TB, dir, http string) (address string, stop func()) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	program := Need(t, "nginx")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer ln.Close() // nginx has a copy
	socket, err := ln.(*net.TCPListener).File()
	must(err)
	defer socket.Close()
	address = ln.Addr().String()
	must(os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(`
daemon off; worker_processes 1; pid nginx.pid;
events { worker_connections 256; }
http {
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  `+strings.ReplaceAll(http, "LISTEN", "listen "+address+";")+`
}`), 0o644))
	var said bytes.Buffer
	c := exec.Command(program, "-p", dir, "-c", "nginx.conf", "-e", "stderr")
	c.Stderr = &said
	c.ExtraFiles = []*os.File{socket}
	c.Env = append(os.Environ(), "NGINX=3;")
	must(c.Start())
	stop = sync.OnceFunc(func() {
		_ = c.Process.Signal(syscall.SIGQUIT) // gently; fails only if it has ended, which Wait tells
		if err := c.Wait(); err != nil {
			t.Errorf("nginx: %v\n%s", err, &said)
		}
	})
	t.Cleanup(stop)
	return address, stop
}
