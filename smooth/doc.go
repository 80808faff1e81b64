// Package smooth paces calls inside one process as Guava's RateLimiter does:
// evenly, with idle time saved up as a burst (bursty) or as coldness that makes
// the first calls slower (warming up).
//
// A [Limiter] is what callers share. A [Pace] is its arithmetic alone: pure
// functions from a [State] and an instant to a new state and a wait, for those
// who keep many states and a clock of their own. A permit is what Weir calls a
// quota unit.
//
// # How it counts
//
// Each call is granted at the next free instant, whatever it asks for, and
// moves that instant on by the price of its permits: the next call pays for
// this one. If the next free instant has come by, the time since then is
// stored as permits, up to a maximum. Stored permits are free when bursty; when
// warming up they cost the area under a line that falls from the cold interval
// to the stable one:
//
//	       ^ interval between permits
//	  cold +                   /
//	       |                 /.
//	stable +---------------/  .
//	       |               .  .
//	     0 +---------------+--+---> stored permits
//	       0       threshold  max
//
// with stable = 1e6/rate µs, cold = factor * stable, threshold = warm-up / (2 *
// stable) and max = threshold + 2 * warm-up / (stable + cold). The area right of
// the threshold is the warm-up, the area left of it half of that. (Guava,
// com.google.common.util.concurrent.SmoothRateLimiter, the comment at the top.)
//
// # Units
//
// Instants and waits of a Pace are ticks of one microsecond, at least 0; those
// of a Limiter are time.Duration. Rates are permits per second. Prices are
// float64, computed in the order in which Guava computes them, so that every
// answer and every bit of the state is that of Guava 31.1.
//
// # Quirks kept
//
// These are Guava's answers, odd or not:
//
//   - A fresh bursty limiter has stored nothing: its first burst has to be
//     waited for. A fresh warming one is full, that is, cold.
//   - Every part of a price is cut to whole ticks, so a call may cost up to one
//     tick less than it should (three when warming up): 300000/s gives 333333/s
//     to single permits, and above 1e6/s single permits are free. Such rates hold
//     for calls of many permits, which is how bytes are paced.
//   - A timeout is compared with the wait, not with the price: TryAcquire(1000000, 0) at
//     100/s is granted by a fresh limiter, and the next caller waits 10000 s.
//   - A timeout is cut to whole ticks, and a negative one is 0.
//   - The next free instant stays at 2^63-1 once there, and a call with a timeout
//     of 2^63-1 ticks is granted even then.
//   - A clock that steps back reads as debt until it has come back. The system's
//     is monotonic and does not.
//   - A new rate scales what is stored and leaves the debt at its old price.
//   - [Limiter.Rate] is 1e6 divided by the interval: 6.999999999999999 after
//     SetRate(7).
//   - Rates down to 1e-302/s and bursts of years are as good as any other.
//
// # Quirks refused
//
// These Guava accepts, some only from inside its package, and they end in a
// limiter that limits nothing or never ends; here they are an [ArgumentError]:
//
//   - An infinite rate: no permit has a price, and after a change to or from it
//     the stored permits are NaN.
//   - A rate so small that its interval is infinite (below 1e6/1.8e308): the rate
//     reads back as 0.
//   - A warm-up of 0: the stored permits turn NaN at the first idle moment, and
//     nothing waits until the rate changes. Use a bursty limiter.
//   - A cold factor below 1: a cold limiter that is faster than a warm one.
//   - An infinite burst: after a change of rate the stored permits are infinite, and
//     nothing waits again.
//   - A negative burst: stored permits go below 0, and idle time becomes a debt.
//   - Numbers that are finite but make a maximum, a slope or an interval that is not.
//
// One more cannot be reached with sensible numbers: Guava adds the price of
// the stored permits and that of the fresh ones with wrap-around, so that two
// huge prices become a small one. Here the sum stays at 2^63-1.
package smooth
