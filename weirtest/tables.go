package weirtest

import "testing"

// tables are literal instants and answers for every algorithm.
func tables(t *testing.T, open opener) {
	open.script(t, "token_bucket", `
policy p  3 per 1s  burst 4
at 0s        take k x4  ok      remaining 0  reset 1333334us
at 333333us  take k     refuse  remaining 0  retry 1us
at 333334us  take k     ok      remaining 0  reset 1333333us
at 333334us  take k     refuse  retry 333333us
at 1s        take k x2  ok      remaining 0  reset 1333334us
at 60s       take k     ok      remaining 3  reset 333334us
at 60s       take k x5  refuse  remaining 3  retry never
`)
	open.script(t, "token_bucket that lends ahead", `
policy p  1 per 1s
at 0s  take k slack 2s  ok  wait 0s
at 0s  take k slack 2s  ok  wait 1s
at 0s  take k slack 2s  ok  wait 2s     reset 3s
at 0s  take k slack 2s  refuse  retry 1s
at 0s  take k           refuse  retry 3s
at 1s  take k slack 2s  ok  wait 2s
at 1s  take k x2 slack 1h  refuse  retry never
`)
	open.script(t, "leaky_queue", `
policy p  leaky_queue 2 per 1s  queue 3
at 0s     take k     ok  wait 0s     remaining 3  reset 500ms
at 0s     take k x2  ok  wait 500ms  remaining 1
at 0s     take k x2  refuse  retry 500ms  remaining 1
at 0s     take k     ok  wait 1.5s   remaining 0
at 0s     take k     refuse  retry 500ms  reset 2s
at 250ms  take k     refuse  retry 250ms
at 500ms  take k     ok  wait 1.5s
at 500ms  take k x5  refuse  retry never
at 500ms  take k slack 1s  refuse  retry 1s
at 9s     take k     ok  wait 0s
`)
	open.script(t, "fixed_window", `
policy p  fixed_window 5 per 10s
at 9s    take k x2  ok      remaining 3  reset 1s
at 9s    take k x4  refuse  remaining 3  retry 1s
at 9.9s  take k x3  ok      remaining 0  reset 100ms
at 10s   take k x5  ok      remaining 0  reset 10s
at 10s   take k     refuse  retry 10s
at 35s   take k     ok      remaining 4  reset 5s
at 35s   take k x6  refuse  retry never
`)
	open.script(t, "fixed_window that reserves", `
policy p  fixed_window 3 per 10s
at 0s   take k x3 slack 1m  ok  wait 0s
at 0s   take k x2 slack 1m  ok  wait 10s  remaining 0  reset 20s
at 0s   take k x2 slack 1m  ok  wait 20s
at 0s   take k x2 slack 20s refuse  retry 10s
at 10s  take k              refuse  retry 10s
at 20s  take k              ok      remaining 0
at 30s  take k              ok      remaining 2
`)
	open.script(t, "fixed_window_first", `
policy p  fixed_window_first 2 per 10s
at 7s      take k  ok      remaining 1  reset 10s
at 12s     take k  ok      remaining 0  reset 5s
at 12s     take k  refuse  retry 5s
at 17s     take k  ok      remaining 1  reset 10s
at 40s     take k x3  refuse  retry never  reset 0s
at 41s     take k  ok      reset 10s
`)
	open.script(t, "sliding_window", `
policy p  sliding_window 10 per 10s
at 0s     take k x10  ok      remaining 0  reset 20s
at 1s     take k      refuse  retry 10s
at 11s    take k      ok      remaining 0  reset 19s
at 11s    take k      refuse  retry 1s
at 12s    take k      ok      remaining 0
at 15s    take k x3   ok      remaining 0
at 20s    take k x5   ok      remaining 0
at 20s    take k x11  refuse  retry never
at 40s    peek k      ok      remaining 10  reset 0s
`)
	open.script(t, "sliding_slices", `
policy p  sliding_slices 4 per 10s  slices 5
at 1s     take k     ok      remaining 3  reset 9s
at 3.5s   take k     ok      remaining 2  reset 8.5s
at 3.9s   take k x2  ok      remaining 0  reset 8.1s
at 9.9s   take k     refuse  retry 100ms
at 10s    take k     ok      remaining 0
at 11.9s  take k x2  refuse  retry 100ms
at 12s    take k x3  ok      remaining 0  reset 10s
`)
	open.script(t, "sliding_log", `
policy p  sliding_log 5 per 10s
at 1s       take k     ok      remaining 4  reset 10s
at 2.5s     take k x2  ok      remaining 2
at 9s       take k x2  ok      remaining 0
at 10s      take k     refuse  retry 1s  reset 9s
at 10s      take k x2  refuse  retry 2.5s
at 10s      take k x6  refuse  retry never
at 10.999999s  take k  refuse  retry 1us
at 11s      take k     ok      remaining 0
at 12.5s    take k x2  ok      remaining 0
at 60s      peek k     ok      remaining 5  reset 0s
`)
	// Guava's own test of SmoothWarmingUp, each wait added to those before it.
	open.script(t, "warm_up", `
policy p  warm_up 2 per 1s  warm_up 4s
at 0s  take k slack 1m  ok  wait 0s
at 0s  take k slack 1m  ok  wait 1375ms
at 0s  take k slack 1m  ok  wait 2500ms
at 0s  take k slack 1m  ok  wait 3375ms
at 0s  take k slack 1m  ok  wait 4s
at 0s  take k slack 1m  ok  wait 4500ms
at 0s  take k slack 1m  ok  wait 5s
at 0s  take k slack 1s  refuse  retry 4500ms
at 5s  take k           refuse  retry 500ms
at 5s  take k x3        refuse  retry never
`)
	open.script(t, "quota 0", `
policy bucket  0 per 1s
policy queue   leaky_queue 0 per 1s
policy fixed   fixed_window 0 per 1s
policy first   fixed_window_first 0 per 1s
policy slide   sliding_window 0 per 1s
policy slices  sliding_slices 0 per 1s
policy log     sliding_log 0 per 1s
at 0s   take k     refuse  retry never  remaining 0  by bucket by queue by fixed by first by slide by slices by log
at 10s  take k x0  ok
`)
	open.script(t, "the slowest and the fastest rates", `
policy year  1 per 365d
policy fast  1000000 per 1s
at 0s       take k  ok      remaining 0 of year  reset 8760h of year  reset 1us of fast
at 1us      take k  refuse  by year  retry 8759h59m59.999999s  remaining 1000000 of fast
at 8760h    take k  ok
`)
}
