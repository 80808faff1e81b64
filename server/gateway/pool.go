package gateway

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/server/config"
)

// rest is how long an upstream that could not be connected to is left alone while
// there are others: long enough that a dead one costs few requests a wait, short
// enough that one that restarts is soon back.
const rest = 2 * time.Second

// pool are upstreams that take turns. It is used concurrently.
type pool struct {
	upstreams []*upstream
	turn      atomic.Uint32
}

type upstream struct {
	url   *url.URL
	until atomic.Int64 // rests until then, in nanoseconds since 1970
}

func newPool(configured []config.Upstream) *pool {
	p := new(pool)
	for _, u := range configured {
		p.upstreams = append(p.upstreams, &upstream{url: u.URL})
	}
	return p
}

// next returns the upstream whose turn it is, passing over those that rest and, if
// there is another, the one that was tried.
func (p *pool) next(now time.Time, tried *upstream) *upstream {
	n := uint32(len(p.upstreams))
	first := p.turn.Add(1) - 1
	var resting *upstream
	for i := range n {
		u := p.upstreams[(first+i)%n]
		switch {
		case u == tried:
		case u.until.Load() <= now.UnixNano():
			return u
		case resting == nil:
			resting = u
		}
	}
	if resting != nil {
		return resting // all rest: trying is better than giving up
	}
	return tried
}

// sender sends requests to a pool. It is the transport of one route.
type sender struct {
	pool      *pool
	transport http.RoundTripper
	now       func() time.Time
	failed    func(u *upstream, r *http.Request, err error) // hears of every attempt
}

// RoundTrip sends a request to the next upstream, and to one more if the first
// cannot be connected to and there is no body that would be lost.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	u := s.pool.next(s.now(), nil)
	resp, err := s.send(u, r)
	if !unreachable(err) || r.Context().Err() != nil || len(s.pool.upstreams) == 1 || r.Body != nil && r.Body != http.NoBody {
		return resp, err
	}
	return s.send(s.pool.next(s.now(), u), r)
}

func (s *sender) send(u *upstream, r *http.Request) (*http.Response, error) {
	out := r.WithContext(r.Context()) // a copy: transports do not change requests
	to := *r.URL
	to.Scheme, to.Host = u.url.Scheme, u.url.Host
	out.URL = &to
	resp, err := s.transport.RoundTrip(out)
	if err != nil && r.Context().Err() == nil {
		if unreachable(err) {
			u.until.Store(s.now().Add(rest).UnixNano())
		}
		s.failed(u, r, err)
	}
	return resp, err
}

// unreachable is whether no connection could be made, so that nothing was sent.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
