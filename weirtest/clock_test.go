package weirtest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/weirtest"
)

func TestClockStartsOnTheEdgeOfManyWindows(t *testing.T) {
	var c weirtest.Clock
	now := c.Now().UnixMicro()
	for _, days := range []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 28, 30, 90, 360} {
		if now%(days*24*time.Hour.Microseconds()) != 0 {
			t.Errorf("%v is no edge of windows of %d days", c.Now(), days)
		}
	}
}

func TestSleepMovesTheClock(t *testing.T) {
	var c weirtest.Clock
	if err := c.Sleep(t.Context(), 3*time.Second); err != nil || c.Since() != 3*time.Second {
		t.Errorf("%v, %v", err, c.Since())
	}
	c.Advance(-time.Second)
	if c.Since() != 2*time.Second {
		t.Error("the clock does not step back")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) || c.Since() != 2*time.Second {
		t.Errorf("a cancelled sleep: %v, %v", err, c.Since())
	}
}

func TestAParkedSleeperWakesAtItsInstant(t *testing.T) {
	c := weirtest.Clock{Park: true}
	var woken atomic.Int64
	done := make(chan time.Duration)
	for _, d := range []time.Duration{time.Second, 2 * time.Second} {
		go func() {
			if err := c.Sleep(t.Context(), d); err != nil {
				t.Error(err)
			}
			woken.Add(1)
			done <- d
		}()
	}
	if err := c.AwaitParked(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Second - 1)
	if woken.Load() != 0 {
		t.Error("a sleeper woke early")
	}
	c.Advance(1)
	if d := <-done; d != time.Second || woken.Load() != 1 {
		t.Errorf("the sleeper of %v woke first, %d are awake", d, woken.Load())
	}
	c.Set(time.Minute)
	<-done
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = c.AwaitParked(t.Context(), 1)
		cancel()
	}()
	if err := c.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := c.AwaitParked(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error("a sleeper that gave up still counts as parked")
	}
}

func TestRecorderKeepsWhatADecisionOnlyLends(t *testing.T) {
	var rec weirtest.Recorder[string]
	l, err := weir.New(weir.NewMemory(weir.MemoryOptions{}), weir.Ruleset[string]{Version: "v1", Rules: []weir.Rule[string]{{
		Name: "rule", Limits: []weir.Limit{weir.PerHour(1)},
		Key: func(dst []byte, r string) ([]byte, bool) { return append(dst, r...), true },
	}}}, weir.Options[string]{Observer: &rec})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []string{"a", "bb", "a"} {
		if _, err := l.Take(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	events := rec.Events()
	if len(events) != 3 || len(rec.Events()) != 0 {
		t.Fatalf("%d events", len(events))
	}
	for i, want := range []string{"a", "bb", "a"} {
		e := events[i]
		if e.Request != want || len(e.Keys) != 1 || e.Keys[0] != want || e.Allowed != (i < 2) || e.Version != "v1" || e.Limits[0].Policy.Name != "rule" {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if events[2].Retry <= 0 {
		t.Errorf("no retry: %+v", events[2])
	}
}
