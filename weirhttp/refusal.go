package weirhttp

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/headers"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/urlpath"
)

const (
	// outageRetry is what a client is told to wait if a rule is closed since the store
	// failed. Nobody knows how long that will be; it is short beside most outages, and
	// long enough that the refused do not add much to the trouble.
	outageRetry = 5 * time.Second
	// drained is how many announced bytes of an unread body net/http may drain to keep
	// the connection.
	drained = 64 << 10
)

// verdict is why a request was refused, as one answer can say it.
type verdict struct {
	refusal headers.Refusal
	// first is the limit that the answer speaks of: of those that refused, the one
	// with the longest wait.
	first weir.ServiceLimit
	rule  *rules.Answer // what first's rule has to say; never nil
}

// judge finds out who refused.
func (x *exchange) judge() verdict {
	v := verdict{refusal: headers.Refusal{Limits: x.limits}, rule: new(rules.Answer)}
	for i := range x.decision.Len() {
		s := x.decision.Limit(i)
		if s.OK || s.Shadow || unanswered(&x.decision, &s) {
			continue
		}
		if first := &v.first; first.Policy == nil ||
			first.RetryAfter >= 0 && (s.RetryAfter < 0 || s.RetryAfter > first.RetryAfter) {
			v.first = s
		}
	}
	if v.first.Policy == nil { // only closed rules refused
		v.refusal = headers.Refusal{Reason: headers.ReducedCapacity, RetryAfter: outageRetry}
		return v
	}
	if v.first.Policy.Unit == "concurrent-requests" {
		v.refusal.Reason = headers.ReducedCapacity
	}
	if a, ok := v.first.Policy.Tag.(*rules.Answer); ok && a != nil {
		v.rule = a
	}
	return v
}

// status is the rule's own status, or the reason's. A status that is no error,
// which only a program can write, would make a refusal look like success.
func (v *verdict) status() int {
	if s := v.rule.Status; 400 <= s && s <= 599 {
		return s
	}
	return v.refusal.Reason.Status()
}

// wait is how long the client is told to wait; below 0, for ever.
func (v *verdict) wait() time.Duration {
	if wait, refused := headers.RetryAfter(v.refusal.Limits); refused {
		return wait
	}
	return v.refusal.RetryAfter
}

// refuse answers a request that the limiter refused.
func (m *middleware) refuse(w http.ResponseWriter, x *exchange) {
	x.describe(m.ShowShadow)
	m.answer(w, x, x.judge())
}

// refuseUndecided answers a request whose context ended before it could be
// decided, or before its turn came. The client has left, or the server is slow.
func (m *middleware) refuseUndecided(w http.ResponseWriter, x *exchange) {
	x.limits, x.decision = x.limits[:0], weir.Decision{}
	m.answer(w, x, verdict{
		refusal: headers.Refusal{Reason: headers.ReducedCapacity, RetryAfter: time.Second},
		rule:    new(rules.Answer),
	})
}

// answer tells the client that it was refused.
func (m *middleware) answer(w http.ResponseWriter, x *exchange, v verdict) {
	h := w.Header()
	x.fields.limits(m.Headers, x.limits)
	if m.DraftSpelling {
		x.fields.spell()
	}
	if buf, ok := headers.AppendRetryAfter(x.fields.buf, v.wait()); ok {
		x.fields.buf = buf
		x.fields.end(retryAfterKey)
	}
	x.fields.set(h)

	f := Refusal{Status: v.status(), RetryAfter: v.wait(), Decision: &x.decision}
	own := false
	f.Message, f.Lang, own = v.message(joined(x.Request.Header, "Accept-Language"))
	if m.OnRefuse != nil {
		if body := m.OnRefuse(h, &x.Request, f); body != nil {
			send(w, x.Request.Request, f.Status, body)
			return
		}
	}
	if v.rule.Body != "" {
		x.body = append(x.body[:0], v.rule.Body...)
		setDefault(h, "Content-Type", v.rule.ContentType, "text/plain; charset=utf-8")
	} else {
		m.builtIn(h, x, &v, f, own)
	}
	send(w, x.Request.Request, f.Status, x.body)
}

// builtIn writes the problem document, or the page for those who read pages. own
// is whether the message is not the one they have anyway.
func (m *middleware) builtIn(h http.Header, x *exchange, v *verdict, f Refusal, own bool) {
	accept := x.Request.Header
	lang, message := f.Lang, ""
	if lang != "" {
		h.Set("Content-Language", lang)
	} else {
		lang = headers.Language(joined(accept, "Accept-Language"), nil)
	}
	if own {
		message = f.Message
	}
	h.Add("Vary", "Accept, Accept-Language")
	if headers.WantsHTML(joined(accept, "Accept")) {
		h.Set("Content-Type", headers.HTMLType)
		h.Set("Content-Security-Policy", headers.PageCSP)
		x.body = headers.AppendPage(x.body[:0], headers.Page{
			Refusal: v.refusal, Lang: lang, Message: message, Reload: x.Method == "GET" || x.Method == "HEAD"})
		return
	}
	h.Set("Content-Type", headers.ProblemType)
	x.body = headers.AppendProblem(x.body[:0], headers.Problem{
		Refusal: v.refusal, Status: f.Status, Lang: lang, Detail: message})
}

// message is the sentence for people, and its language; own is whether the rule
// or this package wrote it instead of package headers.
func (v *verdict) message(accept string) (text, lang string, own bool) {
	if messages := v.rule.Messages; len(messages) > 0 {
		// The empty tag, for any language, sorts first, which is what Language falls
		// back to.
		lang = headers.Language(accept, slices.Sorted(maps.Keys(messages)))
		return messages[lang], lang, true
	}
	lang = headers.Language(accept, nil)
	if v.lacksKey() {
		if lang == "zh" {
			return "此请求没有限制“" + v.first.Policy.Name + "”用来计数的键。", lang, true
		}
		return `This request lacks the key that the limit "` + v.first.Policy.Name + `" counts by.`, lang, true
	}
	return string(headers.AppendMessage(nil, lang, v.refusal)), lang, false
}

// lacksKey reports whether the rule refused since the request has no key, without
// counting it.
func (v *verdict) lacksKey() bool {
	s := &v.first
	return s.Policy != nil && s.Missing && s.RetryAfter < 0 && s.Remaining == 0 && s.Policy.Limit.Quota > 0
}

// refusePath answers a request whose path has no normal form.
func (m *middleware) refusePath(w http.ResponseWriter, x *exchange, err error) {
	reason := "malformed path"
	var e *urlpath.Error
	if errors.As(err, &e) { // one of a few constants: nothing the client wrote is sent back
		reason = strings.TrimPrefix(e.Reason.Error(), "urlpath: ")
	}
	w.Header().Set("Content-Type", headers.ProblemType)
	x.body = append(x.body[:0], `{"type":"about:blank","title":"Bad Request","status":400,"detail":"The path has an unclear meaning: `...)
	x.body = append(x.body, reason...)
	x.body = append(x.body, `."}`...)
	send(w, x.Request.Request, http.StatusBadRequest, x.body)
}

// send sends a whole answer. What is refused now may be allowed in a second, so no
// cache may keep it.
func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	setDefault(h, "Content-Type", "", "text/plain; charset=utf-8")
	if r.ProtoMajor == 1 && r.ContentLength > drained {
		h.Set("Connection", "close") // in HTTP/2 it would end the other streams too
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only if the client has left
	}
}

// setDefault sets a field that is not set yet to the first value that is not empty.
func setDefault(h http.Header, name string, values ...string) {
	for _, v := range values {
		if h.Get(name) == "" && v != "" {
			h.Set(name, v)
		}
	}
}

// joined is all lines of a list field as one.
func joined(h http.Header, name string) string {
	if lines := h[name]; len(lines) != 1 {
		return strings.Join(lines, ",")
	}
	return h[name][0]
}
