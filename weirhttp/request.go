package weirhttp

import (
	"net/http"
	"net/netip"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/internal/field"
	"github.com/weirhq/weir/urlpath"
)

// A Request is what rules see of an HTTP request: the request itself, and what
// they would otherwise work out once per rule. The middleware keeps Requests in a
// pool: neither a rule nor an observer nor a hook may keep one, or change it.
type Request struct {
	*http.Request

	// Client is the address of the client, found by the Resolver; the zero Addr if
	// the connection has none, such as a Unix socket.
	Client netip.Addr
	// Hostname is the requested host in lower case, without port, brackets and
	// trailing dot.
	Hostname string
	// Path is the path in the normal form of package urlpath, percent-encoded.
	Path string

	groups  *clientip.Resolver
	digests []digest // filled by PartitionKeys
}

type (
	// A Limiter decides HTTP requests. Several middlewares may share one.
	Limiter = weir.Limiter[*Request]
	// A Rule limits HTTP requests.
	Rule = weir.Rule[*Request]
	// A Ruleset is a list of rules for HTTP requests.
	Ruleset = weir.Ruleset[*Request]
	// A KeyFunc selects a partition of a rule for HTTP requests.
	KeyFunc = weir.KeyFunc[*Request]
)

// New makes a limiter with these rules that counts in the memory of this process.
// It is weir.New with the usual arguments; the error is a [*weir.ConfigError], or
// several joined.
func New(rules ...Rule) (*Limiter, error) {
	return weir.New(weir.NewMemory(weir.MemoryOptions{}), Ruleset{Rules: rules}, weir.Options[*Request]{})
}

// NewRequest reads a request as the middleware does, for those who ask a limiter
// themselves. The resolver finds and groups the client; nil trusts no proxy. The
// error is a [*urlpath.Error] if the path has no normal form; the Request is usable
// then too, its Path being the escaped path as it was sent.
func NewRequest(hr *http.Request, resolver *clientip.Resolver) (*Request, error) {
	if resolver == nil {
		resolver = peers()
	}
	r := new(Request)
	return r, r.read(hr, resolver)
}

// read fills r. It allocates nothing for paths and hosts in normal form.
func (r *Request) read(hr *http.Request, resolver *clientip.Resolver) error {
	r.Request, r.groups = hr, resolver
	r.Client = Identify(resolver, hr)
	r.Hostname = field.Hostname(hr.Host)
	escaped := hr.URL.EscapedPath()
	path, err := urlpath.Clean(escaped)
	if err != nil {
		path = escaped
	}
	r.Path = path
	return err
}

// Identify finds the client of a request: the peer is its RemoteAddr, whose port
// does not count (case S49), and the forwarding lines are all of the resolver's
// header.
func Identify(resolver *clientip.Resolver, hr *http.Request) netip.Addr {
	peer, _ := clientip.ParsePeer(hr.RemoteAddr) // none is the zero Addr, which vouches for nobody
	return resolver.Resolve(peer, hr.Header[resolver.Header()])
}

// peers is the resolver that trusts no proxy.
func peers() *clientip.Resolver {
	r, _ := clientip.New(clientip.Options{}) // the zero value is valid
	return r
}
