package accesslog_test

import (
	"bufio"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/accesslog"
)

// realLog is ten thousand lines of a real server, up to a minute out of order.
const realLog = "../testdata/access.log"

// summary counts what the two readings of realLog must agree on.
type summary struct {
	lines    int
	bytes    int64
	from, to time.Time
	by       map[string]int // "ip 192.0.2.1", "GET", "/path", "404", "agent …"
}

func (s *summary) add(at time.Time, ip, method, target, status, agent string, bytes int64) {
	s.lines++
	s.bytes += bytes
	if s.from.IsZero() || at.Before(s.from) {
		s.from = at
	}
	if at.After(s.to) {
		s.to = at
	}
	for _, key := range []string{"ip " + ip, "method " + method, "target " + target, "status " + status, "agent " + agent} {
		s.by[key]++
	}
}

// obvious reads realLog in the most obvious way.
func obvious(t *testing.T) summary {
	t.Helper()
	// One line is cut off in its last field.
	line := regexp.MustCompile(`^(\S+) \S+ \S+ \[([^]]+)\] "(\S+) (\S+)[^"]*" (\d+) (\S+) "(?:[^"]*)" "(.*?)"?$`)
	file, err := os.Open(realLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := summary{by: map[string]int{}}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			t.Errorf("the regular expression cannot read %q", lines.Text())
			continue
		}
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
		if err != nil {
			t.Error(err)
		}
		var bytes int64
		for _, c := range m[6] {
			if c != '-' {
				bytes = bytes*10 + int64(c-'0')
			}
		}
		if m[7] == "-" {
			m[7] = ""
		}
		s.add(at.UTC(), m[1], m[3], m[4], m[5], m[7], bytes)
	}
	return s
}

func TestRealLogIsReadAsTheObviousWayReadsIt(t *testing.T) {
	logs, err := accesslog.Open([]string{realLog}, nil, accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	got := summary{by: map[string]int{}}
	var last int64
	for {
		r, err := logs.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.At < last {
			t.Fatalf("line %d at %v is out of order", r.Line, r.Time())
		}
		last = r.At
		got.add(r.Time(), r.Addr.String(), r.Method, r.Target, itoa(r.Status), r.UserAgent, r.Bytes)
	}

	stats := logs.Stats()
	info, err := os.Stat(realLog)
	if err != nil {
		t.Fatal(err)
	}
	if stats.Lines != 10000 || stats.Records != 10000 || stats.Skipped != 0 || stats.Late != 0 ||
		stats.BytesRead != info.Size() || stats.BytesTotal != info.Size() {
		t.Errorf("stats %+v", stats)
	}
	want := obvious(t)
	if got.lines != want.lines || got.bytes != want.bytes || !got.from.Equal(want.from) || !got.to.Equal(want.to) {
		t.Errorf("got %d lines, %d bytes, %v to %v\nwant %d lines, %d bytes, %v to %v",
			got.lines, got.bytes, got.from, got.to, want.lines, want.bytes, want.from, want.to)
	}
	if from, to := time.Date(2015, 5, 17, 10, 5, 0, 0, time.UTC), time.Date(2015, 5, 20, 21, 5, 59, 0, time.UTC); got.from != from || got.to != to {
		t.Errorf("from %v to %v, want %v to %v", got.from, got.to, from, to)
	}
	if !maps.Equal(got.by, want.by) {
		for _, key := range slices.Sorted(maps.Keys(want.by)) {
			if got.by[key] != want.by[key] {
				t.Errorf("%s: %d times, want %d", key, got.by[key], want.by[key])
			}
		}
	}
}

func itoa(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}
