package accesslog

import "strings"

// longestTime bounds what is looked at between brackets.
const longestTime = 40

// parseCombined reads the common log format and what grew from it:
//
//	[host[:port] ]client ident user [time] "request" status bytes[ "referer" "user agent"[ more]]
//
// https://httpd.apache.org/docs/2.4/mod/mod_log_config.html
// https://nginx.org/en/docs/http/ngx_http_log_module.html
func parseCombined(line string, r *Record) Reason {
	before, rest, reason := r.cutTime(line)
	if reason != "" {
		return reason
	}
	if before = strings.TrimRight(before, " "); before == "" {
		return NoClient
	}
	r.setPeople(before)

	if rest, reason = r.cutAnswer(rest); reason != "" {
		return reason
	}
	if rest != "" && rest[0] != '"' {
		var size string
		size, rest = word(rest)
		r.Bytes = max(digits64(size), 0)
	}
	// Some put times between the size and the referer.
	_, rest, found := strings.Cut(rest, `"`)
	if !found {
		return ""
	}
	r.Referer, rest, _ = quoted(rest)
	if _, rest, found = strings.Cut(rest, `"`); found {
		r.UserAgent, r.extra, _ = quoted(rest)
	}
	return ""
}

// cutTime finds the time, and returns what stands before it and what follows the
// opening quote of the request. A user name may hold brackets, and even a time,
// but then no quote follows, since servers escape those.
func (r *Record) cutTime(line string) (before, request string, reason Reason) {
	reason = NoTime
	for i := 0; ; i++ {
		n := strings.IndexByte(line[i:], '[')
		if n < 0 {
			return "", "", reason
		}
		i += n
		inside := line[i+1:]
		end := strings.IndexByte(inside[:min(len(inside), longestTime)], ']')
		if end < 0 {
			continue
		}
		at, ok := parseTime(inside[:end])
		if !ok {
			continue
		}
		if rest, found := strings.CutPrefix(inside[end:], `] "`); found {
			r.At = at
			return line[:i], rest, ""
		}
		reason = NoRequest
	}
}

// setPeople reads what stands before the time. Client and virtual host may both
// be names or addresses, and the user may hold spaces, so it is the dash or the
// address in the place of ident, which nobody asks for any more, that tells
// whether a virtual host stands in front.
func (r *Record) setPeople(s string) {
	client, rest := word(s)
	ident, user := word(rest)
	if ident != "-" {
		third, more := word(user)
		if _, ok := parseAddr(ident); third != "" && more != "" && (ok || third == "-") {
			r.Host = unescape(withoutPort(client))
			client, user = ident, more
		}
	}
	r.Client = unescape(dash(client))
	r.Addr, _ = parseAddr(r.Client)
	r.User = unescape(dash(user))
}

// withoutPort cuts :80 off, but leaves IPv6 without brackets alone.
func withoutPort(host string) string {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || !isPort(host[i:]) || strings.IndexByte(host[:i], ':') >= 0 && host[i-1] != ']' {
		return host
	}
	return host[:i]
}

// word cuts the first word off, and the spaces around it.
func word(s string) (first, rest string) {
	for s != "" && s[0] == ' ' {
		s = s[1:]
	}
	i := strings.IndexByte(s, ' ')
	if i < 0 {
		return s, ""
	}
	first, s = s[:i], s[i:]
	for s != "" && s[0] == ' ' {
		s = s[1:]
	}
	return first, s
}

// number reads a status: 0 for a dash, -1 if it is none.
func number(s string) int {
	if s == "-" {
		return 0
	}
	if len(s) > 3 {
		return -1
	}
	return digits(s)
}
