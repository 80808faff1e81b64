package weirhttp_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rules"
	"github.com/weirhq/weir/weirhttp"
)

// Five logins a minute for each client, a hundred requests a second for each key.
func Example() {
	login := weirhttp.Rule{
		Name: "login", Key: weirhttp.ByIP, Limits: []weir.Limit{weir.PerMinute(5)},
		Match: func(r *weirhttp.Request) bool { return r.Method == "POST" && r.Path == "/login" },
	}
	api := weirhttp.Rule{
		Name: "api", Key: weirhttp.ByHeader("X-Api-Key"), Limits: []weir.Limit{weir.PerSecond(100)},
		NoKey: weir.FallbackKey, Fallback: weirhttp.ByIP,
	}
	l, err := weirhttp.New(login, api)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "welcome") })
	limited := weirhttp.Middleware(l, weirhttp.Options{})(mux)
	// http.ListenAndServe(":8080", limited)

	for range 6 {
		w := httptest.NewRecorder()
		limited.ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
		fmt.Printf("%d %s %q\n", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 "login";r=4;t=12, "api";r=99;t=1 ""
	// 200 "login";r=3;t=24, "api";r=98;t=1 ""
	// 200 "login";r=2;t=36, "api";r=97;t=1 ""
	// 200 "login";r=1;t=48, "api";r=96;t=1 ""
	// 200 "login";r=0;t=60, "api";r=95;t=1 ""
	// 429 "login";r=0;t=12, "api";r=95;t=1 "12"
}

// Rules from a file know the fields of a request by name.
func ExampleBinding() {
	doc, problems := rules.LoadJSON("rules.json", []byte(`{"rules": [
		{"name": "search", "match": "GET /search", "key": "query:q", "limit": "1/m"}
	]}`))
	if err := problems.Err(); err != nil {
		log.Fatal(err)
	}
	program, err := rules.Compile(doc, weirhttp.Binding())
	if err != nil {
		log.Fatal(err)
	}
	l, err := weirhttp.New(program.Ruleset.Rules...)
	if err != nil {
		log.Fatal(err)
	}
	limited := weirhttp.Middleware(l, weirhttp.Options{})(http.NotFoundHandler())
	for _, target := range []string{"/search?q=weir", "/search?q=dam", "//search?q=%77eir"} {
		w := httptest.NewRecorder()
		limited.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		fmt.Println(target, w.Code)
	}
	// Output:
	// /search?q=weir 404
	// /search?q=dam 404
	// //search?q=%77eir 429
}
