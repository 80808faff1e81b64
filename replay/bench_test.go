package replay_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/accesslog"
	"github.com/weirhq/weir/replay"
)

// combinedLog writes lines in the combined format, a hundred a second, of clients
// chosen at random.
func combinedLog(lines, keys int) []byte {
	random := rand.New(rand.NewPCG(1, uint64(keys)))
	var b bytes.Buffer
	for i := range lines {
		k := random.IntN(keys)
		fmt.Fprintf(&b, "10.%d.%d.%d - - [%s] \"GET /api/items/%d HTTP/1.1\" 200 %d \"https://example.com/\" \"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36\"\n",
			k>>16&255, k>>8&255, k&255, start.Add(time.Duration(i)*10*time.Millisecond).Format("02/Jan/2006:15:04:05 -0700"),
			random.IntN(500), random.IntN(50000), 100+random.IntN(25))
	}
	return b.Bytes()
}

// BenchmarkReplay is one line of a log under one rule that matches it.
func BenchmarkReplay(b *testing.B) {
	for _, keys := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			const lines = 1_000_000
			log := combinedLog(lines, keys)
			doc := document(b, `{"rules":[{"name":"everything","match":"/**","key":"ip","limit":"100/s"}]}`)
			b.SetBytes(int64(len(log) / lines))
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += lines {
				n := min(b.N-done, lines)
				end := len(log)
				if n < lines {
					end = nth(log, n)
				}
				logs, err := accesslog.Open([]string{"-"}, io.LimitReader(bytes.NewReader(log), int64(end)), accesslog.Options{})
				if err != nil {
					b.Fatal(err)
				}
				r, err := replay.Run(b.Context(), logs, doc, replay.Options{})
				if err != nil || r.Requests != int64(n) {
					b.Fatal(err, r)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

// nth is where line n of a log ends.
func nth(log []byte, n int) int {
	at := 0
	for range n {
		at += bytes.IndexByte(log[at:], '\n') + 1
	}
	return at
}
