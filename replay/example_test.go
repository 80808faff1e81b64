package replay_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/weirhq/weir/accesslog"
	"github.com/weirhq/weir/replay"
	"github.com/weirhq/weir/rules"
)

func ExampleRun() {
	const log = `203.0.113.9 - - [05/Jan/2026:10:00:00 +0000] "POST /login HTTP/1.1" 200 5 "-" "curl"
203.0.113.9 - - [05/Jan/2026:10:00:01 +0000] "POST /login HTTP/1.1" 401 5 "-" "curl"
203.0.113.9 - - [05/Jan/2026:10:00:02 +0000] "POST /login HTTP/1.1" 401 5 "-" "curl"
198.51.100.7 - - [05/Jan/2026:10:00:30 +0000] "POST /login HTTP/1.1" 200 5 "-" "curl"
`
	logs, err := accesslog.Open([]string{"-"}, strings.NewReader(log), accesslog.Options{})
	if err != nil {
		panic(err)
	}
	limit := rules.Limit{Quota: 2, Window: 60e9}
	doc := &rules.Document{Rules: []rules.Rule{
		{Name: "login", Match: &rules.Match{Pattern: "POST /login"}, Key: rules.Key{"ip"}, Limit: &limit},
	}}
	report, err := replay.Run(context.Background(), logs, doc, replay.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Allowed, "allowed,", report.Refused, "refused:", report.Rules[0].Top[0].Key)
	if err := report.WriteText(os.Stdout, replay.TextOptions{}); err != nil {
		panic(err)
	}
	// Output:
	// 3 allowed, 1 refused: 203.0.113.9
	// 4 requests, 2026-01-05 10:00:00 – 2026-01-05 10:00:30 UTC (30s)
	// 3 allowed, 1 refused (25.0 %)
	//
	// RULE   MODE     ASKED  ALLOWED  REFUSED  WOULD REFUSE  KEYS  KEYS REFUSED
	// login  enforce      4        3        1             0     2             1
	//
	// login  2/m by ip
	//   most of one key in any  p50  p90  p99  p99.9  max
	//   second                    1    1    1      1    1
	//   minute                    1    3    3      3    3
	//   hour                      1    3    3      3    3
	//
	//   KEY           ASKED  REFUSED
	//   203.0.113.9       3        1
	//   198.51.100.7      1        0
}
