package redis

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Server is a redis-server of this run's own, which keeps nothing on disk.
type Server struct {
	Addr string
	cmd  *exec.Cmd
	c    *goredis.Client
}

// Start starts redis-server on a free port of the loopback and waits for it.
func Start(ctx context.Context) (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := ln.Addr().String()
	_ = ln.Close() // only its number is wanted
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--maxclients", "20000")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: %w; install it: apt-get install redis-server", err)
	}
	s := &Server{Addr: addr, cmd: cmd, c: goredis.NewClient(&goredis.Options{Addr: addr, MaxRetries: 100, MaxRetryBackoff: 50 * time.Millisecond})}
	if err := s.c.Ping(ctx).Err(); err != nil {
		s.Close()
		return nil, fmt.Errorf("bench: redis-server does not answer: %w", err)
	}
	return s, nil
}

// Close ends it.
func (s *Server) Close() {
	_ = s.c.Close()
	_ = s.cmd.Process.Kill() // nothing of it is kept
	_ = s.cmd.Wait()
}

// Empty forgets all keys.
func (s *Server) Empty(ctx context.Context) error { return s.c.FlushAll(ctx).Err() }

// CPU is the processor time that the thread which runs commands has used.
func (s *Server) CPU(ctx context.Context) (time.Duration, error) {
	user, err := s.info(ctx, "cpu", "used_cpu_user_main_thread")
	if err != nil {
		return 0, err
	}
	sys, err := s.info(ctx, "cpu", "used_cpu_sys_main_thread")
	return time.Duration((user + sys) * float64(time.Second)), err
}

// Calls is how many scripts were run.
func (s *Server) Calls(ctx context.Context) (int64, error) {
	text, err := s.c.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	var calls int64
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":calls=")
		if name == "cmdstat_evalsha" || name == "cmdstat_eval" {
			number, _, _ := strings.Cut(rest, ",")
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return 0, err
			}
			calls += n
		}
	}
	return calls, nil
}

// Memory is the bytes in use.
func (s *Server) Memory(ctx context.Context) (float64, error) {
	return s.info(ctx, "memory", "used_memory")
}

func (s *Server) info(ctx context.Context, section, field string) (float64, error) {
	text, err := s.c.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		if name, value, _ := strings.Cut(line, ":"); name == field {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("bench: INFO %s has no %s", section, field)
}
