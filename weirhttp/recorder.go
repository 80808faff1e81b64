package weirhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// recorder sees the status and the length of an answer go by. It is not pooled: a
// handler that wrongly writes after it has returned must not reach the answer of
// somebody else.
type recorder struct {
	http.ResponseWriter
	status int // 0: none yet
	bytes  int64
}

// answer is what was seen. A handler that wrote nothing said 200.
func (w *recorder) answer() Answer {
	w.begin(http.StatusOK)
	return Answer{Status: w.status, Bytes: w.bytes, Header: w.Header()}
}

// begin notes the status of the answer, which is the first one.
func (w *recorder) begin(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// WriteHeader lets informational answers, except 101, go by.
func (w *recorder) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// WriteString implements io.StringWriter.
func (w *recorder) WriteString(s string) (int, error) {
	w.begin(http.StatusOK)
	n, err := io.WriteString(w.ResponseWriter, s)
	w.bytes += int64(n)
	return n, err
}

// ReadFrom keeps net/http's way of sending files without copying them.
func (w *recorder) ReadFrom(r io.Reader) (int64, error) {
	w.begin(http.StatusOK)
	n, err := io.Copy(w.ResponseWriter, r)
	w.bytes += n
	return n, err
}

// Flush is for handlers that ask for an http.Flusher.
func (w *recorder) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController.
func (w *recorder) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if err == nil {
		w.begin(http.StatusOK)
	}
	return err
}

// Hijack takes the connection over, as a WebSocket does.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.begin(http.StatusSwitchingProtocols)
	}
	return c, rw, err
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
