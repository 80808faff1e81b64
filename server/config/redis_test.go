package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/server/config"
)

// redis loads a configuration whose store is Redis with these settings.
func redis(t *testing.T, name, settings string) (*config.Redis, string) {
	t.Helper()
	c, problems := config.Load(name, []byte("rules: []\nstore: {redis: {"+settings+"}}\n"))
	if problems != nil {
		return nil, problems.Error()
	}
	return c.Store.Redis, ""
}

func TestRedisIsConfigured(t *testing.T) {
	r, wrong := redis(t, "weir.yaml", `addresses: ["s1:26379", "[::1]:26379"], username: u, password: p, tls: {server_name: r}, database: 2,
		master: main, sentinel_username: su, sentinel_password: sp, prefix: edge, timeout: 20ms, dial_timeout: 1s, connections: 4, queue: 100`)
	if wrong != "" {
		t.Fatal(wrong)
	}
	if len(r.Addresses) != 2 || r.Addresses[1] != "[::1]:26379" || r.Username != "u" || r.Password != "p" || r.TLS.ServerName != "r" ||
		r.Database != 2 || r.Master != "main" || r.SentinelUsername != "su" || r.SentinelPassword != "sp" || r.Prefix != "edge" ||
		r.Timeout != 20*time.Millisecond || r.DialTimeout != time.Second || r.Connections != 4 || r.Queue != 100 || r.Cluster {
		t.Errorf("%+v", r)
	}
}

func TestRedisHasDefaults(t *testing.T) {
	r, wrong := redis(t, "weir.yaml", `addresses: ["127.0.0.1:6379"]`)
	if wrong != "" {
		t.Fatal(wrong)
	}
	if r.Prefix != "weir" || r.Timeout != 50*time.Millisecond || r.DialTimeout != 200*time.Millisecond || r.TLS != nil {
		t.Errorf("%+v", r)
	}
	if c, err := r.TLS.Config(); c != nil || err != nil {
		t.Error("no TLS is", c, err)
	}
}

func TestContradictionsOfRedisAreProblems(t *testing.T) {
	for settings, want := range map[string]string{
		`prefix: weir`:              `2:16: store.redis: lacks addresses`,
		`addresses: []`:             `store.redis.addresses: is empty`,
		`addresses: ["redis"]`:      `store.redis.addresses[0]: "redis" is not the address of a server; write HOST:PORT`,
		`addresses: [":6379"]`:      `":6379" is not the address of a server`,
		`addresses: ["a:1", "b:1"]`: `names several servers; add master: NAME if they are Sentinels, or cluster: true`,
		`addresses: ["a:1"], password: x, password_file: y`: `stands beside password`,
		`addresses: ["a:1"], username: x`:                   `needs a password`,
		`addresses: ["a:1"], cluster: true, master: m`:      `stands beside cluster: true`,
		`addresses: ["a:1"], cluster: true, database: 1`:    `has database 0 alone`,
		`addresses: ["a:1"], sentinel_password: x`:          `lacks master`,
		`addresses: ["a:1"], timeout: 0s`:                   `store.redis.timeout: is no time at all; leave it out for 50ms`,
		`addresses: ["a:1"], prefix: "a b"`:                 `store.redis.prefix`,
		`addresses: ["a:1"], prefix: "{a}"`:                 `store.redis.prefix`,
		`addresses: ["a:1"], tls: {cert_file: x}`:           `names one of cert_file and key_file`,
		`addresses: ["a:1"], passwrod: x`:                   `did you mean "password"?`,
	} {
		if _, wrong := redis(t, "weir.yaml", settings); !strings.Contains(wrong, want) {
			t.Errorf("%s: %q lacks %q", settings, wrong, want)
		}
	}
	_, problems := config.Load("w.yaml", []byte(`{rules: [], store: {memory: {max_keys: 5}, redis: {addresses: ["a:1"]}}}`))
	if !strings.Contains(problems.Error(), "names two stores") {
		t.Error(problems)
	}
	_, problems = config.Load("w.yaml", []byte(`{rules: [], store: redis}`))
	if !strings.Contains(problems.Error(), "does not say where redis is") {
		t.Error(problems)
	}
}

func TestFilesOfRedisAreBesideTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("p w\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, wrong := redis(t, filepath.Join(dir, "weir.yaml"), `addresses: ["a:1"], password_file: secret, tls: {ca_file: secret}`)
	if wrong != "" {
		t.Fatal(wrong)
	}
	if got, err := r.Secret(); got != "p w" || err != nil {
		t.Errorf("the password is %q, %v", got, err)
	}
	if _, err := r.TLS.Config(); err == nil || !strings.Contains(err.Error(), "store.redis.tls.ca_file: "+filepath.Join(dir, "secret")) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Secret(); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Error("an empty password file:", err)
	}
}
