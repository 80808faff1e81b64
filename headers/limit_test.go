package headers_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/internal/sf"
)

const never = -1 * time.Nanosecond

// randomWait aims at whole seconds and a nanosecond beside them, where rounding
// goes wrong.
func randomWait(r *rand.Rand) time.Duration {
	whole := time.Duration(r.Int64N(400_000)) * time.Second
	switch r.IntN(4) {
	case 0:
		return whole
	case 1:
		return whole + 1
	case 2:
		return max(whole-1, 0)
	default:
		return time.Duration(r.Int64N(math.MaxInt64))
	}
}

func seededRand(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestToldWaitIsNeverShorterThanTheRealOneNorASecondLonger(t *testing.T) {
	r := seededRand(t)
	form := regexp.MustCompile(`^[1-9][0-9]*$`) // cases B32, B49: no date, fraction or zero
	waits := []time.Duration{0, 1, time.Second - 1, time.Second, time.Second + 1, math.MaxInt64}
	for range 20_000 {
		waits = append(waits, randomWait(r))
	}
	for _, wait := range waits {
		value, ok := headers.AppendRetryAfter(nil, wait)
		if !ok || !form.Match(value) {
			t.Fatalf("wait %v: Retry-After %q, %v", wait, value, ok)
		}
		seconds, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		// In seconds and nanoseconds, as the longest wait plus a second overflows.
		real, frac := int64(wait/time.Second), wait%time.Second
		if seconds < real || seconds == real && frac > 0 {
			t.Fatalf("wait %v: told only %d s", wait, seconds)
		}
		if seconds > max(real+1, 1) || seconds == real+1 && frac == 0 && wait > 0 {
			t.Fatalf("wait %v: told %d s, a second too long", wait, seconds)
		}
	}
}

func TestEndlessWaitHasNoRetryAfter(t *testing.T) {
	for _, wait := range []time.Duration{-1, -time.Second, math.MinInt64} {
		if got, ok := headers.AppendRetryAfter([]byte("x"), wait); ok || string(got) != "x" {
			t.Errorf("wait %d: %q, %v", wait, got, ok)
		}
	}
}

func TestFieldsOfARefusalNeverDisagree(t *testing.T) {
	r := seededRand(t)
	for range 5_000 {
		l := headers.Limit{Policy: "p", Quota: 5, Window: time.Minute, Refused: true,
			Reset: randomWait(r), RetryAfter: randomWait(r)}
		retry, _ := headers.AppendRetryAfter(nil, l.RetryAfter)
		reset, ok := headers.AppendXReset(nil, &l)
		if !ok || string(reset) != string(retry) {
			t.Fatalf("%+v: Retry-After %s, X-RateLimit-Reset %s", l, retry, reset)
		}
		items, err := sf.ParseList(string(headers.AppendRateLimit(nil, l)))
		if err != nil {
			t.Fatal(err)
		}
		if got := strconv.FormatInt(items[0].Params["t"].(int64), 10); got != string(retry) {
			t.Fatalf("%+v: Retry-After %s, t=%s", l, retry, got)
		}
	}
}

func TestNoLimitsHaveNoFields(t *testing.T) {
	if got := headers.AppendPolicy(nil); len(got) != 0 {
		t.Errorf("policy %q", got)
	}
	if got := headers.AppendRateLimit(nil); len(got) != 0 {
		t.Errorf("rate limit %q", got)
	}
	if got := headers.Tightest(nil); got != -1 {
		t.Errorf("tightest %d", got)
	}
	if wait, refused := headers.RetryAfter(nil); refused || wait != 0 {
		t.Errorf("retry after %v, %v", wait, refused)
	}
}

func TestAllowedLimitsHaveNoRetryAfter(t *testing.T) {
	limits := []headers.Limit{{RetryAfter: time.Hour}, {RetryAfter: never}}
	if wait, refused := headers.RetryAfter(limits); refused {
		t.Errorf("retry after %v though nothing was refused", wait)
	}
}

// ladder is sorted from the tightest to the loosest.
func ladder() []headers.Limit {
	refused := func(remaining int64, retry time.Duration) headers.Limit {
		return headers.Limit{Refused: true, Remaining: remaining, RetryAfter: retry}
	}
	allowed := func(remaining int64, reset time.Duration) headers.Limit {
		// A long RetryAfter must not count where nothing was refused.
		return headers.Limit{Remaining: remaining, Reset: reset, RetryAfter: time.Hour}
	}
	return []headers.Limit{
		refused(0, never),
		refused(0, 20*time.Second),
		refused(0, 3*time.Second),
		refused(2, never),
		refused(2, time.Hour),
		allowed(0, time.Minute),
		allowed(0, time.Second),
		allowed(0, 0),
		allowed(0, never),
		allowed(1, time.Hour),
		allowed(100, time.Hour),
		allowed(100, 0),
	}
}

func TestTightestIsATotalOrder(t *testing.T) {
	steps := ladder()
	for i := range steps {
		for j := range steps {
			want := 0
			if j < i {
				want = 1
			}
			if got := headers.Tightest([]headers.Limit{steps[i], steps[j]}); got != want {
				t.Errorf("of steps %d and %d the tightest is index %d, want %d", i, j, got, want)
			}
		}
	}
	r := seededRand(t)
	for range 1_000 {
		shuffled := slices.Clone(steps[r.IntN(len(steps)):])
		want := shuffled[0]
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := shuffled[headers.Tightest(shuffled)]; !reflect.DeepEqual(got, want) {
			t.Fatalf("tightest %+v, want %+v", got, want)
		}
	}
}

func TestTightestOfEqualsIsTheFirst(t *testing.T) {
	l := headers.Limit{Policy: "a", Remaining: -3, Reset: -7}
	m := headers.Limit{Policy: "b", Remaining: 0, Reset: -1}
	if got := headers.Tightest([]headers.Limit{l, m, l}); got != 0 {
		t.Errorf("tightest %d", got)
	}
}
