package accesslog

import "strings"

// parseEnvoy reads Envoy's default format and Istio's, which has three more
// fields after the flags, and the downstream address at the end:
//
//	[time] "request" status flags received sent duration upstream-time "forwarded for" "user agent" "id" "authority" "upstream"
//	[time] "request" status flags details termination "failure" received … "upstream" cluster upstream-local local remote …
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#default-format-string
// https://istio.io/latest/docs/tasks/observability/logs/access-log/#default-access-log-format
func parseEnvoy(line string, r *Record) Reason {
	before, rest, reason := r.cutTime(line)
	if reason != "" {
		return reason
	}
	if before != "" {
		return NoTime
	}
	if rest, reason = r.cutAnswer(rest); reason != "" {
		return reason
	}

	_, rest = word(rest) // flags
	received, afterReceived := word(rest)
	if digits64(received) < 0 {
		_, rest = word(afterReceived) // details were the word before, this is termination
		_, rest, _ = nextQuoted(rest)
		_, afterReceived = word(rest)
	}
	sent, rest := word(afterReceived)
	r.Bytes = max(digits64(sent), 0)

	var forwarded, authority string
	forwarded, rest, _ = nextQuoted(rest)
	r.UserAgent, rest, _ = nextQuoted(rest)
	_, rest, _ = nextQuoted(rest) // id
	authority, rest, _ = nextQuoted(rest)
	if r.Host == "" {
		r.Host = authority
	}
	_, rest, _ = nextQuoted(rest) // upstream

	r.extra = forwarded
	r.Client = strings.TrimSpace(forwarded[strings.LastIndexByte(forwarded, ',')+1:])
	for range 3 { // cluster and two local addresses
		_, rest = word(rest)
	}
	if remote, _ := word(rest); dash(remote) != "" {
		r.Client = remote
	}
	r.Addr, _ = parseAddr(r.Client)
	return ""
}

// nextQuoted reads the next quoted field, skipping what stands before it.
func nextQuoted(s string) (text, rest string, closed bool) {
	_, s, found := strings.Cut(s, `"`)
	if !found {
		return "", "", false
	}
	return quoted(s)
}
