package source

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestHintsAreAnsweredOncePerQuietTime(t *testing.T) {
	for _, c := range []struct {
		name              string
		hint, pause, want time.Duration
	}{
		{"none", time.Hour, 2 * time.Second, 2 * time.Second},
		{"soon after a reading", 10 * time.Millisecond, 2 * time.Second, 100 * time.Millisecond},
		{"later", time.Second, 2 * time.Second, time.Second},
		{"while a document settles", 10 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
		{"while polls are more frequent", 10 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, err := NewFile("rules.yaml", Options{})
				if err != nil {
					t.Fatal(err)
				}
				hints := make(chan struct{}, 1)
				defer time.AfterFunc(c.hint, func() { hints <- struct{}{} }).Stop()
				began := time.Now()
				if f.wait(t.Context(), hints, c.pause) {
					t.Error("reload, but nobody asked for it")
				}
				if got := time.Since(began); got != c.want {
					t.Errorf("read again after %v, want %v", got, c.want)
				}
			})
		})
	}
}
