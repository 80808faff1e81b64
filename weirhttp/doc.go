// Package weirhttp limits net/http: middleware for a ServeMux, chi or any other
// [http.Handler], the fields of a request that rules may read, and key functions
// for those who write their rules in Go.
//
//	l, err := weirhttp.New(weirhttp.Rule{
//		Name: "login", Key: weirhttp.ByIP, Limits: []weir.Limit{weir.PerMinute(5)},
//		Match: func(r *weirhttp.Request) bool { return r.Method == "POST" && r.Path == "/login" },
//	})
//	…
//	http.ListenAndServe(":8080", weirhttp.Middleware(l, weirhttp.Options{})(mux))
//
// Rules from a file are compiled with [Binding].
//
// # Where to put it
//
// Before authentication, or guessing passwords costs nothing; and inside of what
// adds CORS fields, or scripts of other origins cannot read a refusal.
//
// # What clients are told
//
// Allowed answers carry RateLimit and RateLimit-Policy, or what [Options].Headers
// says. They are set before the handler runs, so a handler that sets the same
// names with Header.Set has the last word, and one that answers with a redirect
// and wants none deletes them. Refused requests get 429 (or the rule's status; 503
// if the store failed and the rule is closed then), Retry-After, and a problem
// document, a page, or the rule's own body. The handler does not run.
//
// # What becomes of the body of a refused request
//
// It is not read. net/http keeps an HTTP/1 connection by draining up to 256 KiB
// that were not; the middleware asks it to close instead when more than 64 KiB are
// announced, so that refusing an upload is cheaper than accepting it. A client that
// trickles less than that is ended by the server's ReadTimeout: set one. HTTP/2
// resets the stream.
package weirhttp
