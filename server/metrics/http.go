package metrics

import (
	"net/http"
	"strconv"
)

// Begin counts a request that the gateway begins to answer, until the function
// that it returns is called with the status: 0 if the answer broke off.
func (m *Metrics) Begin() (end func(status int)) {
	m.inFlight.Inc()
	return func(status int) {
		m.inFlight.Dec()
		m.requests.WithLabelValues(class(status)).Inc()
	}
}

// class is the class of a status, such as "4xx"; of 429, which is what operators
// look for, it is "429".
func class(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "429"
	case status < 100 || status > 599:
		return "aborted"
	}
	return strconv.Itoa(status/100) + "xx"
}

// UpstreamFailed counts a request that an upstream did not answer: "connect",
// "timeout" or "broken".
func (m *Metrics) UpstreamFailed(kind string) { m.upstream.WithLabelValues(kind).Inc() }
