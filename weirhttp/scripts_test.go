package weirhttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/sf"
	"github.com/weirhq/weir/weirhttp"
	"github.com/weirhq/weir/weirtest"
)

// TestScripts runs the behaviour of limits through the middleware over real
// connections: what a client is told must be what the script says. Steps that have
// no form in HTTP (looking, giving back) end a script there.
func TestScripts(t *testing.T) {
	weirtest.RunScriptsOn(t, os.DirFS("../testdata/decisions"), func(tb testing.TB, c *weirtest.Clock) weirtest.Target {
		d := &door{clock: c}
		tb.Cleanup(d.close)
		return d
	})
}

// door is a weirtest.Target: a server with the middleware. Its clock notes how long
// requests are made to wait instead of moving the script's.
type door struct {
	clock    *weirtest.Clock
	waited   time.Duration
	policies []*weir.Policy
	limiter  *weirhttp.Limiter
	server   *httptest.Server
}

func (d *door) Now() time.Time { return d.clock.Now() }

func (d *door) Sleep(_ context.Context, wait time.Duration) error {
	d.waited = wait
	return nil
}

func (d *door) close() {
	if d.server != nil {
		d.server.Close()
	}
}

func (d *door) Policies(_ context.Context, policies []weirtest.Policy) error {
	d.policies = nil
	var rules []weirhttp.Rule
	for _, p := range policies {
		if p.Shadow {
			return fmt.Errorf("%w: clients are not told of shadow rules", weirtest.ErrCannot)
		}
		made, err := weir.NewPolicy(p.Name, p.Limit)
		if err != nil {
			return err
		}
		d.policies = append(d.policies, made)
		rule := weirhttp.Rule{Name: p.Name, Limits: []weir.Limit{p.Limit}, Unit: p.Unit, Key: weirhttp.ByHeader("X-Key"),
			Cost: func(r *weirhttp.Request) int64 {
				cost, _ := strconv.ParseInt(r.Header.Get("X-Cost"), 10, 64)
				return cost
			}}
		if p.Shared {
			rule.Key = nil
		}
		rules = append(rules, rule)
	}
	if d.limiter != nil {
		return d.limiter.Swap(weirhttp.Ruleset{Rules: rules})
	}
	var err error
	d.limiter, err = weir.New(weir.NewMemory(weir.MemoryOptions{Clock: d.clock}), weirhttp.Ruleset{Rules: rules},
		weir.Options[*weirhttp.Request]{Clock: d.clock})
	if err != nil {
		return err
	}
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	d.server = httptest.NewServer(weirhttp.Middleware(d.limiter, weirhttp.Options{Clock: d})(handler))
	return nil
}

func (d *door) Load(context.Context, string) error {
	return fmt.Errorf("%w: this door reads no rule files", weirtest.ErrCannot)
}

func (d *door) Do(ctx context.Context, r weirtest.Request) (a weirtest.Answer, err error) {
	if r.Verb != weirtest.Take || r.Slack >= 0 {
		return a, fmt.Errorf("%w: no form in HTTP", weirtest.ErrCannot)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.server.URL, nil)
	if err != nil {
		return a, err
	}
	req.Header.Set("X-Key", r.Key)
	req.Header.Set("X-Cost", strconv.FormatInt(r.Cost, 10))
	d.waited = 0
	resp, err := d.server.Client().Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.Allowed, a.Grain = resp.StatusCode == 200, time.Second
	a.Wait = (d.waited + a.Grain - 1).Truncate(a.Grain)
	var problem struct {
		Violated []string `json:"violated-policies"`
	}
	if !a.Allowed {
		a.RetryAfter = -1
		if text := resp.Header.Get("Retry-After"); text != "" {
			seconds, err := strconv.Atoi(text)
			if err != nil {
				return a, err
			}
			a.RetryAfter = time.Duration(seconds) * time.Second
		}
		if err := json.NewDecoder(resp.Body).Decode(&problem); err != nil {
			return a, err
		}
	}
	items, err := sf.ParseList(resp.Header.Get("RateLimit"))
	if err != nil {
		return a, err
	}
	for i, item := range items {
		l := weir.ServiceLimit{Policy: d.policies[i], OK: !slices.Contains(problem.Violated, item.Value), RetryAfter: -1}
		if l.Policy.Name != item.Value {
			return a, fmt.Errorf("%q stands at the place of %q", item.Value, l.Policy.Name)
		}
		l.Remaining, _ = item.Params["r"].(int64)
		if t, ok := item.Params["t"].(int64); ok {
			l.Reset = time.Duration(t) * time.Second
			l.RetryAfter = l.Reset // on a refusal t is the wait of the policy that refused
		}
		if l.OK {
			l.RetryAfter = 0
		}
		a.Limits = append(a.Limits, l)
	}
	return a, nil
}
