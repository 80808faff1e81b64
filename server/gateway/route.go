package gateway

import (
	"net/http"
	"strconv"

	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/weirhttp"
)

// routes find the route of a request. They are compiled as rules that limit
// nothing, so that a route and a rule with the same match mean the same requests.
type routes struct {
	program *rules.Program[*weirhttp.Request]
	list    []*route
}

// route is one way to the upstreams.
type route struct {
	pool  *pool
	proxy http.Handler
}

func newRoutes(configured []config.Route) (*routes, error) {
	rs := &routes{}
	var doc rules.Document
	for i := range configured {
		doc.Rules = append(doc.Rules, configured[i].Rule("route-"+strconv.Itoa(i)))
		rs.list = append(rs.list, &route{pool: newPool(configured[i].Upstreams)})
	}
	var err error
	rs.program, err = rules.Compile(&doc, weirhttp.Binding())
	return rs, err
}

// find returns the first route that matches, nil if none does.
func (rs *routes) find(q *weirhttp.Request) *route {
	var buf [8]int
	set := &rs.program.Ruleset
	for _, i := range set.Select(buf[:0], q) {
		if match := set.Rules[i].Match; match == nil || match(q) {
			return rs.list[i]
		}
	}
	return nil
}
