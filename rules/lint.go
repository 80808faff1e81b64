package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/algo"
)

// Lint returns warnings: what works and was probably not meant. The document must
// be valid.
func (d *Document) Lint() Problems {
	var l linter
	for i := range d.Rules {
		l.r, l.path, l.below = &d.Rules[i], item("rules", i), d.Rules[i+1:]
		l.key()
		l.logs()
		l.effect()
		l.unreachable()
	}
	return l.problems.sort()
}

// LintNodes returns warnings that [Document.Lint] cannot give, since they depend on
// whether nodes share a store, such as Redis. The document must be valid.
func (d *Document) LintNodes(shared bool) Problems {
	var l linter
	for i := range d.Rules {
		l.r, l.path = &d.Rules[i], item("rules", i)
		l.sharing(shared)
	}
	return l.problems.sort()
}

type linter struct {
	problems Problems
	r        *Rule
	path     string
	finals   []final // those above r
	below    []Rule
}

// final is a rule that ends the search, and what it matches.
type final struct {
	name string
	matcher
}

func (l *linter) warn(msg string, keys ...any) {
	p := l.r.problem(l.path, msg, keys...)
	p.Warning = true
	l.problems = append(l.problems, p)
}

// key warns about keys that a client can change at will: every new value is a
// full quota (cases S53, S22), and about header names that do not arrive (S04).
func (l *linter) key() {
	var chosen []string
	vouched := false
	for i, text := range l.r.Key {
		p, err := parseKeyPart(text)
		if err != nil {
			continue
		}
		switch {
		case p.chosen():
			chosen = append(chosen, p.name)
		case p.kind != "global" && p.kind != "rule":
			vouched = true
		}
		if p.kind == "header" {
			l.header(p.arg, l.r.keyAt(i))
		}
	}
	if len(chosen) == 0 || vouched || len(l.r.limits()) == 0 {
		return
	}
	if slices.Equal(chosen, []string{"path"}) {
		l.warn("every path has a quota of its own, so that a client gets a new one by asking for another path; use rule, or add ip", "key")
		return
	}
	l.warn(fmt.Sprintf("the client chooses %s freely, and every new value has a full quota; add ip, or make sure that something before this rule checks the value", strings.Join(chosen, ", ")), "key")
}

func (l *linter) header(name string, keys []any) {
	if strings.Contains(name, "_") {
		l.warn(fmt.Sprintf("header %s has an underscore, which many proxies drop; did you mean %s?", name, strings.ReplaceAll(name, "_", "-")), keys...)
		return
	}
	switch strings.ToLower(name) {
	case "x-forwarded-for", "x-real-ip", "forwarded", "cf-connecting-ip", "true-client-ip", "x-client-ip":
		l.warn(fmt.Sprintf("header %s is what anybody writes into it; ip reads it, and only from trusted proxies", name), keys...)
	}
}

// Costs of an exact log: 16 bytes for each unit, for each key (case S32).
const (
	logEntry    = 16
	smallLog    = 256
	manyKeys    = 1_000_000
	bytesPerGiB = 1 << 30
)

// logs warns about exact logs that take much memory for each key.
func (l *linter) logs() {
	for i, limit := range l.r.limits() {
		if weir.Algorithm(limit.Algorithm) != weir.SlidingLog || limit.Quota <= smallLog {
			continue
		}
		keys := []any{"limit"}
		if l.r.Limit == nil {
			keys = []any{"limits", i}
		}
		size := limit.Quota * logEntry
		l.warn(fmt.Sprintf("sliding_log keeps up to %d instants of %d bytes: %d bytes for each key, %.1f GiB for a million keys; token_bucket (GCRA) or sliding_window take the same few bytes whatever the quota",
			limit.Quota, logEntry, size, float64(size)*manyKeys/bytesPerGiB), keys...)
	}
}

// effect warns about settings that have none, or one too many.
func (l *linter) effect() {
	r := l.r
	mode := weir.Mode(r.Mode)
	switch {
	case r.unlimited() && !r.Final:
		l.warn("unlimited without final: true changes nothing, since the rules below still apply", "limit")
	case mode == weir.Shadow && r.Final && !r.unlimited() && slices.ContainsFunc(l.below, func(r Rule) bool { return r.enforces() }):
		l.warn("refuses nothing in shadow mode, and keeps the rules below from applying all the same", "final")
	}
	if r.Rollout != 0 && mode != weir.Enforce {
		l.warn(fmt.Sprintf("has no effect in mode %v", mode), "rollout")
	}
	if r.Store == Fast && !slices.ContainsFunc(r.limits(), lendable) {
		l.warn("fast has no effect: a limit is lent ahead if its algorithm is token_bucket, fixed_window or sliding_window, and it is not so small, fast or short that this would gain nothing", "store")
	}
	if r.Body != "" && len(r.Message) > 0 {
		l.warn("is not shown, since body replaces the whole answer", "message")
	}
}

// busy is the rate, in units a second, from which one counter in a store is a burden
// to it.
const busy = 1000

// sharing warns about a store setting that does not fit the store.
func (l *linter) sharing(shared bool) {
	if !slices.ContainsFunc(l.r.limits(), lendable) { // effect has warned
		return
	}
	switch {
	case !shared && l.r.Store == Fast:
		l.warn("fast changes nothing: the memory store is not shared with other nodes, and is exact as it is", "store")
	case shared && l.r.Store == Strict && weir.Mode(l.r.Mode) != weir.Off && l.r.keyedByNobody() &&
		slices.ContainsFunc(l.r.limits(), func(limit Limit) bool { return lendable(limit) && limit.fast() }):
		l.warn(fmt.Sprintf("many clients share this counter, and each of %d requests a second or more waits for the store; store: fast lets nodes decide by themselves most of the time, and allows no more", busy), "key")
	}
}

// fast is whether the limit allows busy units a second and more.
func (l Limit) fast() bool {
	const each = time.Second / busy // for one unit
	return l.Quota >= int64((l.Window+each-1)/each)
}

// keyedByNobody is whether the key has nothing that differs from client to client, so
// that there are few counters, and busy ones.
func (r *Rule) keyedByNobody() bool {
	return !slices.ContainsFunc(r.Key, func(text string) bool {
		p, err := parseKeyPart(text)
		return err != nil || !slices.Contains([]string{"global", "rule", "method", "host"}, p.kind)
	})
}

// lendable is whether a store may lend the limit's units ahead.
func lendable(limit Limit) bool {
	p, err := weir.NewPolicy("lint", limit.Weir())
	return err == nil && p.Params().Lending() != algo.Lending{}
}

// enforces is whether the rule may refuse.
func (r *Rule) enforces() bool { return weir.Mode(r.Mode) == weir.Enforce && !r.unlimited() }

// maxFinals is how many final rules are compared with those below, which keeps
// the work linear in the document.
const maxFinals = 1000

// unreachable warns about a rule that an earlier final one keeps from ever
// applying.
func (l *linter) unreachable() {
	if weir.Mode(l.r.Mode) == weir.Off {
		return
	}
	m, _ := l.r.matcher() // with the slashes and the case that the rule ignores
	for i := range l.finals {
		if above := &l.finals[i]; above.covers(&m) {
			l.warn(fmt.Sprintf("never applies: rule %q above matches all of it and is final", above.name), "match")
			return
		}
	}
	if l.r.Final && len(l.finals) < maxFinals {
		l.finals = append(l.finals, final{l.r.Name, m})
	}
}
