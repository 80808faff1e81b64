package replay_test

import (
	"cmp"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/replay"
)

// What follows counts again what replay counts, in the most obvious way: a regular
// expression, a sorted list, and loops. It shares nothing with the engine.

type request struct {
	at           time.Time
	ip           string
	method, path string
}

func realRequests(t *testing.T) []request {
	data, err := os.ReadFile(realLog)
	if err != nil {
		t.Fatal(err)
	}
	var all []request
	form := regexp.MustCompile(`(?m)^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) ([^ ?"]*)`)
	for _, m := range form.FindAllStringSubmatch(string(data), -1) {
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, request{at, m[1], m[3], m[4]})
	}
	slices.SortStableFunc(all, func(a, b request) int { return a.at.Compare(b.at) })
	return all
}

// counter is a limit of one key.
type counter interface {
	room(now time.Time) bool
	take(now time.Time)
}

// slidingLog: an event at e counts while now - e < window.
type slidingLog struct {
	quota  int
	window time.Duration
	events []time.Time
}

func (s *slidingLog) room(now time.Time) bool {
	n := 0
	for _, e := range s.events {
		if now.Sub(e) < s.window {
			n++
		}
	}
	return n < s.quota
}

func (s *slidingLog) take(now time.Time) { s.events = append(s.events, now) }

// fixedWindow counts per window aligned to the Unix epoch.
type fixedWindow struct {
	quota  int
	window time.Duration
	counts map[int64]int
}

func (f *fixedWindow) at(now time.Time) int64 { return now.Unix() / int64(f.window/time.Second) }

func (f *fixedWindow) room(now time.Time) bool { return f.counts[f.at(now)] < f.quota }

func (f *fixedWindow) take(now time.Time) {
	if f.counts == nil {
		f.counts = make(map[int64]int)
	}
	f.counts[f.at(now)]++
}

// tokenBucket starts full, and fills at quota/window, in exact fractions.
type tokenBucket struct {
	quota  int
	window time.Duration
	tokens *big.Rat
	last   time.Time
}

func (b *tokenBucket) fill(now time.Time) {
	full := big.NewRat(int64(b.quota), 1)
	if b.tokens == nil {
		b.tokens, b.last = full, now
	}
	gained := big.NewRat(int64(now.Sub(b.last)), int64(b.window))
	b.tokens.Add(b.tokens, gained.Mul(gained, full))
	if b.tokens.Cmp(full) > 0 {
		b.tokens = full
	}
	b.last = now
}

func (b *tokenBucket) room(now time.Time) bool {
	b.fill(now)
	return b.tokens.Cmp(big.NewRat(1, 1)) >= 0
}

func (b *tokenBucket) take(now time.Time) {
	b.fill(now)
	b.tokens = new(big.Rat).Sub(b.tokens, big.NewRat(1, 1))
}

// under is a path or everything below it.
func under(prefix string) func(request) bool {
	return func(r request) bool { return r.path == prefix || strings.HasPrefix(r.path, prefix+"/") }
}

// model is one rule.
type model struct {
	name    string
	match   func(request) bool
	match2  string // as the document has it
	quota   int
	window  time.Duration
	shadow  bool
	final   bool
	keys    map[string]counter
	asked   map[string]int64
	refused map[string]int64
}

func TestReplayAgreesWithAnIndependentCount(t *testing.T) {
	requests := realRequests(t)
	if len(requests) != 10000 {
		t.Fatalf("%d requests, want 10000", len(requests))
	}
	algorithms := map[string]func(quota int, window time.Duration) counter{
		"sliding_log":  func(q int, w time.Duration) counter { return &slidingLog{quota: q, window: w} },
		"fixed_window": func(q int, w time.Duration) counter { return &fixedWindow{quota: q, window: w} },
		"token_bucket": func(q int, w time.Duration) counter { return &tokenBucket{quota: q, window: w} },
	}
	for algorithm, newCounter := range algorithms {
		t.Run(algorithm, func(t *testing.T) {
			models := []*model{
				{name: "login", match: func(r request) bool { return r.path == "/wp-login.php" }, match2: "/wp-login.php", quota: 1, window: time.Hour, final: true},
				{name: "blog", match: under("/blog"), match2: "/blog/**", quota: 5, window: time.Minute},
				{name: "candidate", match: under("/presentations"), match2: "/presentations/**", quota: 4, window: 10 * time.Second, shadow: true},
				{name: "everything", match: func(request) bool { return true }, match2: "/**", quota: 20, window: time.Hour},
			}
			allowed := int64(0)
			for _, r := range requests {
				var apply []*model
				for _, m := range models {
					if m.match(r) {
						apply = append(apply, m)
						if m.final {
							break
						}
					}
				}
				ok := true
				for _, m := range apply {
					if m.keys == nil {
						m.keys, m.asked, m.refused = map[string]counter{}, map[string]int64{}, map[string]int64{}
					}
					if m.keys[r.ip] == nil {
						m.keys[r.ip] = newCounter(m.quota, m.window)
					}
					m.asked[r.ip]++
					if !m.keys[r.ip].room(r.at) {
						m.refused[r.ip]++
						ok = ok && m.shadow
					}
				}
				for _, m := range apply {
					if (ok || m.shadow) && m.keys[r.ip].room(r.at) {
						m.keys[r.ip].take(r.at)
					}
				}
				if ok {
					allowed++
				}
			}
			text := ""
			for _, m := range models {
				mode := map[bool]string{false: "enforce", true: "shadow"}[m.shadow]
				text += fmt.Sprintf(`,{"name":%q,"match":%q,"key":"ip","mode":%q,"final":%t,"limit":{"quota":%d,"window":%q,"algorithm":%q}}`,
					m.name, m.match2, mode, m.final, m.quota, fmt.Sprintf("%ds", int(m.window.Seconds())), algorithm)
			}
			logs, err := opening(realLog)()
			if err != nil {
				t.Fatal(err)
			}
			report, err := replay.Run(t.Context(), logs, document(t, `{"rules":[`+text[1:]+`]}`), replay.Options{Top: 10000})
			if err != nil {
				t.Fatal(err)
			}
			if report.Requests != 10000 || report.Allowed != allowed || report.Refused != 10000-allowed {
				t.Errorf("requests %d, allowed %d, refused %d; counted %d allowed", report.Requests, report.Allowed, report.Refused, allowed)
			}
			if report.Refused == 0 {
				t.Error("nothing was refused: the test says nothing")
			}
			for _, m := range models {
				m.compare(t, find(t, report, m.name))
			}
		})
	}
}

// compare compares a rule key by key.
func (m *model) compare(t *testing.T, got *replay.RuleReport) {
	var want []replay.KeyReport
	var asked, refused, keysRefused int64
	for key, n := range m.asked {
		k := replay.KeyReport{Key: key, Asked: n}
		if m.shadow {
			k.WouldRefuse = m.refused[key]
		} else {
			k.Refused = m.refused[key]
		}
		want = append(want, k)
		asked, refused = asked+n, refused+m.refused[key]
		if m.refused[key] > 0 {
			keysRefused++
		}
	}
	slices.SortFunc(want, func(a, b replay.KeyReport) int {
		return cmp.Or(cmp.Compare(b.Refused+b.WouldRefuse, a.Refused+a.WouldRefuse), cmp.Compare(b.Asked, a.Asked), strings.Compare(a.Key, b.Key))
	})
	if !slices.Equal(got.Top, want) {
		t.Errorf("%s: the keys differ: got %d, want %d, first %v and %v", m.name, len(got.Top), len(want), got.Top[:min(3, len(got.Top))], want[:min(3, len(want))])
	}
	wantReport := [...]int64{asked, asked - refused, refused, 0, int64(len(m.asked)), keysRefused, 0}
	if m.shadow {
		wantReport = [...]int64{asked, asked, 0, refused, int64(len(m.asked)), 0, keysRefused}
	}
	gotReport := [...]int64{got.Asked, got.Allowed, got.Refused, got.WouldRefuse, got.Keys, got.KeysRefused, got.KeysWouldRefuse}
	if gotReport != wantReport {
		t.Errorf("%s: asked, allowed, refused, would refuse, keys, keys refused, keys would refuse: %v, want %v", m.name, gotReport, wantReport)
	}
}
