package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/accesslog"
	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/rules"
)

// realLog is a real log of ten thousand requests, out of order by up to a minute.
const realLog = "../testdata/access.log"

// start is the first instant of logs that tests write, an edge of every window.
var start = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// document is a document of rules in JSON.
func document(t testing.TB, text string) *rules.Document {
	t.Helper()
	doc, problems := rules.LoadJSON("rules.json", []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return doc
}

// reading opens the lines of a log.
func reading(t testing.TB, text string) replay.Records {
	t.Helper()
	r, err := accesslog.Open([]string{"-"}, strings.NewReader(text), accesslog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// opening opens a file as often as it is asked to.
func opening(name string) func() (replay.Records, error) {
	return func() (replay.Records, error) { return accesslog.Open([]string{name}, nil, accesslog.Options{}) }
}

// run replays lines.
func run(t testing.TB, doc *rules.Document, text string, o replay.Options) *replay.Report {
	t.Helper()
	r, err := replay.Run(t.Context(), reading(t, text), doc, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// line is a line in the combined format, so long after start.
func line(after time.Duration, ip, request string) string {
	return fmt.Sprintf("%s - - [%s] \"%s HTTP/1.1\" 200 5 \"-\" \"curl\"\n", ip, start.Add(after).Format("02/Jan/2006:15:04:05 -0700"), request)
}

// find is a rule of a report.
func find(t testing.TB, r *replay.Report, name string) *replay.RuleReport {
	t.Helper()
	for i := range r.Rules {
		if r.Rules[i].Name == name {
			return &r.Rules[i]
		}
	}
	t.Fatalf("no rule %q in the report", name)
	return nil
}
