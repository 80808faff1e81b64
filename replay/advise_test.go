package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/accesslog"
	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/rules"
)

// TestAdviceHoldsWhenReplayed: the share of keys that the advised rules leave alone
// is what was asked for, route by route, and no limit is beyond all reason.
func TestAdviceHoldsWhenReplayed(t *testing.T) {
	for _, share := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
		a, err := replay.Advise(t.Context(), opening(realLog), replay.AdviseOptions{Share: share})
		if err != nil {
			t.Fatal(err)
		}
		text, err := a.Document.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		logs, err := opening(realLog)()
		if err != nil {
			t.Fatal(err)
		}
		r, err := replay.Run(t.Context(), logs, document(t, string(text)), replay.Options{})
		if err != nil {
			t.Fatal(err)
		}
		asked, wouldRefuse := int64(0), int64(0)
		for i, rule := range r.Rules {
			if untouched := 1 - float64(rule.KeysWouldRefuse)/float64(rule.Keys); untouched < share {
				t.Errorf("share %v: %s leaves %.4f untouched", share, rule.Name, untouched)
			}
			if rule.Mode != "shadow" || rule.KeysWouldRefuse != a.Routes[i].KeysWouldRefuse {
				t.Errorf("%s: mode %s, %d keys touched, the advice said %d", rule.Name, rule.Mode, rule.KeysWouldRefuse, a.Routes[i].KeysWouldRefuse)
			}
			asked, wouldRefuse = asked+rule.Asked, wouldRefuse+rule.WouldRefuse
		}
		if asked != r.Requests {
			t.Errorf("share %v: the rules were asked %d times in %d requests; each request belongs to one route", share, asked, r.Requests)
		}
		if share == 0.5 && wouldRefuse == 0 {
			t.Error("half the keys may be touched, and nobody is")
		}
	}
}

// shop is a log of a small shop: ten customers look at many items and sign in.
func shop() string {
	var b strings.Builder
	for i := range 1000 {
		at := time.Duration(i) * time.Second
		ip := fmt.Sprintf("203.0.113.%d", i%10)
		b.WriteString(line(at, ip, fmt.Sprintf("GET /api/items/%d", i*7)))
		b.WriteString(line(at, ip, fmt.Sprintf("GET /api/orders/9f86d081-884c-7d65-%04d/lines", i)))
		if i%200 == 0 {
			b.WriteString(line(at, ip, "POST /api/auth/login"))
		}
	}
	return b.String()
}

func openingText(text string) func() (replay.Records, error) {
	return func() (replay.Records, error) {
		return accesslog.Open([]string{"-"}, strings.NewReader(text), accesslog.Options{})
	}
}

func TestRoutesAreGroupsThatPeopleWouldName(t *testing.T) {
	a, err := replay.Advise(t.Context(), openingText(shop()), replay.AdviseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]replay.RouteAdvice{}
	for _, r := range a.Routes {
		got[r.Match] = r
	}
	for _, want := range []string{"GET /api/items/{id}", "GET /api/orders/{id}/**", "POST /api/auth/login", ""} {
		if _, ok := got[want]; !ok {
			t.Errorf("no rule for %q in %v", want, keysOf(got))
		}
	}
	if len(a.Routes) != 4 || a.Routes[3].Name != "everything-else" || a.Routes[3].Asked != 0 {
		t.Errorf("%d routes, the last %s asked %d", len(a.Routes), a.Routes[len(a.Routes)-1].Name, a.Routes[len(a.Routes)-1].Asked)
	}
	// Rare as it is, a login has its rule, and a word with it.
	if r := got["POST /api/auth/login"]; !r.Login || r.Asked != 5 {
		t.Errorf("login: %+v", r)
	}
	var b bytes.Buffer
	if err := a.WriteText(&b, replay.TextOptions{}); err != nil || !strings.Contains(b.String(), "People seem to sign in here") {
		t.Errorf("%v\n%s", err, &b)
	}
}

func keysOf(m map[string]replay.RouteAdvice) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

func TestAdviceIsAFileWithItsReasons(t *testing.T) {
	a, err := replay.Advise(t.Context(), openingText(shop()), replay.AdviseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file := string(a.AppendYAML(nil))
	for _, want := range []string{"# Advised by weir from 2,005 requests", "mode: shadow", "limit: ", "p99.9", "would refuse 0 of 1,000 requests and touch 0 of 10 keys"} {
		if !strings.Contains(file, want) {
			t.Errorf("the file lacks %q:\n%s", want, file)
		}
	}
}

// TestFractionsOfSecondsDoNotBreakThePromise: peaks are counted in whole seconds,
// so a burst over the edge of two is more than they show. The replay finds out.
func TestFractionsOfSecondsDoNotBreakThePromise(t *testing.T) {
	var b strings.Builder
	for second := range 40 {
		for i := range 3000 {
			// 1,500 just before the edge of a second and 1,500 just after, every fourth.
			at := start.Add(time.Duration(4*second)*time.Second + 998500*time.Microsecond + time.Duration(i)*time.Microsecond)
			fmt.Fprintf(&b, `{"time":%q,"ip":"203.0.113.9","method":"GET","path":"/","status":200}`+"\n", at.Format(time.RFC3339Nano))
		}
	}
	a, err := replay.Advise(t.Context(), openingText(b.String()), replay.AdviseOptions{Share: 1, Headroom: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range a.Routes {
		if r.KeysWouldRefuse > 0 {
			t.Errorf("%s %s touches %d keys", r.Name, r.Limit, r.KeysWouldRefuse)
		}
	}
}

func TestEmptyLogIsNoGroundForAdvice(t *testing.T) {
	for _, text := range []string{"", "junk\n", "203.0.113.9 - - [05/Jan/2026:00:00:00 +0000] \"-\" 400 5\n"} {
		if _, err := replay.Advise(t.Context(), openingText(text), replay.AdviseOptions{}); !errors.Is(err, replay.ErrNoRequests) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func TestAdviseOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]replay.AdviseOptions{
		"share":    {Share: 99.9},
		"headroom": {Headroom: 0.5},
		"routes":   {Routes: -1},
		"key":      {Key: rules.Key{"shoe-size"}},
	} {
		if _, err := replay.Advise(t.Context(), openingText(shop()), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// FuzzAdviceIsAValidDocument: whatever clients ask for, the rules advised are rules
// that every door can read.
func FuzzAdviceIsAValidDocument(f *testing.F) {
	f.Add("GET", "/blog/{id}/**")
	f.Add("POST", "/a/1/2/3/login")
	f.Add("PROPFIND", "//x/../%7Bid%7D/..;/")
	f.Add("get", "/%2F/~{$}/*")
	f.Add("GET", "/$/...//-/")
	f.Fuzz(func(t *testing.T, method, path string) {
		if strings.ContainsAny(method+path, "\n\r\" \\") {
			t.Skip()
		}
		text := strings.Repeat(line(0, "203.0.113.9", method+" "+path), 3) + line(0, "203.0.113.9", "GET /1/2"+path)
		a, err := replay.Advise(t.Context(), openingText(text), replay.AdviseOptions{})
		if errors.Is(err, replay.ErrNoRequests) {
			return
		}
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		out, err := a.Document.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		document(t, string(out))
	})
}
