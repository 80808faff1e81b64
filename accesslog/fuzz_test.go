package accesslog_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/weirhq/weir/accesslog"
)

// samples are one line of each kind.
var samples = []string{
	`192.0.2.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /a?b HTTP/1.0" 200 2326 "http://example.com/" "Mozilla/4.08 [en]" "198.51.100.9"`,
	`www.example.com:443 2001:db8::1 - - [29/Feb/2024:13:55:36 +0000] "\x16\x03" 400 - "-" "\"\\"`,
	`[2016-04-15T20:17:00.310Z] "POST /api HTTP/2" 204 - 154 7 226 100 "192.0.2.7" "ua" "id" "host" "tcp://10.0.0.9:80"`,
	`{"ts":1646861401.52,"request":{"remote_ip":"192.0.2.7","method":"GET","uri":"/","headers":{"User-Agent":["a","b"]}},"status":200}`,
	`{"time":"2024-02-29T23:59:59Z","ip":"::1","method":"GET","path":"/\ud83d\ude00\u","headers":{}}`,
	`{"StartUTC":1e300,"RequestMethod":"GET","RequestPath":"/"}`,
	"{\"a\":[[[[\x00\xff",
}

func FuzzParse(f *testing.F) {
	for _, line := range samples {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, format := range []accesslog.Format{accesslog.Auto, accesslog.Combined, accesslog.JSON, accesslog.Envoy} {
			var r accesslog.Record
			if err := r.Parse(line, format); err != nil {
				if _, ok := err.(accesslog.Reason); !ok {
					t.Fatalf("%T is no Reason", err)
				}
				continue
			}
			// Undoing an escape never makes text longer, so no line costs more than
			// a few times its length.
			total := len(r.Client) + len(r.Method) + len(r.Host) + len(r.Target) + len(r.Path) + len(r.Query) +
				len(r.Referer) + len(r.UserAgent) + len(r.User)
			if total > 4*len(line)+len("/") {
				t.Errorf("%d bytes of fields from %d bytes: %+v", total, len(line), r)
			}
			if r.At < 0 || r.Status < 0 || r.Status > 999 || r.Bytes < 0 {
				t.Errorf("out of range: %+v", r)
			}
			if r.Method == "" && r.Path != "" {
				t.Errorf("a path without a method: %+v", r)
			}
			if strings.Contains(r.Path, "?") {
				t.Errorf("a query in the path %q", r.Path)
			}
			if r.Addr.Zone() != "" || r.Addr.Is4In6() {
				t.Errorf("address %v is not in its plain form", r.Addr)
			}
			for _, name := range []string{"X-Forwarded-For", "X-Api-Key", "Cookie", ""} {
				r.Header(name)
			}
			if c := r.Clone(); *c != r {
				t.Errorf("clone %+v of %+v", *c, r)
			}
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(strings.Join(samples, "\r\n")), int16(40))
	f.Add([]byte("\ufeff\n\n"+samples[0]), int16(1000))
	f.Add([]byte{0x1f, 0x8b, 8, 0}, int16(0))
	f.Fuzz(func(t *testing.T, log []byte, maxLine int16) {
		opts := accesslog.Options{MaxLine: max(int(maxLine), 0), MaxBuffered: 3}
		logs, err := accesslog.Open([]string{"-"}, bytes.NewReader(log), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		var last, n int64
		for {
			r, err := logs.Next()
			if err != nil {
				if err != io.EOF && !bytes.HasPrefix(log, []byte{0x1f, 0x8b}) {
					t.Fatal(err)
				}
				break
			}
			if n++; n > 1 && r.At < last {
				t.Fatalf("%v after %v", r.At, last)
			}
			last = r.At
		}
		s := logs.Stats()
		var skipped int64
		for _, count := range s.Reasons {
			skipped += count
		}
		if s.Records != n || s.Skipped != skipped || s.Lines < s.Records+s.Skipped+s.Empty {
			t.Errorf("delivered %d; stats %+v", n, s)
		}
		if !bytes.HasPrefix(log, []byte{0x1f, 0x8b}) && s.Lines != s.Records+s.Skipped+s.Empty {
			t.Errorf("lines do not add up: %+v", s)
		}
		for _, e := range s.Examples {
			if strings.ContainsFunc(e.String(), func(c rune) bool { return c < ' ' || c == 0x7f }) {
				t.Errorf("control character in %q", e.String())
			}
		}
	})
}
