package accesslog

import (
	"strings"

	"github.com/weirhq/weir/internal/token"
)

// cutAnswer takes the quoted request and the status behind it from the beginning of
// a line.
func (r *Record) cutAnswer(line string) (rest string, reason Reason) {
	request, rest, closed := quoted(line)
	if !closed {
		return rest, NoRequest
	}
	r.setRequest(request)
	status, rest := word(rest)
	if r.Status = number(status); r.Status < 0 {
		return rest, NoStatus
	}
	return rest, ""
}

// setRequest takes a request line apart: method, target and protocol. Servers
// log what they could not read as it came, so anything may stand here.
func (r *Record) setRequest(line string) {
	method, target, _ := strings.Cut(line, " ")
	// A target may hold raw spaces where the server tolerates them, so the
	// protocol is looked for at the end; HTTP/0.9 has none.
	if i := strings.LastIndexByte(target, ' '); i >= 0 && strings.HasPrefix(target[i+1:], "HTTP/") {
		target = target[:i]
	}
	if !token.Valid(method) || !isTarget(method, target) {
		r.Target = line
		return
	}
	r.Method = method
	r.setTarget(target)
}

// setTarget takes the target of r.Method's request apart (RFC 9112 §3.2).
func (r *Record) setTarget(target string) {
	r.Target = target
	if r.Method == "CONNECT" && !strings.HasPrefix(target, "/") {
		r.Host = target
		return
	}
	path := target
	if target != "" && target[0] != '/' {
		if scheme := strings.Index(target, "://"); scheme >= 0 {
			// The host of an absolute target overrides the header (§3.2.2).
			rest := target[scheme+len("://"):]
			end := strings.IndexAny(rest, "/?")
			if end < 0 {
				end = len(rest)
			}
			r.Host, path = rest[:end], rest[end:]
			if path == "" || path[0] == '?' {
				r.Path = "/"
				r.Query = strings.TrimPrefix(path, "?")
				return
			}
		}
	}
	if i := strings.IndexByte(path, '?'); i >= 0 {
		r.Path, r.Query = path[:i], path[i+1:]
		return
	}
	r.Path = path
}

// isTarget tells whether s can be the target of a request, and not only a second
// word.
func isTarget(method, s string) bool {
	if s == "" {
		return false
	}
	return s[0] == '/' || s == "*" || method == "CONNECT" || isAbsolute(s)
}

func isAbsolute(s string) bool {
	scheme, _, found := strings.Cut(s, "://")
	return found && token.Valid(scheme)
}
