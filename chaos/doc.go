// Package chaos has only tests: of what several nodes on one Redis allow while things
// break. Servers are killed, stopped and failed over, slots move, answers are delayed,
// cut and swallowed, and nodes die, all under load.
//
// Every unit that is allowed is noted with its instant, and afterwards an exact count says
// whether any window had more than the limit and what docs/redis.md allows on top. The
// tests run short by default; `make chaos` runs them long and writes a report.
package chaos
