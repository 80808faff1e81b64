package gateway

import (
	"testing"
	"time"

	"github.com/weirhq/weir/server/config"
)

func TestAnUpstreamRestsAndComesBack(t *testing.T) {
	var list []config.Upstream
	for _, text := range []string{"http://a", "http://b", "http://c"} {
		var u config.Upstream
		if err := u.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		list = append(list, u)
	}
	p := newPool(list)
	now := time.Unix(1000, 0)
	turns := func(n int, tried *upstream) (got string) {
		for range n {
			got += p.next(now, tried).url.Host
		}
		return got
	}
	steps := []struct {
		why  string
		do   func()
		want string
	}{
		{"all take turns", func() {}, "abca"},
		{"b rests, and its turn goes to the next", func() { p.upstreams[1].until.Store(now.Add(rest).UnixNano()) }, "ccac"},
		{"all rest: one is tried all the same", func() {
			for _, u := range p.upstreams {
				u.until.Store(now.Add(rest).UnixNano())
			}
		}, "cabc"},
		{"all are back", func() { now = now.Add(rest) }, "abca"},
	}
	for _, s := range steps {
		s.do()
		if got := turns(4, nil); got != s.want {
			t.Errorf("%s: %s, want %s", s.why, got, s.want)
		}
	}
	if got := turns(3, p.upstreams[0]); got != "bcb" {
		t.Errorf("after a was tried: %s, want bcb", got)
	}
}
