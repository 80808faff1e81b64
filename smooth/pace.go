package smooth

import "math"

// A Pace is the configuration of a limiter with the numbers that follow from
// it. It is a value that never changes, made by [Bursty], [WarmingUp] or
// [Pace.WithRate]; the zero Pace has no rate and grants everything at once.
//
// Its methods are pure. A State they are given that another pace made (its Max
// is another) is adopted: what it stores is scaled to the new maximum, so a
// half full state stays half full, and its debt keeps its old price.
type Pace struct {
	interval  float64 // ticks from one permit to the next when warm
	max       float64 // permits stored at most
	cool      float64 // ticks of idleness that store one permit
	threshold float64 // stored permits above this one cost more than the interval:
	slope     float64 // so many ticks more for each

	burst  float64 // seconds of permits stored at most; 0 when warming up
	warmUp float64 // ticks; 0 when bursty
	factor float64 // cold interval by interval; 0 when bursty
}

// Bursty is the pace of Guava's SmoothBursty: rate permits per second, of which
// up to burst seconds' worth are stored and then cost nothing. RateLimiter.create
// of Guava stores 1 second's worth. The rate is above 0, the burst at least 0,
// both finite; an error is an [ArgumentError].
func Bursty(rate, burst float64) (Pace, error) {
	if !(burst >= 0) || math.IsInf(burst, 1) {
		return Pace{}, &ArgumentError{"burst", burst, "a finite number of seconds, at least 0"}
	}
	return Pace{burst: burst}.WithRate(rate)
}

// WarmingUp is the pace of Guava's SmoothWarmingUp: rate permits per second
// once it is warm, and a factor-th of it when it was idle for warmUp ticks;
// getting warm under load takes as long. RateLimiter.create of Guava has the
// factor 3. The rate is finite and above 0, the warmUp above 0, the factor
// finite and at least 1; an error is an [ArgumentError].
func WarmingUp(rate float64, warmUp int64, factor float64) (Pace, error) {
	if warmUp <= 0 {
		return Pace{}, &ArgumentError{"warm-up", warmUp, "at least 1 microsecond; a limiter without one is a bursty one"}
	}
	if !(factor >= 1) || math.IsInf(factor, 1) {
		return Pace{}, &ArgumentError{"cold factor", factor, "a finite number, at least 1"}
	}
	return Pace{warmUp: float64(warmUp), factor: factor}.WithRate(rate)
}

// WithRate is p with another rate, in permits per second, and the same burst,
// warm-up and cold factor. It fails as [Bursty] does.
func (p Pace) WithRate(rate float64) (Pace, error) {
	if !(rate > 0) || math.IsInf(rate, 1) {
		return Pace{}, &ArgumentError{"rate", rate, "a finite number of permits per second above 0"}
	}
	p.interval = 1e6 / rate
	p.max = p.burst * rate
	p.cool = p.interval
	if p.warms() {
		cold := float64(p.interval * p.factor)
		p.threshold = 0.5 * p.warmUp / p.interval
		p.max = p.threshold + 2*p.warmUp/(p.interval+cold)
		p.slope = (cold - p.interval) / (p.max - p.threshold)
		p.cool = p.warmUp / p.max
	}
	for _, f := range []float64{p.interval, p.max, p.cool, p.threshold, p.slope} {
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return Pace{}, &ArgumentError{"rate", rate, "one that, with this burst or this warm-up and cold factor, gives finite intervals and stored permits"}
		}
	}
	return p, nil
}

func (p Pace) warms() bool { return p.warmUp > 0 }

// Rate is the rate in permits per second, computed back from the interval, so
// it may differ from what was set by the last bits, as in Guava.
func (p Pace) Rate() float64 { return 1e6 / p.interval }

// Fresh is the state of a limiter made at now: nothing stored if bursty, all of
// it, that is cold, if warming up.
func (p Pace) Fresh(now int64) State { return p.Resync(State{}, now) }

// Resync brings s up to now: if its next free instant has come by, the time
// since is stored as permits and the next free instant is now.
func (p Pace) Resync(s State, now int64) State {
	if now > s.Next {
		earned := float64(sub(now, s.Next)) / p.cool
		s.Stored = min(s.Max, s.Stored+earned)
		s.Next = now
	}
	if s.Max != p.max {
		s = p.adopt(s)
	}
	return s
}

// Reserve takes n permits at now and returns the state after it and the ticks
// to wait before they may be used. It never fails; who would not wait that
// long asks [State.Grants] first and leaves the state as it was. With n below 1
// nothing is taken, and the wait is what a call would find.
func (p Pace) Reserve(s State, now, n int64) (_ State, wait int64) {
	s = p.Resync(s, now)
	wait = s.Wait(now)
	permits := float64(max(n, 0))
	spent := min(permits, s.Stored)
	// Each part is cut to whole ticks by itself.
	price := add(p.storedPrice(s.Stored, spent), ticks((permits-spent)*p.interval))
	s.Next = add(s.Next, price)
	s.Stored -= spent
	return s, wait
}

// storedPrice is the area under the line from stored-taken to stored, in ticks.
// A product is rounded by a conversion before it is added to: without that the
// compiler may fuse the two on some machines, and two of Guava's answers differ.
func (p Pace) storedPrice(stored, taken float64) int64 {
	if !p.warms() {
		return 0
	}
	var price int64
	if above := stored - p.threshold; above > 0 {
		sloped := min(above, taken)
		from := p.interval + float64(above*p.slope)
		to := p.interval + float64((above-sloped)*p.slope)
		price = ticks(sloped * (from + to) / 2)
		taken -= sloped
	}
	return add(price, ticks(p.interval*taken))
}

// Change gives s, made by p, to another pace at now: time until now is stored
// at the pace p, and what is then stored is scaled. It is Guava's setRate if to
// is p.WithRate of something.
//
// A store that no longer knows p may call a method of the new pace at once: the
// idle time before the change is then stored at the new pace.
func (p Pace) Change(to Pace, s State, now int64) State {
	// Guava scales even when the maximum stays, which may cost the last bit.
	return to.adopt(p.Resync(s, now))
}

// adopt scales what s stores from the maximum of another pace to that of p.
func (p Pace) adopt(s State) State {
	switch {
	case s.Max != 0:
		s.Stored = s.Stored * p.max / s.Max
		if math.IsInf(s.Stored, 1) { // of two numbers above 1e154
			s.Stored = p.max
		}
	case p.warms():
		s.Stored = p.max
	default:
		s.Stored = 0
	}
	s.Max = p.max
	return s
}

// Full is the first instant, in ticks, at which s holds all it can if nobody
// calls; 2^63-1 may mean never. From then on a state of a warming up pace
// equals [Pace.Fresh], so a store may forget it. A bursty one is then worth more
// than a fresh one: to forget it takes a burst away and gives none.
func (p Pace) Full(s State) int64 {
	s = p.Resync(s, s.Next)
	full := func(idle int64) bool { return s.Stored+float64(idle)/p.cool >= p.max }
	// The estimate may be off by the roundings of the sum that decides.
	idle := max(ticks(math.Ceil((p.max-s.Stored)*p.cool)), 0)
	for idle > 0 && full(idle-1) {
		idle--
	}
	for idle < math.MaxInt64 && !full(idle) {
		idle++
	}
	return add(s.Next, idle)
}
