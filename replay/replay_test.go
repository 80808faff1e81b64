package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/accesslog"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/rules"
)

func TestReportIsTheObjectThatScriptsRead(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"all","key":"ip","limit":{"quota":1,"window":"1m","algorithm":"sliding_log"}}]}`)
	r := run(t, doc, line(0, "203.0.113.9", "GET /")+"junk\n"+line(time.Second, "203.0.113.9", "GET /"), replay.Options{})
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"lines":3,"requests":2,"skipped":1,"from":"2026-01-05T00:00:00Z","to":"2026-01-05T00:00:01Z","allowed":1,"refused":1,` +
		`"rules":[{"name":"all","mode":"enforce","asked":2,"allowed":1,"refused":1,"keys":1,"keys_refused":1,` +
		`"top":[{"key":"203.0.113.9","asked":2,"refused":1}],"would_refuse":0,`
	if !strings.HasPrefix(string(got), want) {
		t.Errorf("got  %s\nwant %s…", got, want)
	}
}

func TestRuleWithoutRequestsHasAnEmptyTop(t *testing.T) {
	r := run(t, document(t, `{"rules":[{"name":"never","match":"/never","key":"ip","limit":"1/s"}]}`), line(0, "203.0.113.9", "GET /"), replay.Options{})
	if got, _ := json.Marshal(r.Rules[0].Top); string(got) != "[]" {
		t.Errorf("top is %s, want []", got)
	}
}

func TestShadowRefusesNothing(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"new","key":"ip","mode":"shadow","limit":{"quota":1,"window":"1m","algorithm":"sliding_log"}}]}`)
	r := run(t, doc, strings.Repeat(line(0, "203.0.113.9", "GET /"), 5), replay.Options{})
	if x := r.Rules[0]; r.Allowed != 5 || x.Refused != 0 || x.Allowed != 5 || x.WouldRefuse != 4 || x.KeysRefused != 0 || x.KeysWouldRefuse != 1 {
		t.Errorf("%+v", x)
	}
	if got := r.Rules[0].Top[0]; got.Refused != 0 || got.WouldRefuse != 4 {
		t.Errorf("top %+v", got)
	}
}

func TestSeveralLimitsOfARuleAreAskedOnce(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"two","key":"ip","limits":["3/s","5/h"]}]}`)
	text := strings.Repeat(line(0, "203.0.113.9", "GET /"), 4) + strings.Repeat(line(time.Minute, "203.0.113.9", "GET /"), 4)
	r := run(t, doc, text, replay.Options{})
	// Three at once by the first limit, then two more of five an hour.
	if x := r.Rules[0]; len(r.Rules) != 1 || x.Asked != 8 || x.Allowed != 5 || x.Refused != 3 || x.Keys != 1 {
		t.Errorf("%+v", r.Rules)
	}
}

func TestExemptionCountsWhatItExempts(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"health","match":"/health","limit":"unlimited","final":true},{"name":"all","key":"ip","limit":"1/h"}]}`)
	text := strings.Repeat(line(0, "203.0.113.9", "GET /health"), 3) + strings.Repeat(line(0, "203.0.113.9", "GET /"), 2)
	r := run(t, doc, text, replay.Options{})
	if x := r.Rules[0]; x.Asked != 3 || x.Allowed != 3 || x.Refused != 0 {
		t.Errorf("exemption: %+v", x)
	}
	if x := r.Rules[1]; x.Asked != 2 || x.Refused != 1 {
		t.Errorf("rule below: %+v", x)
	}
}

func TestRuleThatIsOffIsAskedNothing(t *testing.T) {
	r := run(t, document(t, `{"rules":[{"name":"off","key":"ip","mode":"off","limit":"0/s"}]}`), line(0, "203.0.113.9", "GET /"), replay.Options{})
	if x := r.Rules[0]; x.Asked != 0 || x.Mode != "off" || r.Allowed != 1 {
		t.Errorf("%+v", r)
	}
}

// TestTimeIsThatOfTheLog: lines out of order are put in order, and the clock of
// the machine has no say.
func TestTimeIsThatOfTheLog(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"all","key":"ip","limit":{"quota":1,"window":"10s","algorithm":"sliding_log"}}]}`)
	text := line(20*time.Second, "203.0.113.9", "GET /") + line(9*time.Second, "203.0.113.9", "GET /") + line(0, "203.0.113.9", "GET /") + line(10*time.Second, "203.0.113.9", "GET /")
	r := run(t, doc, text, replay.Options{})
	if r.Refused != 1 || !r.From.Equal(start) || !r.To.Equal(start.Add(20*time.Second)) {
		t.Errorf("refused %d, from %v to %v; want the one at 9s refused", r.Refused, r.From, r.To)
	}
}

func TestKeysAreShownAsPeopleKnowThem(t *testing.T) {
	const log = `{"time":"2026-01-05T00:00:00Z","ip":"203.0.113.9","method":"GET","host":"API.example.com:443","path":"/users/7?id=a%20b","status":200,"headers":{"X-User":"Alice, A.","Cookie":"x=1; sid=s7"}}` + "\n"
	for key, want := range map[string]string{
		`"ip"`:                           "203.0.113.9",
		`"global"`:                       "global",
		`"method"`:                       "GET",
		`"host"`:                         "api.example.com",
		`"path"`:                         "/users/7",
		`"path:id"`:                      "7",
		`"query:id"`:                     "a b",
		`"cookie:sid"`:                   "s7",
		`"header:x-user"`:                "Alice, A.",
		`"lower(header:X-User)"`:         "alice, a.",
		`["ip","header:X-User"]`:         `ip=203.0.113.9, header:X-User="Alice, A."`,
		`"header:X-Missing"`:             "no key: 203.0.113.9",
		`["header:X-Missing","path:id"]`: "no key: 203.0.113.9",
		`"rule"`:                         "r",
	} {
		t.Run(key, func(t *testing.T) {
			doc := document(t, `{"rules":[{"name":"r","match":"/users/{id}","key":`+key+`,"limit":"1/s"}]}`)
			if r := run(t, doc, log, replay.Options{}); len(r.Rules[0].Top) != 1 || r.Rules[0].Top[0].Key != want {
				t.Errorf("got %+v, want %s", r.Rules[0].Top, want)
			}
		})
	}
}

func TestMissingKeyIsNotAKeyOfThatName(t *testing.T) {
	const form = `{"time":"2026-01-05T00:00:00Z","ip":"203.0.113.9","method":"GET","path":"/","status":200,"headers":{%s}}` + "\n"
	doc := document(t, `{"rules":[{"name":"r","key":"header:X-User","limit":"1/h"}]}`)
	r := run(t, doc, fmt.Sprintf(form, "")+fmt.Sprintf(form, `"X-User":"203.0.113.9"`), replay.Options{})
	if x := r.Rules[0]; x.Keys != 2 || x.Refused != 0 {
		t.Errorf("keys %d, refused %d; want two keys, each with its own counter", x.Keys, x.Refused)
	}
}

func TestUnknownKeyIsAnErrorOfTheDocument(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"r","key":"jwt:sub","limit":"1/h"}]}`)
	_, err := replay.Run(t.Context(), reading(t, ""), doc, replay.Options{})
	var problems rules.Problems
	if !errors.As(err, &problems) || !strings.Contains(err.Error(), "jwt:sub") {
		t.Errorf("error %v", err)
	}
}

func TestTrustedProxyIsLookedThrough(t *testing.T) {
	const log = `{"time":"2026-01-05T00:00:00Z","ip":"10.0.0.7","method":"GET","path":"/","status":200,"headers":{"X-Forwarded-For":"192.0.2.1, 203.0.113.9"}}` + "\n"
	doc := document(t, `{"rules":[{"name":"r","key":"ip","limit":"1/h"}]}`)
	clients, err := clientip.New(clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]replay.Options{"203.0.113.9": {Clients: clients}, "10.0.0.7": {}} {
		if r := run(t, doc, log, o); r.Rules[0].Top[0].Key != want {
			t.Errorf("client %s, want %s", r.Rules[0].Top[0].Key, want)
		}
	}
}

func TestPathsMatchInNormalForm(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"login","match":"/login","key":"ip","limit":"9/h"}]}`)
	text := line(0, "203.0.113.9", "GET //x/../%6Cogin") + line(0, "203.0.113.9", "GET /log%2Fin") + line(0, "203.0.113.9", "GET /login?a=/")
	r := run(t, doc, text, replay.Options{})
	if r.Rules[0].Asked != 2 || r.BadPaths != 1 {
		t.Errorf("asked %d, bad paths %d; want 2 and 1", r.Rules[0].Asked, r.BadPaths)
	}
}

// TestEveryLineIsAccountedFor: what is not HTTP is no request, broken lines stop
// nothing, and the sums are right.
func TestEveryLineIsAccountedFor(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"all","key":"ip","limit":"9/h"}]}`)
	text := line(0, "203.0.113.9", "GET /") + "\n" + "what is this\n" +
		"203.0.113.9 - - [05/Jan/2026:00:00:00 +0000] \"\\x16\\x03\\x01\" 400 5 \"-\" \"-\"\n"
	r := run(t, doc, text, replay.Options{})
	if r.Lines != 4 || r.Requests != 1 || r.Skipped != 2 || r.Empty != 1 || r.Rules[0].Asked != 1 || r.SkippedBy["not an HTTP request"] != 1 || len(r.Examples) != 1 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b, replay.TextOptions{}); err != nil || !strings.Contains(b.String(), `"what is this"`) || !strings.Contains(b.String(), "lines skipped, not an HTTP request: 1") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// TestClientsCannotForgeLines holds case S13: what a client sends is quoted where
// it is shown.
func TestClientsCannotForgeLines(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"agents","key":"header:User-Agent","limit":"1/h"}]}`)
	evil := `curl\x0aall  enforce  0 refused\x1b[2J\x00<script>alert(1)</script>` + "\xff\u202e"
	text := "203.0.113.9 - - [05/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"" + evil + "\"\n"
	r := run(t, doc, text, replay.Options{})
	var table, page bytes.Buffer
	if err := errors.Join(r.WriteText(&table, replay.TextOptions{}), r.WriteHTML(&page, "<i>title")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(table.String(), "\nall  enforce") || strings.ContainsAny(table.String(), "\x00\x1b\u202e") || !strings.Contains(table.String(), `curl\nall`) {
		t.Errorf("the table has:\n%s", &table)
	}
	if strings.Contains(page.String(), "<script") || strings.Contains(page.String(), "<i>title") || strings.ContainsAny(page.String(), "\x00\x1b\u202e") {
		t.Error("the page has what a client sent as it came")
	}
	out, err := json.Marshal(r)
	if err != nil || !json.Valid(out) {
		t.Error(err)
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	r := realReport(t)
	var b bytes.Buffer
	if err := r.WriteHTML(&b, "access.log"); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, forbidden := range []string{"<script", "<link", "@import", "url(", "src=", "ZgotmplZ", "%!"} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("id %q is there twice", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`aria-labelledby="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		for id := range strings.FieldsSeq(m[1]) {
			if !ids[id] {
				t.Errorf("a chart is labelled by %q, which is not there", id)
			}
		}
	}
	if n := strings.Count(page, `role="img"`); n != 2*4 {
		t.Errorf("%d charts, want one over time and three of peaks for each of 2 rules", n)
	}
	if !strings.Contains(page, `class="limit"`) {
		t.Error("no limit is drawn in")
	}
}

// realReport is the real log under two rules.
func realReport(t testing.TB) *replay.Report {
	logs, err := opening(realLog)()
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Run(t.Context(), logs, document(t, `{"rules":[
		{"name":"blog","match":"/blog/**","key":"ip","limit":{"quota":5,"window":"1m","algorithm":"sliding_log"}},
		{"name":"all","key":"ip","mode":"shadow","limits":["10/s","100/h"]}]}`), replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSeriesLosesNothing: over time there is what there is in sum, in at most 500
// steps.
func TestSeriesLosesNothing(t *testing.T) {
	for _, r := range realReport(t).Rules {
		s := r.Series
		sum := func(counts []int64) (n int64) {
			for _, c := range counts {
				n += c
			}
			return n
		}
		if len(s.Allowed) > 500 || len(s.Allowed) != len(s.Refused) || s.From.Unix()%s.Step != 0 {
			t.Errorf("%s: %d and %d steps of %ds from %v", r.Name, len(s.Allowed), len(s.Refused), s.Step, s.From)
		}
		if sum(s.Allowed) != r.Allowed || sum(s.Refused) != r.Refused || sum(s.WouldRefuse) != r.WouldRefuse {
			t.Errorf("%s: the sums differ", r.Name)
		}
	}
}

func TestInterruptedRunTellsWhatItCounted(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"all","key":"ip","limit":"9/h"}]}`)
	ctx, cancel := context.WithCancel(t.Context())
	logs := &interrupting{Records: reading(t, strings.Repeat(line(0, "203.0.113.9", "GET /"), 5000)), after: 3000, cancel: cancel}
	r, err := replay.Run(ctx, logs, doc, replay.Options{})
	if !errors.Is(err, context.Canceled) || r == nil || r.Requests < 2000 || r.Requests > 4100 {
		t.Errorf("%v, %+v", err, r)
	}
}

// interrupting is somebody who presses Ctrl-C after some records.
type interrupting struct {
	replay.Records
	after  int
	cancel func()
}

func (i *interrupting) Next() (*accesslog.Record, error) {
	if i.after--; i.after == 0 {
		i.cancel()
	}
	return i.Records.Next()
}

// TestManyKeysStayWithinBounds: with more keys than fit, the report says what it is
// off by, and is.
func TestManyKeysStayWithinBounds(t *testing.T) {
	const keys, hot = 5000, 400
	var b strings.Builder
	for i := range keys {
		b.WriteString(line(time.Duration(i)*time.Millisecond, fmt.Sprintf("10.0.%d.%d", i/250, i%250), "GET /"))
		if i%(keys/hot) == 0 {
			b.WriteString(line(time.Duration(i)*time.Millisecond, "203.0.113.9", "GET /"))
		}
	}
	doc := document(t, `{"rules":[{"name":"all","key":"ip","limit":"1/h"}]}`)
	r := run(t, doc, b.String(), replay.Options{MaxKeys: 200})
	x := r.Rules[0]
	asked := int64((keys + keys/hot - 1) / (keys / hot))
	if x.TopError == 0 || x.Asked != keys+asked {
		t.Fatalf("error %d, asked %d", x.TopError, x.Asked)
	}
	if top := x.Top[0]; top.Key != "203.0.113.9" || top.Asked > asked || top.Asked+x.TopError < asked {
		t.Errorf("top %+v, want 203.0.113.9 with %d, less at most %d", top, asked, x.TopError)
	}
	if x.Keys < keys*95/100 || x.Keys > keys*105/100 {
		t.Errorf("about %d keys, want about %d", x.Keys, keys+1)
	}
	exact := run(t, doc, b.String(), replay.Options{}).Rules[0]
	if exact.TopError != 0 || exact.Keys != keys+1 || exact.KeysRefused != 1 || exact.Refused != asked-1 {
		t.Errorf("with room for all: %+v", exact)
	}
}

// TestDroppedKeyIsNotForgottenInTheError: a key that was dropped and comes back is
// short by what it had, which is within the error.
func TestDroppedKeyIsNotForgottenInTheError(t *testing.T) {
	three := strings.Repeat(line(0, "203.0.113.9", "GET /"), 3)
	var flood strings.Builder
	for i := range 1000 {
		flood.WriteString(strings.Repeat(line(0, fmt.Sprintf("10.0.%d.%d", i/250, i%250), "GET /"), 4))
	}
	doc := document(t, `{"rules":[{"name":"all","key":"ip","limit":"1/h"}]}`)
	x := run(t, doc, three+flood.String()+three, replay.Options{MaxKeys: 100, Top: 100}).Rules[0]
	for _, k := range x.Top {
		if k.Key == "203.0.113.9" {
			if k.Asked != 3 || k.Asked+x.TopError < 6 {
				t.Errorf("asked %d with an error of %d; it asked 6 times", k.Asked, x.TopError)
			}
			return
		}
	}
	t.Error("a key that asked just now is not among those kept")
}

func TestTopIsTheMostRefused(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"all","key":"ip","limit":{"quota":2,"window":"1m","algorithm":"fixed_window"}}]}`)
	var text string
	for i := range 5 {
		text += line(time.Duration(i)*time.Minute, "203.0.113.1", "GET /") // never refused
	}
	text += strings.Repeat(line(5*time.Minute, "203.0.113.2", "GET /"), 4) + strings.Repeat(line(5*time.Minute, "203.0.113.3", "GET /"), 3)
	var got []string
	for _, k := range run(t, doc, text, replay.Options{Top: 2}).Rules[0].Top {
		got = append(got, k.Key)
	}
	if !slices.Equal(got, []string{"203.0.113.2", "203.0.113.3"}) {
		t.Errorf("top %v", got)
	}
}

func TestProgressIsReported(t *testing.T) {
	calls := 0
	doc := document(t, `{"rules":[{"name":"all","key":"ip","limit":"9/h"}]}`)
	run(t, doc, strings.Repeat(line(0, "203.0.113.9", "GET /"), 70_000), replay.Options{Progress: func(s accesslog.Stats) {
		if calls++; s.Lines == 0 {
			t.Error("progress without lines")
		}
	}})
	if calls != 1 {
		t.Errorf("%d calls in 70,000 records, want 1", calls)
	}
}

func TestFailingLogEndsTheReport(t *testing.T) {
	doc := document(t, `{"rules":[{"name":"all","key":"ip","limit":"9/h"}]}`)
	logs, err := accesslog.Open([]string{"-"}, io.MultiReader(strings.NewReader(line(0, "203.0.113.9", "GET /")), broken{}), accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.Run(t.Context(), logs, doc, replay.Options{})
	if !errors.Is(err, errBroken) || r == nil {
		t.Errorf("%v, %+v", err, r)
	}
}

var errBroken = errors.New("the disk is gone")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }
