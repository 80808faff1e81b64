package accesslog

import (
	"net/netip"
	"strings"
	"time"
)

// Record is one request as its log tells it. A field that the log lacks, or
// shows as "-", is empty.
//
// A Record that Next returned holds until the next call; a copy of the struct may
// be kept as long as one likes. Its text fields are parts of what was read, so
// one that is kept keeps up to 64 KiB of the log alive: Clone where many are.
type Record struct {
	// At is the logged time in microseconds since 1970 UTC, the ticks of weir;
	// Time is the same. Servers log the beginning or the end of a request.
	At int64

	// Client is the client as logged: an address, perhaps with a port, or a host
	// name. Where a server resolves trusted proxies itself and logs the result
	// (Caddy's client_ip), it is that.
	Client string
	// Addr is the address in Client, without port and zone and with IPv4-mapped
	// IPv6 as IPv4; invalid if there is none.
	Addr netip.Addr

	// Method is empty when what was received is no HTTP request (a TLS greeting
	// on a plain port, garbage, nothing); Target then holds what was received.
	Method string
	// Host is the host asked for: from a virtual host before the line, a field,
	// or a target in absolute form.
	Host string
	// Target is the request target as logged: "/a?b", "http://host/a?b", "*".
	Target string
	// Path is the escaped path of Target, in no normal form.
	Path string
	// Query is what follows the first "?" of Target, without it.
	Query string

	Status int   // 0 if not logged
	Bytes  int64 // sent to the client, with or without headers as the server counts

	Referer   string
	UserAgent string
	User      string // user name of HTTP authentication

	// File and Line say where the record was read: the name given to Open and the
	// number of the line, from 1.
	File string
	Line int64
	// Late tells that the record came later than Options.Window allows, and that
	// At was moved up to the record before.
	Late bool

	format  Format
	extra   string // what Header looks into: the line of JSON, Envoy's X-Forwarded-For, or what follows the user agent
	headers string // the object of headers in JSON, as text
}

// Time returns At as a time in UTC.
func (r *Record) Time() time.Time { return time.UnixMicro(r.At).UTC() }

// Header returns a header of the request by its name, in any case, and "" if it
// was not logged. JSON may hold any header, in an object named headers or in
// fields such as nginx's http_x_api_key and Traefik's request_X-Api-Key; several
// lines of one header are joined by commas. Text holds those that Record has
// fields for, and sometimes X-Forwarded-For.
func (r *Record) Header(name string) string {
	switch {
	case strings.EqualFold(name, "User-Agent"):
		return r.UserAgent
	case strings.EqualFold(name, "Referer"):
		return r.Referer
	case strings.EqualFold(name, "Host"):
		return r.Host
	case r.format == JSON:
		return jsonHeader(r.extra, r.headers, name)
	case !strings.EqualFold(name, "X-Forwarded-For"):
		return ""
	case r.format == Envoy:
		return r.extra
	case r.format == Combined:
		return forwardedFor(r.extra)
	}
	return ""
}

// forwardedFor returns the first quoted field that is a list of addresses, which
// is how most nginx configurations end a line.
func forwardedFor(fields string) string {
	for fields != "" {
		var field string
		field, fields, _ = nextQuoted(fields)
		if isAddrList(field) {
			return field
		}
	}
	return ""
}

func isAddrList(s string) bool {
	for item := range strings.SplitSeq(s, ",") {
		if _, ok := parseAddr(strings.TrimSpace(item)); !ok {
			return false
		}
	}
	return true
}

// Clone returns a copy that shares no memory with r.
func (r *Record) Clone() *Record {
	c := *r
	for _, s := range []*string{
		&c.Client, &c.Method, &c.Host, &c.Target, &c.Path, &c.Query,
		&c.Referer, &c.UserAgent, &c.User, &c.extra, &c.headers,
	} {
		*s = strings.Clone(*s)
	}
	return &c
}

// Parse reads one line, without its line break, into r and forgets what r held.
// The error is one of the Reasons; r is then in no useful state. The text fields
// of r share line's memory.
func (r *Record) Parse(line string, f Format) error {
	*r = Record{}
	if reason := f.parse(line, r); reason != "" {
		return reason
	}
	return nil
}
