// Package demo is a small site for trying weir: a page with a login form, an API
// that answers every request, and a live list of what the gateway decided.
//
// It is a site like any upstream. The decisions are told to it by whoever runs the
// gateway, through Site.Tell.
package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

//go:embed page.html
var page []byte // never written

// A Decision is what the list shows of one request.
type Decision struct {
	Time    time.Time `json:"time"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Client  string    `json:"client"`
	Allowed bool      `json:"allowed"`
	// Policies are those that were asked.
	Policies []Policy `json:"policies"`
}

// A Policy is what one policy said.
type Policy struct {
	Name      string `json:"name"`
	OK        bool   `json:"ok"`
	Shadow    bool   `json:"shadow,omitempty"`
	Remaining int64  `json:"remaining"`
	Quota     int64  `json:"quota"`
}

// Site is the demo. It may be used concurrently.
type Site struct {
	mux *http.ServeMux

	mu     sync.Mutex
	last   []Decision // the newest last, at most kept
	seen   int        // how many there were
	news   chan struct{}
	closed chan struct{}
}

// kept is how many decisions the list shows.
const kept = 50

// New returns a site.
func New() *Site {
	s := &Site{mux: http.NewServeMux(), news: make(chan struct{}), closed: make(chan struct{})}
	s.mux.HandleFunc("GET /{$}", s.page)
	s.mux.HandleFunc("GET /decisions", s.decisions)
	s.mux.HandleFunc("POST /api/auth/login", s.login)
	s.mux.HandleFunc("POST /api/users", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusCreated, map[string]any{"id": 1, "welcome": true})
	})
	s.mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, map[string]any{"path": r.URL.Path, "method": r.Method, "items": []string{"sluice", "spillway", "weir"}})
	})
	return s
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Tell puts a decision on the list. It does not wait for anybody who reads it.
func (s *Site) Tell(d Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) == kept {
		s.last = append(s.last[:0], s.last[1:]...)
	}
	s.last = append(s.last, d)
	s.seen++
	close(s.news)
	s.news = make(chan struct{})
}

// Close ends the lists that are being read, which end with nothing else.
func (s *Site) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
}

// since returns the decisions after the first n, as far as they are kept, how many
// there were, and what is closed when there is another.
func (s *Site) since(n int) (fresh []Decision, seen int, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := min(s.seen-n, len(s.last))
	return append(fresh, s.last[len(s.last)-count:]...), s.seen, s.news
}

func (s *Site) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'")
	_, _ = w.Write(page) // fails only if the client has left
}

// login knows nobody: what is shown is that guessing is limited.
func (s *Site) login(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusUnauthorized, map[string]any{"error": "wrong user name or password"})
}

// decisions is the list as a stream of server-sent events.
func (s *Site) decisions(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	for seen := 0; ; {
		fresh, now, news := s.since(seen)
		seen = now
		for _, d := range fresh {
			text, _ := json.Marshal(d) // strings, numbers and a time always marshal
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
				return
			}
		}
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-news:
		case <-s.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has left
}
