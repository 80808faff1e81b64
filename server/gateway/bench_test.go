package gateway_test

import (
	"io"
	"net/http"
	"testing"
)

// BenchmarkGateway is a request through the gateway to an upstream and back, all in
// one process, over connections that are kept; BenchmarkDirect is without the
// gateway.
func BenchmarkGateway(b *testing.B) {
	w := start(b, setup{upstream: fine, config: base + "rules: [{name: all, match: /**, key: ip, limit: 1000000000/s}]\n"})
	get(b, "http://"+w.address+"/")
}

func BenchmarkDirect(b *testing.B) { get(b, named(b, "ok")) }

func get(b *testing.B, url string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := client.Get(url)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}
