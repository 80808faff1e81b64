package source_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/source"
)

func TestRunIsExclusiveAndRepeatable(t *testing.T) {
	inBubble(t, source.Options{}, func(t *testing.T, w *world) {
		write(t, w.path, "first")
		w.start()
		w.want("first")
		nothing := func(context.Context, source.Document) error { return nil }
		if err := w.file.Run(t.Context(), nothing); err != source.ErrRunning {
			t.Errorf("a second Run = %v, want %v", err, source.ErrRunning)
		}
		w.stop()
		w.start()
		w.want("first")
	})
}

func TestRunAfterTheEndDeliversNothing(t *testing.T) {
	inBubble(t, source.Options{}, func(t *testing.T, w *world) {
		write(t, w.path, "first")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := w.file.Run(ctx, func(context.Context, source.Document) error {
			t.Error("delivered")
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want %v", err, context.Canceled)
		}
	})
}

// A delivery that gives up because the daemon stops says nothing about the document.
func TestInterruptedDeliveryIsNoRejection(t *testing.T) {
	inBubble(t, source.Options{}, func(t *testing.T, w *world) {
		write(t, w.path, "first")
		ctx, cancel := context.WithCancel(t.Context())
		err := w.file.Run(ctx, func(ctx context.Context, _ source.Document) error {
			cancel()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want %v", err, context.Canceled)
		}
		if s := w.file.Status(); s.Rejections != 0 || s.Err != nil {
			t.Errorf("status %+v, want no rejection", s)
		}
	})
}

// A change during a slow delivery is not forgotten, and Reload and Status do not
// wait for it.
func TestSlowDeliveryDelaysOnlyTheNext(t *testing.T) {
	onBothEngines(t, func(t *testing.T, w *world) {
		write(t, w.path, "first")
		gate, inside := make(chan struct{}), make(chan struct{}, 10)
		w.answer = func(source.Document) error {
			inside <- struct{}{}
			<-gate
			return nil
		}
		w.start()
		<-inside
		write(t, w.path, "second")
		w.file.Reload()
		w.file.Reload()
		w.file.Status()
		close(gate)
		w.want("first")
		w.want("second")
	})
}

func TestEverythingMayBeCalledFromEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file *source.File
		path := t.TempDir() + "/rules.yaml"
		write(t, path, "first")
		file = must(source.NewFile(path, source.Options{
			PollOnly: true,
			Notify:   func(source.Event) { file.Status() },
		}))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			file.Run(ctx, func(context.Context, source.Document) error { file.Status(); return nil })
		})
		for range 8 {
			wg.Go(func() {
				for range 100 {
					file.Reload()
					file.Status()
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		time.Sleep(2 * time.Second)
		cancel()
		wg.Wait()
		if s := file.Status(); s.Acceptances < 2 {
			t.Errorf("%d documents accepted, want the first and reloads", s.Acceptances)
		}
	})
}
