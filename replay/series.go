package replay

import "time"

// Series is what came of a rule's requests over time, in equal steps.
type Series struct {
	// From is the beginning of the first step, which is a multiple of the step in
	// Unix time. All series of a Report share it and the step.
	From time.Time `json:"from"`
	// Step is the length of a step in seconds.
	Step int64 `json:"step"`
	// Allowed, Refused and WouldRefuse are counts per step, equally long. What would
	// have been refused is among the Allowed.
	Allowed     []int64 `json:"allowed"`
	Refused     []int64 `json:"refused"`
	WouldRefuse []int64 `json:"would_refuse,omitempty"`
}

// outcome is a line of a Series.
type outcome int

const (
	allowed outcome = iota
	refused
	watched
	outcomes
)

// widths are the steps in seconds, each a divisor of the next, so that widening
// loses nothing.
var widths = [...]int64{1, 2, 10, 30, 60, 120, 600, 1800, 3600, 7200, 21600, 43200, 86400, 7 * 86400}

// maxSteps is how many steps a timeline has at most.
const maxSteps = 500

// timeline counts the outcomes of all rules over time, in steps that become wider
// as the log becomes longer.
type timeline struct {
	width int64 // seconds; 0 before the first count
	from  int64 // the first step, in widths since the Unix epoch
	now   int   // the current step
	until int64 // the second after it
	rows  [][outcomes][]int64
}

func newTimeline(rows int) *timeline { return &timeline{rows: make([][outcomes][]int64, rows)} }

// move makes the step of a second the current one. Seconds do not fall.
func (t *timeline) move(second int64) {
	if t.width > 0 && second < t.until {
		return
	}
	if t.width == 0 {
		t.width, t.from = widths[0], floorDiv(second, widths[0])
	}
	for floorDiv(second, t.width)-t.from >= maxSteps {
		t.widen()
	}
	t.now = int(max(floorDiv(second, t.width)-t.from, 0))
	t.until = (t.from + int64(t.now) + 1) * t.width
}

// widen adds steps together.
func (t *timeline) widen() {
	next := 2 * t.width
	for _, w := range widths {
		if w > t.width {
			next = w
			break
		}
	}
	n := next / t.width
	from := floorDiv(t.from, n)
	for r := range t.rows {
		for o, counts := range t.rows[r] {
			var wide []int64
			for i, c := range counts {
				at := int(floorDiv(t.from+int64(i), n) - from)
				wide = extend(wide, at)
				wide[at] += c
			}
			t.rows[r][o] = wide
		}
	}
	t.width, t.from = next, from
}

// count counts an outcome of a row in the current step.
func (t *timeline) count(row int, o outcome) {
	counts := extend(t.rows[row][o], t.now)
	counts[t.now]++
	t.rows[row][o] = counts
}

// extend makes a slice long enough to have an element at.
func extend(s []int64, at int) []int64 {
	for len(s) <= at {
		s = append(s, 0)
	}
	return s
}

// series is a row in full length.
func (t *timeline) series(row int) Series {
	s := Series{From: time.Unix(t.from*t.width, 0).UTC(), Step: t.width}
	full := func(o outcome) []int64 { return extend(t.rows[row][o], t.now) }
	s.Allowed, s.Refused = full(allowed), full(refused)
	if len(t.rows[row][watched]) > 0 {
		s.WouldRefuse = full(watched)
	}
	return s
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
