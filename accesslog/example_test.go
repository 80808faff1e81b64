package accesslog_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirhq/weir/accesslog"
)

func Example() {
	log := `192.0.2.1 - - [01/Mar/2026:10:00:02 +0000] "GET /slow?q=1 HTTP/1.1" 200 5120 "-" "curl/8.5.0"
this line is broken
192.0.2.7 - - [01/Mar/2026:10:00:01 +0000] "POST /login HTTP/1.1" 302 0 "-" "curl/8.5.0"
{"time":"2026-03-01T10:00:03Z","ip":"2001:db8::7","method":"GET","path":"/users","status":200,"headers":{"X-Api-Key":"k1"}}
`
	logs, err := accesslog.Open([]string{"-"}, strings.NewReader(log), accesslog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer logs.Close()
	for {
		rec, err := logs.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%v %v %s %s %d %q\n", rec.Time().Format("15:04:05"), rec.Addr, rec.Method, rec.Path, rec.Status, rec.Header("X-Api-Key"))
	}
	for _, e := range logs.Stats().Examples {
		fmt.Println(e)
	}
	// Output:
	// 10:00:01 192.0.2.7 POST /login 302 ""
	// 10:00:02 192.0.2.1 GET /slow 200 ""
	// 10:00:03 2001:db8::7 GET /users 200 "k1"
	// -:2: no time that can be read: "this line is broken"
}

func ExampleRecord_Parse() {
	var rec accesslog.Record
	err := rec.Parse(`192.0.2.1 - ann [29/Feb/2024:23:30:00 -0100] "GET /a%20b?c=d HTTP/1.1" 200 12`, accesslog.Auto)
	fmt.Println(rec.Time(), rec.User, rec.Path, rec.Query, err)
	// Output: 2024-03-01 00:30:00 +0000 UTC ann /a%20b c=d <nil>
}
