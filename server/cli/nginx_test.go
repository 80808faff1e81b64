package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/server/cli"
)

// need returns where a program is. A test without it is skipped only where nobody
// has promised that it is there.
func need(t *testing.T, program string) string {
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

// loggingNginx starts an nginx that answers everything, and writes combined.log and
// nginx.jsonl into dir. Once stop has returned, the logs are whole. It inherits a
// socket that listens already, as in an upgrade of its own, so nobody has to guess
// a port or wait until it is up.
func loggingNginx(t *testing.T, dir string) (address string, stop func()) {
	t.Helper()
	program := need(t, "nginx")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close() // nginx has a copy
	socket, err := ln.(*net.TCPListener).File()
	must(t, err)
	defer socket.Close()
	address = ln.Addr().String()
	must(t, os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(`
daemon off; worker_processes 1; pid nginx.pid;
events { worker_connections 256; }
http {
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  log_format json escape=json '{"time_iso8601":"$time_iso8601","remote_addr":"$remote_addr","request_method":"$request_method",'
    '"request_uri":"$request_uri","status":$status,"http_user_agent":"$http_user_agent"}';
  access_log combined.log combined;
  access_log nginx.jsonl json;
  server { listen `+address+`; location / { return 204; } }
}`), 0o644))
	var said bytes.Buffer
	c := exec.Command(program, "-p", dir, "-c", "nginx.conf", "-e", "stderr")
	c.Stderr = &said
	c.ExtraFiles = []*os.File{socket}
	c.Env = append(os.Environ(), "NGINX=3;")
	must(t, c.Start())
	stop = sync.OnceFunc(func() {
		_ = c.Process.Signal(syscall.SIGQUIT) // gently; fails only if it has ended, which Wait tells
		if err := c.Wait(); err != nil {
			t.Errorf("nginx: %v\n%s", err, &said)
		}
	})
	t.Cleanup(stop)
	return address, stop
}

// sendRaw writes bytes as they are and returns the status of the answer, 0 if there
// is none.
func sendRaw(t *testing.T, address, text string) int {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, text)
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return 0
	}
	must(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	must(t, err)
	return resp.StatusCode
}

// agents are user agents as clients may send them.
var agents = []string{
	"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36",
	`say "hello"`, `"`, `""`, `" 200 0 "-" "other"`, `ends with "`, `\`, `\\`, `\"`, `C:\new\x41`, `\x22`, `\u0041`, `ends with \`,
	"tab\there", "bell\a", "esc\x1b[31mred", "\x01", "del\x7f", "\x1f\x1e",
	"你好，世界", "naïve café", "🦫 beaver", "\u202eright to left", "line\u2028separator",
	"\xff\xfe not UTF-8", "half \xe4\xbd", "-x", "x - -", `{"status":200}`, "a}b", "[1/Jan/2026:00:00:00 +0000]", "%22%0a", "null", "0", "",
}

// targets are request targets that nginx answers.
var targets = []string{
	"/", "/login", "/login?user=a&next=%2Fhome", "/a%20b", "//login", "/./login", "/x/../login", "/%6Cogin", "/login;v=1", "/caf%C3%A9",
	"/caf\u00e9", "/\xff", `/say"hello"`, `/a\b`, `/"`, "/a'b", "/{json}", "/[1/Jan/2026]", "/a?q=\"x\"", `/a?\`, "/a%2fb", "/HTTP/1.1", "/-", "/a?b?c", "/a#b",
}

// TestNginxLogsSayWhatWasSent: nginx writes about one traffic in two formats, and
// a replay of either counts exactly what was sent, by path and by user agent.
func TestNginxLogsSayWhatWasSent(t *testing.T) {
	dir := t.TempDir()
	address, stop := loggingNginx(t, dir)

	const quota = 20 // for each user agent and method
	type use struct{ agent, method string }
	sent, sentTo := make(map[use]int64), make(map[string]int64)
	for i, agent := range agents {
		for j := range 10 {
			method, target := "GET", targets[(i+j)%len(targets)]
			if j == 9 {
				method = "POST"
			}
			n := 1
			if i == 1 && j < 9 {
				n = 5 // more than the quota
			}
			for range n {
				request := method + " " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\nUser-Agent: " + agent + "\r\n\r\n"
				if got := sendRaw(t, address, request); got != 204 {
					t.Fatalf("%q: %d", request, got)
				}
				sent[use{agent, method}]++
				path, _, _ := strings.Cut(target, "?")
				sentTo[path]++
			}
		}
	}
	garbage := []string{
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n", "garbage\r\n\r\n", "\x00\x00\x00\r\n", "SSH-2.0-OpenSSH_9.6\r\n", `{"json":"rpc"}` + "\r\n",
		`" 200 0 "-" "-` + "\r\n", "\x03\x00\x00/*\xe0\x00\x00\x00\x00\x00Cookie: mstshash=Administr\r\n",
	}
	for _, g := range garbage {
		sendRaw(t, address, g)
	}
	stop()

	rules := filepath.Join(dir, "rules.yaml")
	must(t, os.WriteFile(rules, []byte(`rules:
  - {name: agents, key: ["header:User-Agent", method], limit: 20/24h}
  - {name: paths, key: path, limit: unlimited}
  - {name: logins, match: /login, key: ip, limit: 1000/24h}
`), 0o644))
	var requests, refused int64
	for _, n := range sent {
		requests += n
		refused += max(0, n-quota)
	}
	var reports []*replay.Report
	for _, log := range []string{"combined.log", "nginx.jsonl"} {
		var out, errs bytes.Buffer
		args := []string{"replay", "--rules", rules, "--format", "json", "--top", "1000", "--quiet", filepath.Join(dir, log)}
		if code := cli.Run(t.Context(), args, cli.Streams{Out: &out, Err: &errs}); code != 0 {
			t.Fatalf("%s: exit code %d: %s", log, code, &errs)
		}
		r := new(replay.Report)
		must(t, json.Unmarshal(out.Bytes(), r))
		reports = append(reports, r)
		fmt.Println(out.String())
		_ = strconv.Quote
		if want := map[string]int64{"not an HTTP request": int64(len(garbage))}; !reflect.DeepEqual(r.SkippedBy, want) {
			t.Errorf("%s: skipped %v, want %v; %v", log, r.SkippedBy, want, r.Examples)
		}
		if r.Requests != requests || r.Refused != refused {
			t.Errorf("%s: %d requests, %d refused; sent were %d, with %d beyond the quota", log, r.Requests, r.Refused, requests, refused)
		}
	}
	if !reflect.DeepEqual(reports[0], reports[1]) {
		t.Errorf("the logs disagree")
	}
}
