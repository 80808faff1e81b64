package weirredis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"
)

// ClientOptions say where Redis is and how it is spoken to. Adapters take them.
type ClientOptions struct {
	// Addresses are HOST:PORT of the server, of Sentinels if Master is set, or of some
	// nodes of a Cluster.
	Addresses []string
	// Username and Password authenticate; the zero values do not.
	Username, Password string
	// TLS is used if not nil, for Sentinels too.
	TLS *tls.Config
	// Database is what SELECT takes. A Cluster has only 0.
	Database int
	// Master is the name by which Sentinels know the server.
	Master string
	// SentinelUsername and SentinelPassword authenticate to Sentinels.
	SentinelUsername, SentinelPassword string
	// Cluster is whether the addresses are those of a Cluster.
	Cluster bool
	// DialTimeout bounds connecting; 200 ms if 0. Some adapters count the greeting in.
	DialTimeout time.Duration
	// Connections is how many connections to each server carry calls. 0 leaves it to the
	// adapter, which also says how many it can have.
	Connections int
}

// ErrClientOptions is wrapped by what an adapter says of options that contradict each
// other.
var ErrClientOptions = errors.New("weirredis: these options cannot be")

// Check says what is wrong with the options of a client that can have so many
// connections to a server, and fills in the DialTimeout. The error wraps
// ErrClientOptions.
func (o *ClientOptions) Check(connections int) error {
	wrong := func(what string) error { return fmt.Errorf("%w: %s", ErrClientOptions, what) }
	switch {
	case len(o.Addresses) == 0:
		return wrong("Addresses is empty; name at least one, such as 127.0.0.1:6379")
	case o.Cluster && o.Master != "":
		return wrong("a Cluster has no Sentinels, so leave Master out")
	case o.Cluster && o.Database != 0:
		return wrong("a Cluster has database 0 alone")
	case !o.Cluster && o.Master == "" && len(o.Addresses) > 1:
		return wrong("several Addresses need Cluster, or the name of a Master if they are Sentinels")
	case o.Connections < 0 || o.Connections > connections:
		return wrong(fmt.Sprintf("Connections %d is not within 0 and %d", o.Connections, connections))
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = 200 * time.Millisecond
	}
	return nil
}
