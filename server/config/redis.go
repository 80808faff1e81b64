package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/rules"
)

// Redis is the store that several processes share. All of them name the same
// database and prefix.
type Redis struct {
	// Addresses are those of the server, of Sentinels if Master is set, or of some
	// nodes of a Cluster.
	Addresses []HostPort `json:"addresses" rules:"required" doc:"where Redis is, such as [\"127.0.0.1:6379\"]"`
	// Username and Password authenticate to Redis. PasswordFile holds the password
	// instead, so that this file need not.
	Username     string `json:"username"`
	Password     string `json:"password"`
	PasswordFile string `json:"password_file"`
	// TLS is used if set.
	TLS *TLS `json:"tls"`
	// Database is the number that SELECT takes.
	Database int `json:"database" min:"0" max:"1000000"`
	// Master is the name by which Sentinels know the server.
	Master string `json:"master"`
	// SentinelUsername and SentinelPassword authenticate to Sentinels.
	SentinelUsername string `json:"sentinel_username"`
	SentinelPassword string `json:"sentinel_password"`
	// Cluster is whether the addresses are those of a Cluster.
	Cluster bool `json:"cluster"`
	// Prefix begins all keys; "weir" by default.
	Prefix string `json:"prefix"`
	// Timeout is how long a decision may wait for Redis; 50 ms by default.
	Timeout time.Duration `json:"timeout"`
	// DialTimeout is how long connecting may take; 200 ms by default.
	DialTimeout time.Duration `json:"dial_timeout"`
	// Connections is how many connections to each server carry decisions; 0 leaves
	// it to the client.
	Connections int `json:"connections" min:"1" max:"1024"`
	// Queue is how many decisions may wait while Redis is busy; 0 for 4096.
	Queue int `json:"queue" min:"1" max:"1048576"`
}

// redisFields is Redis in its plain shape.
type redisFields Redis

// DecodeNode reads the section and refuses what contradicts itself.
func (r *Redis) DecodeNode(path string, n *rules.Node) rules.Problems {
	problems := rules.DecodeAt(path, n, (*redisFields)(r))
	wrong := func(key, format string, args ...any) {
		problems = append(problems, n.Get(key).Problem(path+"."+key, format, args...))
	}
	if list := n.Get("addresses"); list != nil && list.Kind == rules.List && len(list.Items) == 0 {
		wrong("addresses", "is empty; name at least one, such as 127.0.0.1:6379")
	}
	if r.Password != "" && r.PasswordFile != "" {
		wrong("password_file", "stands beside password; keep one of the two")
	}
	if r.Username != "" && r.Password == "" && r.PasswordFile == "" {
		wrong("username", "needs a password, or a password_file that holds it")
	}
	if r.Cluster && r.Master != "" {
		wrong("master", "stands beside cluster: true; a Cluster fails over by itself and has no Sentinels")
	}
	if r.Cluster && r.Database != 0 {
		wrong("database", "stands beside cluster: true; a Cluster has database 0 alone")
	}
	if r.Master == "" && !r.Cluster && len(r.Addresses) > 1 {
		wrong("addresses", "names several servers; add master: NAME if they are Sentinels, or cluster: true")
	}
	if r.Master == "" && r.SentinelUsername+r.SentinelPassword != "" {
		problems = append(problems, n.Problem(path, "has a name or password for Sentinels and lacks master, the name that they know the server by"))
	}
	for _, d := range []struct {
		key   string
		value *time.Duration
		def   time.Duration
	}{{"timeout", &r.Timeout, 50 * time.Millisecond}, {"dial_timeout", &r.DialTimeout, 200 * time.Millisecond}} {
		if at := n.Get(d.key); at != nil && *d.value == 0 && at.Kind == rules.String {
			if v, err := rules.ParseWindow(at.Value); err == nil && v == 0 {
				wrong(d.key, "is no time at all; leave it out for %v", d.def)
			}
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '{' || c == '}' }
	if len(r.Prefix) > 64 || strings.ContainsFunc(r.Prefix, odd) {
		wrong("prefix", "%.80q begins every key; write 1 to 64 letters, digits or signs, and no braces, which choose a slot of a Cluster", r.Prefix)
	}
	if r.Prefix == "" {
		r.Prefix = "weir"
	}
	return problems
}

// paths are the files that the section names.
func (r *Redis) paths() []*string {
	all := []*string{&r.PasswordFile}
	if r.TLS != nil {
		all = append(all, &r.TLS.CAFile, &r.TLS.CertFile, &r.TLS.KeyFile)
	}
	return all
}

// Secret is the password: that of the file, if one is named. A line end after it is
// not part of it.
func (r *Redis) Secret() (string, error) {
	if r.PasswordFile == "" {
		return r.Password, nil
	}
	text, err := os.ReadFile(r.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("config: store.redis.password_file: %w", err)
	}
	text = bytes.TrimRight(text, "\r\n")
	if len(text) == 0 {
		return "", fmt.Errorf("config: store.redis.password_file: %s is empty", r.PasswordFile)
	}
	return string(text), nil
}

// TLS says whom to believe about the identity of a server, and what to show it. The
// zero value believes the authorities of the system and shows nothing.
type TLS struct {
	// CAFile holds the certificates of authorities, in PEM.
	CAFile string `json:"ca_file"`
	// CertFile and KeyFile are what a server that asks is shown.
	CertFile string `json:"cert_file"`
	KeyFile  string `json:"key_file"`
	// ServerName is the name in the server's certificate, if it is not that of the
	// address.
	ServerName string `json:"server_name"`
}

// tlsFields is TLS in its plain shape.
type tlsFields TLS

// DecodeNode reads the section.
func (t *TLS) DecodeNode(path string, n *rules.Node) rules.Problems {
	problems := rules.DecodeAt(path, n, (*tlsFields)(t))
	if (t.CertFile == "") != (t.KeyFile == "") {
		problems = append(problems, n.Problem(path, "names one of cert_file and key_file; they go together"))
	}
	return problems
}

// Config reads the files. It returns nil for a nil TLS.
func (t *TLS) Config() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("config: store.redis.tls.ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("config: store.redis.tls.ca_file: %s has no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("config: store.redis.tls.cert_file: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// A HostPort is the address of a server: HOST:PORT.
type HostPort string

// UnmarshalText checks an address.
func (h *HostPort) UnmarshalText(text []byte) error {
	host, port, err := net.SplitHostPort(string(text))
	if err == nil && host == "" {
		err = errors.New("no host")
	}
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%.80q is not the address of a server; write HOST:PORT, such as 127.0.0.1:6379", text)
	}
	*h = HostPort(text)
	return nil
}
