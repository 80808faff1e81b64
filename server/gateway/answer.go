package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/headers"
)

// levelUpstream is the level of an upstream's failure: the gateway itself is well.
const levelUpstream = slog.LevelWarn

// problem answers with a problem document (RFC 9457) whose type is the status
// itself. The detail holds nothing that the client wrote.
func problem(w http.ResponseWriter, r *http.Request, status int, detail string) {
	body, _ := json.Marshal(struct { // strings and a number always marshal
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, detail})
	h := w.Header()
	h.Set("Content-Type", headers.ProblemType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only if the client has left
	}
}

// attrs describe a failed attempt. What the client chose is cut, and quoted by the
// handler.
func attrs(host string, r *http.Request, kind string, err error) []slog.Attr {
	const most = 200
	path := r.URL.EscapedPath()
	if len(path) > most {
		path = path[:most] + "…"
	}
	return []slog.Attr{slog.String("upstream", host), slog.String("kind", kind),
		slog.String("method", r.Method), slog.String("path", path), slog.Any("error", err)}
}

// lineLog is a log for net/http, whose lines may hold what clients sent: each
// becomes an attribute under one constant message.
func lineLog(to *slog.Logger, message string) *log.Logger {
	return log.New(lines{to, message}, "", 0)
}

type lines struct {
	to      *slog.Logger
	message string
}

// Write implements io.Writer.
func (l lines) Write(p []byte) (int, error) {
	l.to.Warn(l.message, "error", strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// recorder remembers the status of an answer, and gives up on a client that takes
// nothing of it. It flushes, hijacks and sets deadlines as well as the server's
// own, through http.ResponseController.
type recorder struct {
	http.ResponseWriter
	status int // 0: none yet
	pause  time.Duration
}

// wait gives the client its time anew: to take what is written next.
func (w *recorder) wait() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.pause))
}

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.wait()
	return w.ResponseWriter.Write(p)
}

// Hijack implements http.Hijacker: the connection was upgraded.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// boundBody bounds the pauses in a request's body, whoever reads it: the upstream's
// connection, or net/http after a request was refused without reading it.
func (g *Gateway) boundBody(w http.ResponseWriter, r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return r
	}
	b := &body{ReadCloser: r.Body, control: http.NewResponseController(w), pause: g.o.Timeouts.Body}
	b.wait()
	r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b)) // ReverseProxy hides the Body
	r.Body = b
	return r
}

// bodyKey is the context key of a request's *body.
type bodyKey struct{}

// body is a request's body whose next piece has to come in time.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	pause   time.Duration

	mu     sync.Mutex // held while reading
	failed error
}

// wait gives the client its time anew. Servers without deadlines, as in tests,
// have none to give.
func (b *body) wait() { _ = b.control.SetReadDeadline(time.Now().Add(b.pause)) }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wait()
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		// From here on the connection is read only to notice that the client left,
		// which has no deadline.
		_ = b.control.SetReadDeadline(time.Time{})
	case err != nil:
		err = &bodyError{err}
		b.failed = err
	}
	return n, err
}

// failure is why the body of a request could not be read, nil if it could. net/http
// ends the request's context before it returns such an error from Read, so the
// proxy may know only that the context has ended; a Read that is about to say why
// is waited for.
func failure(r *http.Request) error {
	b, ok := r.Context().Value(bodyKey{}).(*body)
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// bodyError is a failure to read a request's body, as opposed to one of the
// upstream.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "gateway: request body: " + e.err.Error() }

func (e *bodyError) Unwrap() error { return e.err }
