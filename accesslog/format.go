package accesslog

import (
	"fmt"
	"strings"
)

// Format is the shape of the lines of a log.
type Format int

const (
	// Auto tells the format of each line by its first bytes.
	Auto Format = iota
	// Combined is the common and the combined format of Apache and nginx, with
	// or without a virtual host before it and more fields after it; Traefik's
	// text log is one of these. An X-Forwarded-For logged in quotes after the
	// user agent, as nginx's sample configuration does, is recognised.
	// https://httpd.apache.org/docs/2.4/logs.html#accesslog
	// https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format
	Combined
	// JSON is one object a line, under the field names that nginx
	// configurations, Caddy, Traefik and Envoy use, or our own: time, ip,
	// method, host, path, query, status, headers.
	JSON
	// Envoy is Envoy's default text format, also with Istio's additions. It has
	// no field for the peer; Client is Istio's downstream address where there
	// is one, else the last address of X-Forwarded-For, which an Envoy at the
	// edge appended itself.
	// https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#default-format-string
	Envoy
)

// ParseFormat returns the Format of a name as people write it: auto, combined
// (also common, clf, apache, nginx), json (also caddy, traefik) or envoy.
func ParseFormat(name string) (Format, error) {
	switch strings.ToLower(name) {
	case "", "auto":
		return Auto, nil
	case "combined", "common", "clf", "apache", "nginx":
		return Combined, nil
	case "json", "caddy", "traefik":
		return JSON, nil
	case "envoy":
		return Envoy, nil
	}
	return Auto, fmt.Errorf("accesslog: format %q is unknown; use auto, combined, json or envoy", name)
}

// String returns the name that ParseFormat reads.
func (f Format) String() string {
	switch f {
	case Auto:
		return "auto"
	case Combined:
		return "combined"
	case JSON:
		return "json"
	case Envoy:
		return "envoy"
	}
	return fmt.Sprintf("Format(%d)", int(f))
}

// check returns an error for what is no Format.
func (f Format) check() error {
	if f < Auto || f > Envoy {
		return fmt.Errorf("accesslog: %v is unknown (want Auto, Combined, JSON or Envoy)", f)
	}
	return nil
}

// parse reads a line into the zero Record; the reason is empty if it could.
func (f Format) parse(line string, r *Record) Reason {
	if f == Auto {
		f = detect(line)
	}
	r.format = f
	switch f {
	case JSON:
		return parseJSON(line, r)
	case Envoy:
		return parseEnvoy(line, r)
	}
	return parseCombined(line, r)
}

// detect tells a format by a line's first bytes. A virtual host may begin with
// a bracket too ("[2001:db8::1]:443"), but with no year and hyphen inside.
func detect(s string) Format {
	switch {
	case strings.HasPrefix(s, "{"):
		return JSON
	case len(s) > 5 && s[0] == '[' && s[5] == '-' && digits(s[1:5]) >= 0:
		return Envoy
	}
	return Combined
}
