package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/accesslog"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/rules"
)

// Records is a log in the order of time. [accesslog.Reader] is one.
type Records interface {
	// Next returns the next record, valid until the next call, or io.EOF.
	Next() (*accesslog.Record, error)
	// Stats tells what was read so far.
	Stats() accesslog.Stats
}

// DefaultMaxKeys is how many keys are counted exactly for each rule unless told
// otherwise. They take about 200 bytes each.
const DefaultMaxKeys = 2_000_000

// DefaultTop is how many keys a report lists for each rule unless told otherwise.
const DefaultTop = 10

// Options configure a [Run]. The zero value is usable.
type Options struct {
	// Clients finds and groups the clients: the address in the log is the peer, and
	// if that is a trusted proxy, the forwarding header is read, as far as the log
	// has it. nil trusts no proxy.
	Clients *clientip.Resolver
	// Top is how many keys to list for each rule; 0 means DefaultTop, below 0 none.
	Top int
	// MaxKeys bounds the keys that are kept for each rule, and with it the memory; 0
	// means DefaultMaxKeys. Beyond it the report says so, and what its figures are
	// off by at most.
	MaxKeys int
	// Progress is called every 65,536 records if it is not nil.
	Progress func(accesslog.Stats)
}

// checkEvery is after how many records the context is looked at.
const checkEvery = 1 << 10

// progressEvery is after how many records Progress is called.
const progressEvery = 1 << 16

// Run replays a log under the rules of a document. The error is
// [rules.Problems] if the document does not compile. If the log cannot be read
// further or ctx ends, the report tells of what was replayed until then, beside
// the error.
func Run(ctx context.Context, logs Records, doc *rules.Document, o Options) (*Report, error) {
	program, err := rules.Compile(doc, Binding())
	if err != nil {
		return nil, err
	}
	if o.Clients == nil {
		if o.Clients, err = clientip.New(clientip.Options{}); err != nil {
			return nil, err
		}
	}
	if o.Top == 0 {
		o.Top = DefaultTop
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	r := &run{timeline: newTimeline(len(doc.Rules))}
	set := program.Ruleset
	set.Rules = slices.Clone(set.Rules)
	policies := 0
	for i := range set.Rules {
		t := &tally{row: i, rule: &doc.Rules[i], compiled: &set.Rules[i], keys: newKeyCounts(o.MaxKeys)}
		r.tallies = append(r.tallies, t)
		set.Rules[i].Tag = t
		if len(set.Rules[i].Limits) == 0 {
			set.Rules[i].Match = r.exempt(t, set.Rules[i].Match)
		}
		policies += len(set.Rules[i].Limits)
	}
	// The store has room for every key of every limit: a replay is not to show an
	// overflow that is only its own. Its shards are not filled to the brim.
	store := weir.NewMemory(weir.MemoryOptions{Clock: r, MaxKeys: o.MaxKeys * max(policies, 1) / 9 * 10})
	limiter, err := weir.New(store, set, weir.Options[*Request]{Clock: r, Local: store, Observer: r})
	if err != nil {
		return nil, err
	}
	err = r.replay(ctx, logs, limiter, o)
	return r.report(logs.Stats(), store.Stats(), o), err
}

// run is a replay under way. It is the Clock and the Observer of its limiter.
type run struct {
	now      int64 // µs
	second   uint32
	from     int64
	requests int64
	allowed  int64
	badPaths int64
	notHTTP  int64
	tallies  []*tally
	timeline *timeline
}

func (r *run) replay(ctx context.Context, logs Records, limiter *weir.Limiter[*Request], o Options) error {
	var request Request
	for n := 1; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if n%progressEvery == 0 && o.Progress != nil {
			o.Progress(logs.Stats())
		}
		record, err := logs.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case record.Method == "":
			// No HTTP server hands such a thing to anybody, so no rule would see it.
			r.notHTTP++
			continue
		}
		r.advance(record.At)
		if !request.read(record, o.Clients) {
			r.badPaths++
		}
		d, err := limiter.Take(ctx, &request)
		if err != nil {
			return err
		}
		r.requests++
		if d.Allowed {
			r.allowed++
		}
	}
}

// advance sets the clock.
func (r *run) advance(at int64) {
	if r.requests == 0 {
		r.from, r.now = at, at
	}
	r.now = max(at, r.now) // Memory would hold its clock too
	second := floorDiv(r.now, 1e6)
	r.second = uint32(min(second-floorDiv(r.from, 1e6), 1<<32-1))
	r.timeline.move(second)
}

// Now implements weir.Clock.
func (r *run) Now() time.Time { return time.UnixMicro(r.now) }

// Sleep implements weir.Clock. Nothing waits in a replay.
func (r *run) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// StoreFailed implements weir.Observer. Memory does not fail.
func (r *run) StoreFailed(context.Context, *Request, error) {}

// Decided implements weir.Observer.
func (r *run) Decided(_ context.Context, _ *Request, d *weir.Decision) {
	for i, n := 0, d.Len(); i < n; {
		limit := d.Limit(i)
		t := limit.Policy.Tag.(*tally)
		key, ok := d.Key(i), limit.OK
		// The limits of one rule follow each other and have one key.
		for i++; i < n; i++ {
			next := d.Limit(i)
			if next.Policy.Tag != limit.Policy.Tag {
				break
			}
			ok = ok && next.OK
		}
		r.count(t, key, limit.Missing, limit.Shadow, ok)
	}
}

// count counts what a rule said of a request.
func (r *run) count(t *tally, key []byte, missing, shadow, ok bool) {
	k := t.keys.find(key, missing)
	k.asked++
	t.asked++
	t.keys.trail.ask(&k.pace, r.second)
	switch {
	case ok:
		r.timeline.count(t.row, allowed)
	case shadow:
		if k.watched++; k.watched == 1 {
			t.keys.watched.add(k.hash)
		}
		t.watched++
		r.timeline.count(t.row, allowed)
		r.timeline.count(t.row, watched)
	default:
		if k.refused++; k.refused == 1 {
			t.keys.refused.add(k.hash)
		}
		t.refused++
		r.timeline.count(t.row, refused)
	}
}

// exempt makes the Match of a rule without limits, which no decision speaks of,
// count the requests it is for.
func (r *run) exempt(t *tally, match func(*Request) bool) func(*Request) bool {
	return func(q *Request) bool {
		if match != nil && !match(q) {
			return false
		}
		t.asked++
		r.timeline.count(t.row, allowed)
		return true
	}
}

// tally is what is counted of one rule.
type tally struct {
	row      int
	rule     *rules.Rule
	compiled *weir.Rule[*Request]
	asked    int64
	refused  int64
	watched  int64
	keys     keyCounts
}

// text is a key for people: the value, or NAME=VALUE for each part of a composite
// one. A single value is quoted only if it would not be plain on one line.
func (t *tally) text(k *keyCount) string {
	key, names := k.key, t.rule.Key
	switch {
	case k.missing && key == "":
		return "no key"
	case k.missing:
		return "no key: " + plain(key, "")
	case t.compiled.Key == nil:
		return "global"
	case len(names) == 1:
		return plain(key, "")
	}
	parts, _ := weir.SplitKeys([]byte(key))
	text := ""
	for i, part := range parts {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s=%s", names[i], plain(string(part), ` ,="`))
	}
	return text
}
