package weirrueidis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redistest"
	"github.com/weirhq/weir/weirredis"
	"github.com/weirhq/weir/weirredis/clienttest"
	"github.com/weirhq/weir/weirtest"
)

// The cases of docs/cases.md about the keys of Redis: their names and their lives.

// runs runs a script on a store.
func runs(t testing.TB, s weir.Store, clock *weirtest.Clock, text string) {
	t.Helper()
	script, err := weirtest.Parse("case", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := weirtest.Run(context.Background(), script, clock, weirtest.OnStore(s)); err != nil {
		t.Error(err)
	}
}

// lifetimes are the least and the greatest of all keys in milliseconds, looked at in one
// step of Redis; -1 is a key that lives for ever. There may be none.
func lifetimes(t testing.TB, s *redistest.Server) (least, greatest int64, keys int) {
	t.Helper()
	text := s.Must("EVAL", `local lo, hi, n = 0, 0, 0
		for _, k in ipairs(redis.call('KEYS', '*')) do
			local p = redis.call('PTTL', k)
			if p ~= -2 then
				if n == 0 or p < lo then lo = p end
				if n == 0 or p > hi then hi = p end
				n = n + 1
			end
		end
		return lo .. ' ' .. hi .. ' ' .. n`, "0")
	if _, err := fmt.Sscan(text, &least, &greatest, &keys); err != nil {
		t.Fatal(err)
	}
	return least, greatest, keys
}

// life is how long a full key of a limit matters at most.
func life(l weir.Limit) time.Duration {
	switch l.Algorithm {
	case weir.SlidingWindow:
		return 2 * l.Window // the previous window counts
	case weir.TokenBucket, weir.LeakyQueue:
		return time.Duration(l.Capacity()) * l.Window / time.Duration(l.Quota)
	}
	return l.Window
}

// slack is how much longer than it matters a key may live: it is rounded up to the
// millisecond, and lives a minute more if the clocks of nodes decide.
func slack(nodesDecide bool) int64 {
	if nodesDecide {
		return 60_000 + 1
	}
	return 1
}

// Cases B17 and S47: a limit that renews itself in less than a second is kept.
func TestFastLimitsAreStored(t *testing.T) {
	s := redistest.Single(t)
	c := open(t, at(s))
	t.Cleanup(c.Close)
	for name, text := range map[string]string{
		"four a second": `policy fast 4 per 1s burst 1
			at 0s    take alice  ok
			at 0.1s  take alice  refuse
			at 0.25s take alice  ok
			at 0.3s  take alice  refuse retry 0.2s`,
		"three a second": `policy fast 3 per 1s burst 1
			at 0s        take alice  ok
			at 0.333333s take alice  refuse retry 1us
			at 0.333334s take alice  ok`,
		"ten a second": `policy fast 10 per 1s burst 5
			at 0s   take alice 6 times  5 ok 1 refuse
			at 0.1s take alice          ok`,
	} {
		t.Run(name, func(t *testing.T) {
			clock := new(weirtest.Clock)
			runs(t, weirredis.New(c, weirredis.Options{Prefix: name, Clock: clock, Timeout: time.Minute}), clock, text)
		})
	}
	// By Redis' own clock a key may be gone before a slow machine looks at it; then the
	// next is looked at. One that is there has a life of its own length, rounded up.
	store := weirredis.New(c, weirredis.Options{Timeout: time.Minute})
	for _, l := range []weir.Limit{
		{Quota: 4, Window: time.Second, Burst: 1},
		{Quota: 3, Window: time.Second, Burst: 1},
		{Quota: 10, Window: time.Second, Burst: 5},
		{Quota: 10, Window: 100 * time.Millisecond, Burst: 5, MaxWait: time.Second},
	} {
		p := policy(t, "fast", l)
		n := 0
		redistest.Until(t, "a key is seen while it lives", func() bool {
			n++
			s.Must("FLUSHALL")
			v := take(t, store, p, strconv.Itoa(n), 1)
			if !v.OK {
				t.Fatalf("%+v: the first request is refused: %+v", l, v)
			}
			key := s.Must("KEYS", "*")
			if key == "" {
				return false
			}
			end, err := strconv.ParseInt(s.Must("PEXPIRETIME", key), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if end == -2 {
				return false
			}
			if end != (v.At+v.Reset+999)/1000 || end*1000-v.At < 1000 {
				t.Errorf("%+v: charged at %d and held for %d us, the key ends at %d ms", l, v.At, v.Reset, end)
			}
			return true
		})
	}
}

// Case B19 (a): a first charge of many units begins a life like any other.
func TestAFirstChargeOfManyUnitsHasALife(t *testing.T) {
	s := redistest.Single(t)
	for _, l := range everyAlgorithm(100, time.Hour) {
		for _, clock := range []weir.Clock{nil, new(weirtest.Clock)} {
			name := fmt.Sprint(l.Algorithm, " nodes decide ", clock != nil)
			store := node(t, at(s), weirredis.Options{Clock: clock})
			// At the very end of a window the key may be gone again.
			redistest.Until(t, name+": the key is seen", func() bool {
				s.Must("FLUSHALL")
				take(t, store, policy(t, "each", l), "alice", 33)
				least, greatest, n := lifetimes(t, s)
				if n == 0 {
					return false
				}
				if n != 1 || least < 0 || greatest > life(l).Milliseconds()+slack(clock != nil) {
					t.Errorf("%s: %d keys live for %d to %d ms", name, n, least, greatest)
				}
				return true
			})
		}
	}
}

// Case B19 (b): whatever happens to keys, and while they end, none lives for ever.
func TestEveryKeyHasALifetime(t *testing.T) {
	const seed = 19
	rng := rand.New(rand.NewPCG(seed, seed))
	s := redistest.Single(t)
	var policies []*weir.Policy
	most := int64(0)
	for _, window := range []time.Duration{7 * time.Millisecond, 150 * time.Millisecond} {
		for _, l := range everyAlgorithm(5, window) {
			if l.Algorithm == weir.SlidingSlices {
				l.Slices = 5
			}
			policies = append(policies, policy(t, fmt.Sprint(l.Algorithm, "-", window), l))
			most = max(most, life(l).Milliseconds())
		}
	}
	store := node(t, at(s), weirredis.Options{})
	out := make([]weir.Verdict, 2)
	seen := 0
	for i := range 5000 {
		p, q := rng.IntN(len(policies)), rng.IntN(len(policies)-1)
		if q >= p {
			q++
		}
		key := []byte(strconv.Itoa(rng.IntN(20)))
		asks := []weir.Ask{{Policy: policies[p], Key: key, Cost: rng.Int64N(4)}, {Policy: policies[q], Key: key, Cost: 1}}
		what, err, overdrawn := "", error(nil), false
		switch n := rng.IntN(20); {
		case n == 0:
			what, err = "reset", store.Reset(t.Context(), asks)
		case n == 1: // what is overdrawn may live for longer than what is full
			asks[0].Cost, overdrawn = 1+rng.Int64N(9), true
			what, err = "charge", store.Adjust(t.Context(), asks)
		case n == 2:
			asks[0].Cost, asks[0].At, asks[1].Cost = -rng.Int64N(5), time.Now().UnixMicro(), -1
			what, err = "refund", store.Adjust(t.Context(), asks)
		case n < 5:
			what = "peek"
			_, err = store.Peek(t.Context(), asks, out)
		default:
			what = "take"
			_, err = store.Take(t.Context(), asks[:1+n%2], out)
		}
		if err != nil {
			t.Fatal(err)
		}
		least, greatest, n := lifetimes(t, s)
		seen += n
		if n > 0 && (least < 0 || greatest > most+slack(false) && !overdrawn) {
			t.Fatalf("after call %d, a %s of %+v: %d keys live for %d to %d ms; seed %d", i, what, asks, n, least, greatest, seed)
		}
		if overdrawn {
			if err := store.Reset(t.Context(), asks); err != nil {
				t.Fatal(err)
			}
		}
	}
	if seen == 0 {
		t.Error("no key was ever seen")
	}
}

// Case B19 (c): a key that somebody has put without a lifetime, or with a value of no
// sense, serves the client again a window later, and ends.
func TestALostLifetimeIsMended(t *testing.T) {
	s := redistest.Single(t)
	for _, l := range everyAlgorithm(100, time.Minute) {
		for _, value := range []string{"", "5000", "\x00", "\xff\xff\xff"} {
			t.Run(fmt.Sprintf("%v %q", l.Algorithm, value), func(t *testing.T) {
				s.Must("FLUSHALL")
				clock := new(weirtest.Clock)
				store := node(t, at(s), weirredis.Options{Clock: clock})
				wide := l
				if wide.Quota = 200; l.Algorithm == weir.LeakyQueue {
					wide.Queue = 199
				}
				take(t, store, policy(t, "each", wide), "alice", 150)
				p, key := policy(t, "each", l), s.Must("KEYS", "*")
				if value == "" {
					s.Must("PERSIST", key)
					if v := take(t, store, p, "alice", 1); v.OK || v.Remaining != 0 {
						t.Errorf("over the limit: %+v", v)
					}
				} else {
					s.Must("SET", key, value)
				}
				if least, _, _ := lifetimes(t, s); least != -1 {
					t.Fatal("the key has a lifetime already")
				}
				clock.Advance(2 * life(l)) // it holds one and a half of what it may
				if v := take(t, store, p, "alice", 1); !v.OK {
					t.Errorf("when that is over: %+v", v)
				}
				if least, greatest, n := lifetimes(t, s); n != 1 || least < 1 || greatest > life(l).Milliseconds()+slack(true) {
					t.Errorf("%d keys live for %d to %d ms", n, least, greatest)
				}
			})
		}
	}
}

// Case S54: the count and its lifetime are one step, whoever dies in between: clients
// whose connections break, callers who leave, and Redis itself.
func TestACrashLeavesNoKeyForEver(t *testing.T) {
	s := redistest.Single(t, "--appendonly", "yes", "--appendfsync", "always")
	store := node(t, at(s), weirredis.Options{Timeout: 100 * time.Millisecond})
	var policies []*weir.Policy
	for _, l := range everyAlgorithm(1000, time.Hour) {
		policies = append(policies, policy(t, l.Algorithm.String(), l))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var answered atomic.Int64
	for g := range 8 {
		callers.Go(func() {
			out := make([]weir.Verdict, 1)
			for i := g; ctx.Err() == nil; i++ {
				mine, leave := context.WithCancel(ctx)
				if i%16 == g {
					go leave()
				}
				_, err := store.Take(mine, []weir.Ask{{Policy: policies[i%len(policies)], Key: []byte(strconv.Itoa(i % 1000)), Cost: 33}}, out)
				leave()
				switch {
				case err == nil:
					answered.Add(1)
				case !errors.Is(err, weir.ErrUnavailable) && !errors.Is(err, context.Canceled):
					t.Error(err)
				}
			}
		})
	}
	more := func() {
		n := answered.Load()
		redistest.Until(t, "calls are answered", func() bool { return answered.Load() > n+50 })
	}
	for range 10 {
		more()
		s.Must("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	}
	for range 3 {
		more()
		s.Kill()
		s.Restart() // with what its file says
		if least, _, n := lifetimes(t, s); n == 0 || least < 0 {
			t.Errorf("after a crash: %d keys, the shortest life is %d", n, least)
		}
	}
	cancel()
	callers.Wait()
	if least, _, n := lifetimes(t, s); n == 0 || least < 0 {
		t.Errorf("at the end: %d keys, the shortest life is %d", n, least)
	}
}

// Cases B20 and S48: whatever an identity is, the keys of one decision lie in one slot,
// and Redis knows of each that it is used.
func TestKeysOfOneIdentityLieInOneSlot(t *testing.T) {
	nodes := redistest.Cluster(t, 3)
	where := clienttest.Where{Addresses: nodes.Addrs, Cluster: true}
	var policies []*weir.Policy
	for _, l := range everyAlgorithm(2, time.Hour) {
		policies = append(policies, policy(t, l.Algorithm.String(), l))
	}
	slots := make(map[int]bool)
	for _, prefix := range []string{"weir", "a{b}c", "}{", "{}"} {
		for _, identity := range []string{"203.0.113.7", "user:1", "a{b}c", "}{", "{}", ""} {
			for _, s := range nodes.Nodes {
				s.Must("FLUSHALL")
			}
			store := node(t, where, weirredis.Options{Prefix: prefix})
			var asks []weir.Ask
			for _, p := range policies {
				asks = append(asks, weir.Ask{Policy: p, Key: []byte(identity), Cost: 2})
			}
			out := make([]weir.Verdict, len(asks))
			for i, want := range []bool{true, false} {
				if ok, err := store.Take(t.Context(), asks, out); ok != want || err != nil {
					t.Errorf("prefix %q, identity %q, request %d: %v, %v", prefix, identity, i, ok, err)
				}
			}
			var keys []string
			for _, s := range nodes.Nodes {
				if text := s.Must("KEYS", "*"); text != "" {
					keys = append(keys, strings.Split(text, "\n")...)
				}
			}
			if len(keys) != len(asks) {
				t.Errorf("prefix %q, identity %q: %d asks have %d keys", prefix, identity, len(asks), len(keys))
			}
			for _, key := range keys {
				if redistest.Slot(key) != redistest.Slot(keys[0]) {
					t.Errorf("prefix %q, identity %q: %q and %q lie apart", prefix, identity, key, keys[0])
				}
				slots[redistest.Slot(key)] = true
			}
			if s := store.Stats(); s.Failed+s.Lost+s.TryAgain+s.Refunds+s.Mirror != 0 {
				t.Errorf("prefix %q, identity %q: %+v", prefix, identity, s)
			}
		}
	}
	if len(slots) != 6 {
		t.Errorf("6 identities lie in %d slots", len(slots))
	}
	// What cannot be decided is an error and counted, and not an answer.
	store := node(t, where, weirredis.Options{Timeout: 100 * time.Millisecond})
	for _, s := range nodes.Nodes {
		s.Kill()
	}
	ok, err := store.Take(t.Context(), []weir.Ask{{Policy: policies[0], Key: []byte("alice"), Cost: 1}}, make([]weir.Verdict, 1))
	if s := store.Stats(); ok || !errors.Is(err, weir.ErrUnavailable) || s.Failed+s.Lost != 1 {
		t.Errorf("a Cluster that is gone: %v, %v, %+v", ok, err, s)
	}
}

// Case S57: no chance is in a key's life, and none would be in decisions: they are the
// same where keys end at the instant from which they do not matter as where none ends.
func TestDecisionsDoNotDependOnWhenKeysEnd(t *testing.T) {
	const seed = 57
	rng := rand.New(rand.NewPCG(seed, seed))
	s := redistest.Single(t)
	clock := new(weirtest.Clock)
	early := node(t, at(s), weirredis.Options{Prefix: "early", Clock: clock})
	never := node(t, at(s), weirredis.Options{Prefix: "never", Clock: clock})
	type held struct {
		ask weir.Ask
		end int64
	}
	keys := make(map[string]held)
	var policies []*weir.Policy
	for _, l := range everyAlgorithm(5, 10*time.Second) {
		policies = append(policies, policy(t, l.Algorithm.String(), l))
	}
	ended, refused := 0, 0
	for i := range 3000 {
		clock.Advance(time.Duration(rng.Int64N(1500)) * time.Millisecond)
		for name, h := range keys {
			if clock.Now().UnixMicro() < h.end {
				continue
			}
			if err := early.Reset(t.Context(), []weir.Ask{h.ask}); err != nil {
				t.Fatal(err)
			}
			delete(keys, name)
			ended++
		}
		p, key := policies[rng.IntN(len(policies))], strconv.Itoa(rng.IntN(2))
		n := rng.Int64N(4)
		a, b := take(t, early, p, key, n), take(t, never, p, key, n)
		if a != b {
			t.Fatalf("call %d, %d units of %s: %+v where keys end, %+v where they do not; seed %d", i, n, p.Name, a, b, seed)
		}
		if !a.OK {
			refused++
		}
		keys[p.Name+key] = held{weir.Ask{Policy: p, Key: []byte(key)}, a.At + a.Reset}
		if i%10 == 0 {
			s.Must("EVAL", `for _, k in ipairs(redis.call('KEYS', 'never:*')) do redis.call('PERSIST', k) end`, "0")
		}
	}
	if ended < 100 || refused < 100 {
		t.Errorf("%d keys ended and %d requests were refused: too few to tell", ended, refused)
	}

	// By Redis' own clock the end is that of the verdict, to the millisecond.
	own := node(t, at(s), weirredis.Options{Prefix: "own"})
	p := policy(t, "day", weir.PerDay(100))
	for i := range 50 {
		s.Must("FLUSHALL")
		v := take(t, own, p, strconv.Itoa(i), 1+rng.Int64N(50))
		if got, want := s.Must("PEXPIRETIME", s.Must("KEYS", "*")), strconv.FormatInt((v.At+v.Reset+999)/1000, 10); got != want {
			t.Errorf("a key ends at %s ms, want %s", got, want)
		}
	}
}
