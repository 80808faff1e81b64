package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Sentinels are three of them, that watch a master with two replicas.
type Sentinels struct {
	// Addrs are those of the Sentinels, and Name is what they call the master.
	Addrs []string
	Name  string
	// Replicas are those of the first master.
	Replicas []*Server

	servers   []*Server
	sentinels []*Server
}

// Sentinel starts a master, two replicas and three Sentinels, which take a master for
// dead after half a second.
func Sentinel(t testing.TB) *Sentinels {
	t.Helper()
	s := &Sentinels{Name: "weir"}
	s.servers = []*Server{Single(t)}
	host, number, _ := strings.Cut(s.servers[0].Addr, ":")
	for range 2 {
		s.servers = append(s.servers, Single(t, "--replicaof", host+" "+number, "--repl-diskless-sync-delay", "0"))
	}
	for range 3 {
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor %s %s %s 2\nsentinel down-after-milliseconds %[1]s 500\n"+
			"sentinel failover-timeout %[1]s 3000\nsentinel parallel-syncs %[1]s 2\n", s.Name, host, number)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		one := start(t, "redis-sentinel", []string{file})
		s.sentinels = append(s.sentinels, one)
		s.Addrs = append(s.Addrs, one.Addr)
	}
	s.Replicas = s.servers[1:]
	Until(t, "the Sentinels know each other and the replicas", func() bool {
		for _, one := range s.sentinels {
			text, err := one.Do("INFO", "sentinel")
			if err != nil || !strings.Contains(text, "status=ok") || !strings.Contains(text, "slaves=2,sentinels=3") {
				return false
			}
		}
		for _, r := range s.Replicas {
			if text, err := r.Do("INFO", "replication"); err != nil || !strings.Contains(text, "master_link_status:up") {
				return false
			}
		}
		return true
	})
	return s
}

// Master is the server that the Sentinels take for the master now, nil if that is none.
func (s *Sentinels) Master() *Server {
	for _, one := range s.sentinels {
		answer, err := one.Do("SENTINEL", "get-master-addr-by-name", s.Name)
		if err != nil {
			continue
		}
		addr := strings.ReplaceAll(answer, "\n", ":")
		for _, server := range s.servers {
			if server.Addr == addr {
				return server
			}
		}
	}
	return nil
}
