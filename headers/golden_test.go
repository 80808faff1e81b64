package headers_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/sf"
)

// golden is a case of testdata/headers/answers.json, which the npm packages
// read too. Times are microseconds; a field that must not be sent is absent.
type golden struct {
	Name   string
	Case   string
	Reason string
	Limits []struct {
		Policy     string
		Quota      int64
		Window     int64 `json:"window_us"`
		Burst      int64
		Unit       string
		Key        []byte
		Remaining  int64
		Reset      int64 `json:"reset_us"`
		RetryAfter int64 `json:"retry_after_us"`
		Refused    bool
	}
	Fields  map[string]string
	Problem map[string]any
}

func (g *golden) limits() []headers.Limit {
	var limits []headers.Limit
	for _, l := range g.Limits {
		limits = append(limits, headers.Limit{
			Policy: l.Policy, Quota: l.Quota, Window: microseconds(l.Window), Burst: l.Burst,
			Unit: l.Unit, Key: l.Key, Remaining: l.Remaining, Reset: microseconds(l.Reset),
			RetryAfter: microseconds(l.RetryAfter), Refused: l.Refused,
		})
	}
	return limits
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func readGolden(t *testing.T) []golden {
	t.Helper()
	raw, err := os.ReadFile("../testdata/headers/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []golden
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	return cases
}

// fields writes all fields a door can send for these limits.
func fields(limits []headers.Limit) map[string]string {
	sent := map[string]string{}
	if len(limits) == 0 {
		return sent
	}
	sent[headers.PolicyField] = string(headers.AppendPolicy(nil, limits...))
	sent[headers.RateLimitField] = string(headers.AppendRateLimit(nil, limits...))
	if wait, refused := headers.RetryAfter(limits); refused {
		if v, ok := headers.AppendRetryAfter(nil, wait); ok {
			sent[headers.RetryAfterField] = string(v)
		}
	}
	tightest := &limits[headers.Tightest(limits)]
	sent[headers.XLimitField] = string(headers.AppendXLimit(nil, tightest))
	sent[headers.XRemainingField] = string(headers.AppendXRemaining(nil, tightest))
	if v, ok := headers.AppendXReset(nil, tightest); ok {
		sent[headers.XResetField] = string(v)
	}
	return sent
}

func TestAnswersMatchTheGoldenFile(t *testing.T) {
	for _, g := range readGolden(t) {
		t.Run(g.Name, func(t *testing.T) {
			limits := g.limits()
			if got := fields(limits); !reflect.DeepEqual(got, g.Fields) {
				t.Errorf("case %s: fields\n got %v\nwant %v", g.Case, got, g.Fields)
			}
			if g.Problem == nil {
				return
			}
			p := headers.Problem{Refusal: headers.Refusal{Limits: limits}}
			if g.Reason == "temporary-reduced-capacity" {
				p.Reason = headers.ReducedCapacity
			}
			raw := headers.AppendProblem(nil, p)
			var got map[string]any
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			if !reflect.DeepEqual(got, g.Problem) {
				t.Errorf("case %s: problem\n got %s\nwant %v", g.Case, raw, g.Problem)
			}
		})
	}
}

func TestGoldenFieldsParseStrictly(t *testing.T) {
	for _, g := range readGolden(t) {
		for _, name := range []string{headers.PolicyField, headers.RateLimitField} {
			items, err := sf.ParseList(g.Fields[name])
			if err != nil {
				t.Errorf("%s: %s: %v", g.Name, name, err)
			}
			if len(items) != len(g.Limits) {
				t.Errorf("%s: %s has %d items for %d limits", g.Name, name, len(items), len(g.Limits))
			}
		}
	}
}
