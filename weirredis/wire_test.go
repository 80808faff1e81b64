package weirredis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
)

// wire is a client of one connection, so that these tests need no client library.
type wire struct {
	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Reader
}

func dial(t testing.TB, addr string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{conn: conn, in: bufio.NewReader(conn)}
}

func (w *wire) Cluster() bool { return false }
func (w *wire) Close()        { w.conn.Close() }

// Run waits for all answers however late: a connection given up on would answer the next
// call with what belongs to this one.
func (w *wire) Run(_ context.Context, calls []*Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []byte
	for _, c := range calls {
		command := []string{"EVALSHA", c.SHA1}
		if c.Text {
			command = []string{"EVAL", c.Script}
		}
		command = append(append(command, strconv.Itoa(len(c.Keys))), c.Keys...)
		out = appendCommand(out, append(command, c.Args...))
	}
	_, err := w.conn.Write(out)
	for _, c := range calls {
		if c.Err = err; err == nil {
			c.Reply, c.Err = w.reply()
		}
	}
}

// do sends one command.
func (w *wire) do(t testing.TB, command ...string) string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.conn.Write(appendCommand(nil, command)); err != nil {
		t.Fatal(err)
	}
	reply, err := w.reply()
	if err != nil {
		t.Fatalf("%s: %v", command[0], err)
	}
	return reply
}

func appendCommand(dst []byte, words []string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(words))
	for _, w := range words {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(w), w)
	}
	return dst
}

func (w *wire) reply() (string, error) {
	line, err := w.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '-':
		return "", ServerError(rest)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return "", err
		}
		text := make([]byte, n+2)
		_, err = io.ReadFull(w.in, text)
		return string(text[:n]), err
	case '+', ':':
		return rest, nil
	}
	return "", errors.New("unexpected reply " + strconv.Quote(line))
}
