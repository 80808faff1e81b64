package accesslog_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/weirhq/weir/accesslog"
)

// BenchmarkReader reads a log from memory: ten thousand real lines in the
// combined format, up to a minute out of order, and as many made ones of JSON.
func BenchmarkReader(b *testing.B) {
	combined, err := os.ReadFile(realLog)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		log  []byte
	}{
		{"combined", combined},
		{"vhost", madeLog(10_000, func(b []byte, i int, at time.Time) []byte {
			return fmt.Appendf(b, "www.example.com:443 192.0.2.%d - - [%s] \"GET /api/v1/items/%d?page=2 HTTP/1.1\" 200 1234 \"https://www.example.com/\" \"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\"\n",
				i%256, at.Format("02/Jan/2006:15:04:05 -0700"), i)
		})},
		{"nginx-json", madeLog(10_000, func(b []byte, i int, at time.Time) []byte {
			return fmt.Appendf(b, `{"time_iso8601":%q,"remote_addr":"192.0.2.%d","request_method":"GET","request_uri":"/api/v1/items/%d?page=2","host":"www.example.com","status":200,"body_bytes_sent":1234,"http_referer":"https://www.example.com/","http_user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"}`+"\n",
				at.Format(time.RFC3339), i%256, i)
		})},
		{"caddy", madeLog(10_000, func(b []byte, i int, at time.Time) []byte {
			return fmt.Appendf(b, `{"level":"info","ts":%d.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"192.0.2.%d","remote_port":"41342","client_ip":"192.0.2.%d","proto":"HTTP/2.0","method":"GET","host":"www.example.com","uri":"/api/v1/items/%d?page=2","headers":{"User-Agent":["Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"],"Accept":["*/*"]},"tls":{"resumed":false,"version":772}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}`+"\n",
				at.Unix(), i%256, i%256, i)
		})},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.log)))
			lines := bytes.Count(c.log, []byte("\n"))
			for b.Loop() {
				logs, err := accesslog.Open([]string{"-"}, bytes.NewReader(c.log), accesslog.Options{})
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for {
					if _, err := logs.Next(); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != lines {
					b.Fatalf("%d records of %d lines", n, lines)
				}
			}
			b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
			b.ReportMetric(0, "ns/op") // of a whole log, which says little
		})
	}
}

// madeLog makes a log of n lines, fifty a second.
func madeLog(n int, line func(b []byte, i int, at time.Time) []byte) []byte {
	var log []byte
	begin := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		log = line(log, i, begin.Add(time.Duration(i)*20*time.Millisecond))
	}
	return log
}
