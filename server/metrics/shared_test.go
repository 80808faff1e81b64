package metrics_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/server/metrics"
	"github.com/weirhq/weir/tier"
	"github.com/weirhq/weir/weirredis"
)

// TestTheSharedStoreIsShown: every figure of Redis and of what stands before it is
// there, with its own value, a kind and a help that is a sentence.
func TestTheSharedStoreIsShown(t *testing.T) {
	m := metrics.New()
	m.Shared(func() metrics.SharedStats {
		return metrics.SharedStats{
			Redis: weirredis.Stats{
				Calls: 1, Failed: 2, Lost: 3, Mirror: 4, Loads: 5, TryAgain: 6, Full: 7, Left: 8, Waiting: 9, Refunds: 10, RefundsLost: 11,
			},
			Breaker:  tier.BreakerStats{Open: true, Opened: 12},
			Lease:    tier.LeaseStats{Local: 13, Loans: 14, Lent: 15, Back: 16, Keys: 17},
			Refusals: tier.RefusalsStats{Local: 18},
			Share:    tier.ShareStats{Allowed: 19, Refused: 20},
			Nodes:    21,
			Losses:   22,
		}
	})
	want := map[string]string{ // by name, kind and value
		"weir_redis_calls_total":          "counter 1",
		"weir_redis_calls_failed_total":   "counter 2",
		"weir_redis_calls_lost_total":     "counter 3",
		"weir_redis_mirror_total":         "counter 4",
		"weir_redis_script_loads_total":   "counter 5",
		"weir_redis_try_again_total":      "counter 6",
		"weir_redis_queue_full_total":     "counter 7",
		"weir_redis_queue_left_total":     "counter 8",
		"weir_redis_queue":                "gauge 9",
		"weir_redis_refunds_total":        "counter 10",
		"weir_redis_refunds_lost_total":   "counter 11",
		"weir_redis_breaker_open":         "gauge 1",
		"weir_redis_breaker_opened_total": "counter 12",
		"weir_lease_decisions_total":      "counter 13",
		"weir_lease_loans_total":          "counter 14",
		"weir_lease_units_total":          "counter 15",
		"weir_lease_units_back_total":     "counter 16",
		"weir_lease_keys":                 "gauge 17",
		"weir_refusals_remembered_total":  "counter 18",
		"weir_share_allowed_total":        "counter 19",
		"weir_share_refused_total":        "counter 20",
		"weir_redis_nodes":                "gauge 21",
		"weir_redis_losses_total":         "counter 22",
	}
	shared := regexp.MustCompile(`^weir_(redis|lease|share|refusals)_`)
	got, help := make(map[string]string), make(map[string]string)
	for line := range strings.Lines(scrape(m)) {
		line = strings.TrimSpace(line)
		name, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), " ")
		switch {
		case !shared.MatchString(name):
		case strings.HasPrefix(line, "# HELP "):
			help[name] = rest
		case strings.HasPrefix(line, "# TYPE "):
			got[name] = rest
		default:
			got[name] += " " + rest
		}
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s is %q, want %q", name, got[name], want[name])
		}
		if !strings.HasSuffix(help[name], ".") {
			t.Errorf("the help of %s is %q; write a sentence", name, help[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if want[name] == "" {
			t.Errorf("%s is new; add it here, and say in docs/redis.md when to look at it", name)
		}
	}
}

// TestMemoryShowsNoSharedStore: figures that could only be 0 would read as news.
func TestMemoryShowsNoSharedStore(t *testing.T) {
	if text := scrape(metrics.New()); strings.Contains(text, "weir_redis_") || strings.Contains(text, "weir_lease_") {
		t.Errorf("a store in memory has figures of redis:\n%s", text)
	}
}
