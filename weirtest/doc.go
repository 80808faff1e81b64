// Package weirtest holds limiters to their promises: a clock moved by hand, an
// observer that remembers, the conformance suite that every [weir.Store] must
// pass, and a small language in which the behaviour of limits is written down.
//
// # Scripts
//
// A script is documentation, test and bug report in one: requests at literal
// instants, and what must come of each. The same script runs on a bare store, on
// a [weir.Limiter] and on any other door that implements [Target].
//
//	# Use is kept over a reload; the new limit applies at once.
//	policy login  5 per 1m
//	at 0s   take alice x5     ok      remaining 0
//	at 1s   take alice        refuse  retry 11s
//	at 12s  take alice        ok      remaining 0
//	at 12s  peek alice        refuse  by login
//	at 13s  refund alice
//	at 13s  take alice        ok
//	reload policy login  10 per 1m
//	at 20s  take alice x6     ok
//
// A script is read line by line. Words are separated by blanks; a word that
// holds blanks is quoted, 'so' or "so". A # that begins a word begins a comment.
//
// # Policies
//
//	policy NAME [ALGORITHM] N per DURATION [OPTION…]
//	reload policy NAME …
//
// ALGORITHM is one of [weir.ParseAlgorithm]'s names, token_bucket if left out.
// The options are those of [weir.Limit], burst N, queue N, slices N, max_wait
// DURATION and warm_up DURATION; unit NAME, what is counted; shadow, to watch and
// refuse nothing; and shared, to count all keys in one partition. Every request
// asks all policies, in the order written, all or nothing. After the first
// request, reload replaces the policy of that name or adds one, and what was used
// stays used. A DURATION is Go's, with d for days.
//
//	rules FILE
//	reload rules FILE
//
// take the policies from a rule file instead, if the target knows how to read
// one; relative names are the target's to resolve.
//
// # Steps
//
//	[at DURATION | back to DURATION] REQUEST [N times [every DURATION]] OUTCOME
//
// The instant counts from the start, which lies on an edge of every window of
// whole minutes, hours or days that is likely to be asked for. It stays where it
// was if none is given. Time goes forward; only "back to" lets the clock step
// back, as a clock that is being corrected does. REQUEST is one of
//
//	take KEY [xN] [slack DURATION]     N units, 1 if left out; slack accepts a wait
//	peek KEY [xN] [slack DURATION]     what take would say; takes nothing
//	refund KEY                         gives back the last allowed take of KEY
//	settle KEY xN [unit NAME]          makes the last allowed take of KEY cost N
//	reset KEY                          forgets what KEY has used
//	METHOD PATH [host NAME] from ADDRESS [header 'NAME: VALUE'…]
//
// refund, settle and reset have no OUTCOME. All others have one of
//
//	ok | refuse            each of the requests
//	ok ok refuse           each by itself, in order
//	10 ok 40 refuse        the same in runs
//	allow 33               so many are allowed, whichever they are
//
// and after it, of the last request, any of
//
//	by NAME                refused by this enforced policy; several list all of them
//	over NAME              this policy, shadow or not, is exceeded
//	wait DURATION          how long an allowed request waits
//	remaining N [of NAME]  units left: of the policy, or the least of the enforced ones
//	reset DURATION [of NAME]  until all is there again: of the policy, or the longest
//	retry DURATION [of NAME]  of the request, or of the policy; never if it cannot
//
// Times are exact to the microsecond, as far as the target can tell them.
package weirtest
