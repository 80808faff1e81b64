// Package headers writes what a rate-limited client is told: the RateLimit,
// RateLimit-Policy, Retry-After and X-RateLimit fields, the problem document,
// the sentence in the client's language and the page that counts down.
//
// Everything is appended to the caller's slice and nothing is kept, so all
// functions may be called concurrently and none allocates while dst has room.
// The package knows no net/http and decides nothing: a door turns its decision
// into [Limit] values and chooses which of the answers to send.
//
// # Two fields and a wait
//
// RateLimit-Policy says what the policies are, RateLimit what is left of them,
// as draft-ietf-httpapi-ratelimit-headers-11 (May 2026) defines them: Lists of
// RFC 9651, one String item per policy.
//
//	RateLimit-Policy: "login";q=5;w=60
//	RateLimit: "login";r=0;t=11
//	Retry-After: 11
//
// The working group's text of August 2026 calls r and t "a" and "w". Clients
// of drafts 10 and 11 read r and t, so these stay until an RFC says otherwise.
//
// Times are rounded up to whole seconds, so a client that waits as told never
// comes too early. Retry-After is the longest wait of all policies that
// refused, and absent when waiting cannot help.
//
// # Beyond the draft
//
// Its integers are seconds and quota units; what does not fit is said in
// parameters of our own, which clients of the draft skip:
//
//   - weir-burst: the units that may be taken at once, when that is not q;
//   - weir-window: the window in milliseconds, rounded up, when it is not whole
//     seconds. Then w is the window rounded up to seconds, a pace that is never
//     too fast, and is left out for windows below a second, where the rounded
//     pace would be absurdly slow.
//
// A String holds printable ASCII only. Other bytes of a policy name, and the
// percent sign, are percent-encoded as in a URI: 登录 becomes
// "%E7%99%BB%E5%BD%95", which decodeURIComponent turns back. JSON and HTML
// carry the name itself.
package headers
