package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/clientip"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/server/config"
	"github.com/weirhq/weir/server/gateway"
	"github.com/weirhq/weir/server/metrics"
	"github.com/weirhq/weir/weirhttp"
)

func Example() {
	site := httptest.NewServer(fine)
	defer site.Close()
	if err := run(site.URL); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 200 OK
	// 200 OK
	// 429 Too Many Requests
}

// run asks a gateway in front of a site three times.
func run(site string) error {
	c, problems := config.Load("weir.yaml", []byte(`
gateway: {listen: "127.0.0.1:0", routes: [{match: /**, upstreams: ["`+site+`"]}]}
rules: [{name: all, key: ip, limit: 2/h}]
`))
	if c == nil {
		return problems
	}
	program, err := rules.Compile(c.Rules, weirhttp.Binding())
	if err != nil {
		return err
	}
	limiter, err := weir.New(weir.NewMemory(weir.MemoryOptions{}), program.Ruleset, weir.Options[*weirhttp.Request]{})
	if err != nil {
		return err
	}
	resolver, err := clientip.New(clientip.Options{})
	if err != nil {
		return err
	}
	g, err := gateway.New(gateway.Options{
		Routes: c.Gateway.Routes, Timeouts: c.Gateway.Timeouts.Fill(), Limiter: limiter,
		Resolver: resolver, Metrics: metrics.New(), Log: slog.Default(),
	})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", string(c.Gateway.Listen))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, ln) }()
	for range 3 {
		resp, err := http.Get("http://" + ln.Addr().String())
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		fmt.Println(resp.Status)
	}
	stop()
	return <-ended
}
