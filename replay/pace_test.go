package replay

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPeaksAgreeWithCounting: the second and the minute are exact, the hour is
// never too low and at most a minute too long.
func TestPeaksAgreeWithCounting(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var tr trail
		var p pace
		var asked []uint32
		second := uint32(random.IntN(7200))
		for range 1500 {
			switch random.IntN(40) {
			case 0:
				second += 59 + uint32(random.IntN(3))
			case 1:
				second += uint32(random.IntN(4000))
			case 2:
				second += 3599 + uint32(random.IntN(3))
			default:
				second += uint32(random.IntN(3))
			}
			asked = append(asked, second)
			tr.ask(&p, second)
		}
		most := func(window uint32) (n uint32) {
			from := 0
			for i, s := range asked {
				for s-asked[from] >= window {
					from++
				}
				n = max(n, uint32(i-from+1))
			}
			return n
		}
		if p.peaks[0] != most(1) || p.peaks[1] != most(60) {
			t.Fatalf("seed %d: second %d, minute %d; counted %d and %d", seed, p.peaks[0], p.peaks[1], most(1), most(60))
		}
		if p.peaks[2] < most(3600) || p.peaks[2] > most(3660) {
			t.Fatalf("seed %d: hour %d; counted %d in 60 minutes and %d in 61", seed, p.peaks[2], most(3600), most(3660))
		}
		if len(tr.marks) > 1+60+62 {
			t.Fatalf("seed %d: %d marks for one key", seed, len(tr.marks))
		}
		tr.forget(&p)
		free := 0
		for at := tr.free; at != 0; at = tr.marks[at].next {
			free++
		}
		if free != len(tr.marks)-1 {
			t.Fatalf("seed %d: %d of %d marks are free after all were forgotten", seed, free, len(tr.marks)-1)
		}
	}
}

// TestBusyKeyKeepsFewMarks: a key that asks every second for a day.
func TestBusyKeyKeepsFewMarks(t *testing.T) {
	var tr trail
	var p pace
	for second := range uint32(86400) {
		tr.ask(&p, second)
	}
	if len(tr.marks) > 1+60+62 || p.peaks != [3]uint32{1, 60, 3660} && p.peaks[2] < 3600 {
		t.Errorf("%d marks, peaks %v", len(tr.marks), p.peaks)
	}
}

func TestTimelineKeepsEveryCountAsItWidens(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		tl := newTimeline(2)
		at, counted := random.Int64N(2e9)-1e9, [2][]int64{}
		for range 2000 {
			at += random.Int64N(1 << random.IntN(24))
			row := random.IntN(2)
			tl.move(at)
			tl.count(row, refused)
			counted[row] = append(counted[row], at)
		}
		for row, seconds := range counted {
			s := tl.series(row)
			want := make([]int64, len(s.Refused))
			for _, second := range seconds {
				want[(second-s.From.Unix())/s.Step]++
			}
			if !slices.Equal(s.Refused, want) || len(s.Refused) > maxSteps || s.From.Unix()%s.Step != 0 {
				t.Fatalf("seed %d: %d steps of %ds do not hold what was counted in them", seed, len(s.Refused), s.Step)
			}
		}
	}
}

func TestQuantileIsTheLeastPeakThatTheShareDoesNotExceed(t *testing.T) {
	p := newPeaks(map[uint32]int64{1: 900, 2: 90, 7: 9, 50: 1})
	for share, want := range map[float64]int64{0.5: 1, 0.9: 1, 0.901: 2, 0.99: 2, 0.999: 7, 0.9991: 50, 1: 50} {
		if got := p.Quantile(share); got != want {
			t.Errorf("quantile %v is %d, want %d", share, got, want)
		}
	}
	if (Peaks{}).Quantile(0.5) != 0 {
		t.Error("no keys, and a quantile")
	}
}

func TestNumbersRoundUpToOneTwoFive(t *testing.T) {
	for n, want := range map[int64]int64{1: 1, 2: 2, 3: 5, 5: 5, 6: 10, 11: 20, 21: 50, 51: 100, 101: 200, 4999: 5000} {
		if got := roundUp(n); got != want {
			t.Errorf("%d rounds up to %d, want %d", n, got, want)
		}
	}
}
