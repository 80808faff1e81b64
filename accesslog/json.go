package accesslog

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/token"
)

// A field is what a member of the object means.
type field uint8

const (
	none field = iota
	timeField
	clientField
	methodField
	hostField
	targetField
	queryField
	requestField
	statusField
	bytesField
	refererField
	agentField
	userField
	headersField
	loggerField
	fields
)

// spelled tells what a key means. Where a line has several of one meaning, the
// highest rank wins; among equals the last. The names are those of
//
//	nginx    https://nginx.org/en/docs/varindex.html, as most formats name them
//	Caddy    https://caddyserver.com/docs/logging
//	Traefik  https://doc.traefik.io/traefik/reference/install-configuration/observability/logs-and-accesslogs/
//	Envoy    https://istio.io/latest/docs/tasks/observability/logs/access-log/, whose names most keep
func spelled(key string) (f field, rank uint8) {
	switch key {
	// When the request began, then when it was logged; finer first.
	case "StartUTC", "start_time", "ts":
		return timeField, 6
	case "StartLocal", "msec":
		return timeField, 5
	case "time":
		return timeField, 4
	case "time_iso8601":
		return timeField, 3
	case "time_local":
		return timeField, 2
	case "timestamp", "@timestamp":
		return timeField, 1

	case "client_ip", "ClientHost", "ip":
		return clientField, 3
	case "remote_addr", "remote_ip", "downstream_remote_address":
		return clientField, 2
	case "ClientAddr", "client":
		return clientField, 1

	case "request_method", "method", "RequestMethod":
		return methodField, 1

	case "host", "http_host", "authority", "RequestHost":
		return hostField, 2
	case "RequestAddr", "server_name", "vhost":
		return hostField, 1

	// nginx's $uri is normalised, and Envoy's path may be rewritten.
	case "x_envoy_original_path":
		return targetField, 3
	case "request_uri", "RequestPath", "path":
		return targetField, 2
	case "uri":
		return targetField, 1
	case "args", "query_string", "query":
		return queryField, 1
	case "request", "@fields", "@nginx_fields":
		return requestField, 1

	case "DownstreamStatus":
		return statusField, 2
	case "status", "response_code", "status_code":
		return statusField, 1

	case "body_bytes_sent", "DownstreamContentSize", "size":
		return bytesField, 2
	case "bytes_sent", "bytes":
		return bytesField, 1

	case "http_referer", "http_referrer", "referer", "referrer", "request_Referer":
		return refererField, 1
	case "http_user_agent", "user_agent", "request_User-Agent":
		return agentField, 1
	case "remote_user", "ClientUsername", "user_id", "user":
		return userField, 1
	case "headers":
		return headersField, 1
	case "logger":
		return loggerField, 1
	}
	return none, 0
}

// found is what was found in a line so far.
type found struct {
	values [fields]value
	ranks  [fields]uint8
	isHTTP bool // some key of a request was there, even if it says nothing
}

// parseJSON reads one object.
func parseJSON(line string, r *Record) Reason {
	var f found
	p := scanner{s: line}
	if !f.object(&p, false) || p.peek() != 0 {
		return BadJSON
	}
	at, ok := parseTime(f.values[timeField].str())
	if !ok {
		return NoTime
	}
	if !f.isHTTP || isCaddyOther(f.values[loggerField].text) {
		return NoRequest
	}
	r.At = at
	r.Client = f.values[clientField].str()
	r.Addr, _ = parseAddr(r.Client)
	r.Host = f.values[hostField].str()
	r.Referer = f.values[refererField].str()
	r.UserAgent = f.values[agentField].str()
	r.User = f.values[userField].str()
	r.Status = max(number(f.values[statusField].str()), 0)
	r.Bytes = max(digits64(f.values[bytesField].str()), 0)
	r.headers = f.values[headersField].text
	r.extra = line

	r.setRequest(f.values[requestField].str())
	method, target := f.values[methodField].str(), f.values[targetField].str()
	if token.Valid(method) && target != "" {
		// setRequest may have split the line of a server that logs both.
		r.Method, r.Path, r.Query = method, "", ""
		r.setTarget(target)
	} else if r.Target == "" {
		r.Target = target
	}
	if r.Query == "" && r.Method != "" {
		r.Query = strings.TrimPrefix(f.values[queryField].str(), "?")
	}
	return ""
}

// isCaddyOther tells whether a line comes from a logger of Caddy that describes
// requests too, such as http.log.error or that of its proxy: each of those has a
// line of http.log.access besides.
func isCaddyOther(logger string) bool {
	return strings.HasPrefix(logger, "http.") && !strings.HasPrefix(logger, "http.log.access")
}

// object collects the members of an object and of the one in it that Caddy names
// request, and old nginx configurations for Logstash @fields.
func (f *found) object(p *scanner, nested bool) bool {
	if !p.open('{') {
		return false
	}
	for first := true; ; first = false {
		key, more, ok := p.member(first)
		if !more {
			return ok
		}
		field, rank := spelled(key)
		switch c := p.peek(); {
		case field == requestField && c == '{' && !nested:
			if !f.object(p, true) {
				return false
			}
		case field == headersField && c == '{':
			from := p.i
			if !f.headers(p) {
				return false
			}
			f.values[headersField] = value{'{', p.s[from:p.i]}
		default:
			v, ok := p.value()
			if !ok {
				return false
			}
			f.isHTTP = f.isHTTP || field == methodField || field == targetField || field == requestField
			if field != none && rank >= f.ranks[field] && v.told() {
				f.values[field], f.ranks[field] = v, rank
			}
		}
	}
}

// headers collects the headers that Record has fields for.
func (f *found) headers(p *scanner) bool {
	p.open('{')
	for first := true; ; first = false {
		key, more, ok := p.member(first)
		if !more {
			return ok
		}
		v, ok := p.value()
		if !ok {
			return false
		}
		switch {
		case strings.EqualFold(key, "User-Agent"):
			f.values[agentField] = v.first()
		case strings.EqualFold(key, "Referer"):
			f.values[refererField] = v.first()
		case strings.EqualFold(key, "Host") && f.ranks[hostField] == 0:
			f.values[hostField] = v.first()
		}
	}
}

// jsonHeader finds a request header in the object of headers, if there is one,
// or among the fields of the line.
func jsonHeader(line, headers, name string) string {
	if v := find(headers, func(key string) bool { return strings.EqualFold(key, name) }); v.kind != 0 {
		return joined(v)
	}
	return joined(find(line, func(key string) bool { return isHeaderField(key, name) }))
}

// isHeaderField tells whether a field of the line has the header of that name.
func isHeaderField(key, name string) bool {
	if header, ok := strings.CutPrefix(key, "request_"); ok && strings.EqualFold(header, name) {
		return true
	}
	header, prefixed := strings.CutPrefix(key, "http_")
	// Without the prefix only names of several words are taken, as Envoy's
	// x_forwarded_for: status and path are names that a header could have too.
	if len(header) != len(name) || !prefixed && strings.IndexByte(name, '-') < 0 {
		return false
	}
	for i := range len(header) {
		if c := name[i]; c == '-' && header[i] != '_' || c != '-' && header[i]|0x20 != c|0x20 {
			return false
		}
	}
	return true
}

// find returns the first member of an object, given as text, whose key matches.
func find(object string, matches func(key string) bool) value {
	p := scanner{s: object}
	if !p.open('{') {
		return value{}
	}
	for first := true; ; first = false {
		key, more, _ := p.member(first)
		if !more {
			return value{}
		}
		v, ok := p.value()
		if !ok {
			return value{}
		}
		if matches(key) {
			return v
		}
	}
}

// joined returns the values of a header as one (RFC 9110 §5.3).
func joined(v value) string {
	if v.kind != '[' {
		return v.str()
	}
	var values []string
	p := scanner{v.text, 1}
	for {
		item, ok := p.value()
		if !ok {
			break
		}
		values = append(values, item.str())
		if !p.open(',') {
			break
		}
	}
	values = slices.DeleteFunc(values, func(s string) bool { return s == "" })
	return strings.Join(values, ", ")
}
