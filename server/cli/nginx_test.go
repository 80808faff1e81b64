package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/server/cli"
	"github.com/weirhq/weir/server/internal/realtest"
)

// loggingNginx starts an nginx that answers everything, and writes combined.log and
// nginx.jsonl into dir.
func loggingNginx(t *testing.T, dir string) (address string, stop func()) {
	t.Helper()
	return realtest.Nginx(t, dir, `
  log_format json escape=json '{"time_iso8601":"$time_iso8601","remote_addr":"$remote_addr","request_method":"$request_method",'
    '"request_uri":"$request_uri","status":$status,"http_user_agent":"$http_user_agent"}';
  access_log combined.log combined;
  access_log nginx.jsonl json;
  server { LISTEN location / { return 204; } }`)
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

// garbage is what is no HTTP.
var garbage = []string{
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n", "garbage\r\n\r\n", "\x00\x00\x00\r\n", "SSH-2.0-OpenSSH_9.6\r\n", `{"json":"rpc"}` + "\r\n",
	`" 200 0 "-" "-` + "\r\n", "\x03\x00\x00/*\xe0\x00\x00\x00\x00\x00Cookie: mstshash=Administr\r\n",
}

// targets are request targets that nginx answers, and the paths that rules see.
var targets = [][2]string{
	{"/", "/"}, {"/login", "/login"}, {"/login?user=a&next=%2Fhome", "/login"}, {"/a%20b", "/a b"}, {"//login", "/login"}, {"/./login", "/login"},
	{"/x/../login", "/login"}, {"/%6Cogin", "/login"}, {"/login;v=1", "/login;v=1"}, {"/caf%C3%A9", "/café"}, {"/café", "/café"}, {"/\xff", `"/\xff"`},
	{`/say"hello"`, `/say"hello"`}, {`/a\b`, `/a\b`}, {`/"`, `/"`}, {"/a'b", "/a'b"}, {"/{json}", "/{json}"}, {"/[1/Jan/2026]", "/[1/Jan/2026]"},
	{`/a?q="x"`, "/a"}, {`/a?\`, "/a"}, {"/a%2fb", "/a%2Fb"}, {"/HTTP/1.1", "/HTTP/1.1"}, {"/-", "/-"}, {"/a?b?c", "/a"}, {"/a#b", "/a#b"},
}

// twoMeanings are the paths among those for which a gateway answers 400.
var twoMeanings = []string{`/a\b`, "/a%2fb"}

// shown is a key as a report shows it.
func shown(key string) string {
	if quoted := strconv.Quote(key); strings.IndexFunc(key, func(c rune) bool { return !unicode.IsPrint(c) }) >= 0 || !utf8.ValidString(key) {
		return quoted
	}
	return key
}

// TestNginxLogsSayWhatWasSent: nginx writes about one traffic in two formats, and
// a replay of either counts exactly what was sent, by user agent, path and method.
func TestNginxLogsSayWhatWasSent(t *testing.T) {
	dir := t.TempDir()
	address, stop := loggingNginx(t, dir)

	const quota = 20
	byAgent, byPath, byMethod := make(map[string]int64), make(map[string]int64), make(map[string]int64)
	var requests, refused, unclear int64
	for i, agent := range agents {
		name := shown(agent)
		if agent == "" {
			name = "no key: 127.0.0.1"
		}
		n := 10
		if i%12 == 1 {
			n += quota // beyond the quota, for some
		}
		for j := range n {
			target, method := targets[(i+j)%len(targets)], "GET"
			if j == 9 {
				method = "POST"
			}
			request := method + " " + target[0] + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\nUser-Agent: " + agent + "\r\n\r\n"
			if got := sendRaw(t, address, request); got != 204 {
				t.Fatalf("%q: %d", request, got)
			}
			requests++
			byAgent[name]++
			byPath[target[1]]++
			byMethod[method]++
			if slices.Contains(twoMeanings, target[0]) {
				unclear++
			}
		}
		refused += max(0, int64(n-quota))
	}
	for _, g := range garbage {
		sendRaw(t, address, g)
	}
	stop()

	rules := filepath.Join(dir, "rules.yaml")
	must(t, os.WriteFile(rules, []byte(`rules:
  - {name: agents, key: "header:User-Agent", limit: `+fmt.Sprint(quota)+`/24h}
  - {name: paths, key: path, limit: 1000000/24h}
  - {name: methods, key: method, limit: 1000000/24h}
`), 0o644))
	var reports []*replay.Report
	for _, log := range []string{"combined.log", "nginx.jsonl"} {
		var out, errs bytes.Buffer
		args := []string{"replay", "--rules", rules, "--format", "json", "--top", "1000", filepath.Join(dir, log)}
		if code := cli.Run(t.Context(), args, cli.Streams{Out: &out, Err: &errs}); code != 0 {
			t.Fatalf("%s: exit code %d: %s", log, code, &errs)
		}
		r := new(replay.Report)
		must(t, json.Unmarshal(out.Bytes(), r))
		reports = append(reports, r)
		// What is no HTTP is all that was skipped.
		if want := map[string]int64{"not an HTTP request": int64(len(garbage))}; !maps.Equal(r.SkippedBy, want) || r.Skipped != int64(len(garbage)) {
			t.Errorf("%s: skipped %d, %v, want %v; %v", log, r.Skipped, r.SkippedBy, want, r.Examples)
		}
		if r.Requests != requests || r.Refused != refused || r.BadPaths != unclear {
			t.Errorf("%s: %d requests, %d refused, %d of an unclear path; sent were %d, with %d beyond the quota and %d unclear",
				log, r.Requests, r.Refused, r.BadPaths, requests, refused, unclear)
		}
		for i, sent := range []map[string]int64{byAgent, byPath, byMethod} {
			counted := make(map[string]int64)
			for _, k := range r.Rules[i].Top {
				counted[k.Key] = k.Asked
			}
			for key := range counted {
				if counted[key] != sent[key] {
					t.Errorf("%s: %s: %q counted %d times, sent %d", log, r.Rules[i].Name, key, counted[key], sent[key])
				}
			}
			for key := range sent {
				if counted[key] == 0 {
					t.Errorf("%s: %s: %q not counted, sent %d times", log, r.Rules[i].Name, key, sent[key])
				}
			}
		}
	}
	if !reflect.DeepEqual(reports[0], reports[1]) {
		t.Errorf("the logs disagree:\n%+v\n%+v", reports[0], reports[1])
	}
}
