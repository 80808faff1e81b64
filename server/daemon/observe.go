package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/server/demo"
	"github.com/weirhq/weir/weirhttp"
)

// observers all hear of every decision, in order.
type observers []weir.Observer[*weirhttp.Request]

// Decided implements weir.Observer.
func (os observers) Decided(ctx context.Context, r *weirhttp.Request, d *weir.Decision) {
	for _, o := range os {
		o.Decided(ctx, r, d)
	}
}

// StoreFailed implements weir.Observer.
func (os observers) StoreFailed(ctx context.Context, r *weirhttp.Request, err error) {
	for _, o := range os {
		o.StoreFailed(ctx, r, err)
	}
}

// refusals logs who is refused by what. The log samples: a flood must not fill a
// disk (case S13). What clients chose is cut here and quoted by the handler.
type refusals struct{ log *slog.Logger }

// Decided implements weir.Observer.
func (o refusals) Decided(ctx context.Context, r *weirhttp.Request, d *weir.Decision) {
	if d.Allowed || !o.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for s := range d.Limits() {
		if s.OK || s.Shadow {
			continue
		}
		o.log.LogAttrs(ctx, slog.LevelInfo, "refused", slog.String(sampledBy, s.Policy.Name),
			slog.String("client", r.Client.String()), slog.String("method", cut(r.Method)), slog.String("path", cut(r.Path)),
			slog.String("retry_after", span(s.RetryAfter)))
	}
}

// span is a wait in words.
func span(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return d.Round(time.Millisecond).String()
}

// StoreFailed implements weir.Observer.
func (o refusals) StoreFailed(ctx context.Context, _ *weirhttp.Request, err error) {
	o.log.LogAttrs(ctx, slog.LevelError, "the store failed: on_store_error decides", slog.Any("error", err))
}

// cut bounds what a client can put into a line.
func cut(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// audience tells the demo's list.
type audience struct{ site *demo.Site }

// Decided implements weir.Observer.
func (o audience) Decided(_ context.Context, r *weirhttp.Request, d *weir.Decision) {
	if d.Len() == 0 {
		return // no rule was asked
	}
	told := demo.Decision{Time: time.Now(), Method: cut(r.Method), Path: cut(r.Path), Client: r.Client.String(), Allowed: d.Allowed}
	for s := range d.Limits() {
		told.Policies = append(told.Policies, demo.Policy{
			Name: s.Policy.Name, OK: s.OK, Shadow: s.Shadow, Remaining: s.Remaining, Quota: s.Policy.Limit.Quota})
	}
	o.site.Tell(told)
}

// StoreFailed implements weir.Observer.
func (audience) StoreFailed(context.Context, *weirhttp.Request, error) {}
