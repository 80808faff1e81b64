package replay

import (
	"net/netip"

	"github.com/weirhq/weir/accesslog"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/internal/field"
	"github.com/weirhq/weir/urlpath"
)

// A Request is what rules see of a line of a log. It is valid while the line's
// turn lasts.
type Request struct {
	// Client is the address of the client; the zero Addr if the log has none.
	Client netip.Addr
	// Host is in lower case, without port. It is empty in logs that do not have it.
	Host string
	// Path is in the normal form of package urlpath, or as it was logged if it has
	// none.
	Path string

	record *accesslog.Record
	groups *clientip.Resolver
	lines  [1]string // of the forwarding header
}

// read fills r from a record. It allocates nothing for paths and hosts in normal
// form, and returns whether the path has one.
func (r *Request) read(record *accesslog.Record, resolver *clientip.Resolver) (clean bool) {
	r.record, r.groups = record, resolver
	r.Client = record.Addr
	if resolver.Trusts(record.Addr) {
		r.lines[0] = record.Header(resolver.Header())
		r.Client = resolver.Resolve(record.Addr, r.lines[:])
	}
	r.Host = field.Hostname(record.Host)
	path, err := urlpath.Clean(record.Path)
	if err != nil {
		path = record.Path
	}
	r.Path = path
	return err == nil
}
