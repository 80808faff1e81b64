// Package replay runs rules over the requests of an access log, as if they were
// in force when it was written: the same compiled rules, the same Limiter and the
// same Memory that limit live traffic, on a clock that stands where the log
// stands. A day of traffic takes seconds, and the answer is what would have
// happened, rule by rule and key by key.
//
//	logs, err := accesslog.Open([]string{"access.log"}, nil, accesslog.Options{})
//	…
//	report, err := replay.Run(ctx, logs, doc, replay.Options{})
//	…
//	err = report.WriteText(os.Stdout, replay.TextOptions{})
//
// [Run] makes one pass and keeps counts per key, never lines, so its memory is
// bounded by keys. [Advise] reads a log several times: it looks which routes there
// are, how fast each key asks for them, proposes a limit for each that leaves a
// chosen share of the keys untouched, and replays its proposal to see that it
// does. A [Report] is JSON by its tags, a table by [Report.WriteText] and one
// self-contained page by [Report.WriteHTML].
//
// # What a log cannot tell
//
// The log has the traffic that came. Clients that are refused come back later, or
// give up, and neither is in it. A rule keyed by what the log does not have, such
// as a header of which the combined format knows nothing, sees it missing
// everywhere. Costs that are known only after the answer are not charged.
//
// # Peak rates
//
// The peak of a key is the most requests of it that a rule was asked about in any
// 1 s, 1 min and 1 h. Time is taken in whole clock seconds, which is all that most
// logs have: a second is one of them, a minute any 60 and an hour any 3600 that
// follow each other. What has left the minute is kept by clock minutes, so an
// hour may reach up to one minute too far back, and its peak be that much too
// high, never too low. In logs with fractions, windows that begin within a second
// may hold more than these.
package replay
