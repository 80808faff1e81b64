package replay

import (
	"math"
	"math/bits"
)

// distinct estimates how many different hashes it was shown, in 16 KiB: the
// HyperLogLog of Flajolet, Fusy, Gandouet and Meunier (2007), whose standard error
// is 1.04/√16384, 0.8 %. It is asked only once keys had to be dropped.
type distinct struct {
	registers []uint8
}

const registerBits = 14

func (d *distinct) add(h uint64) {
	if d.registers == nil {
		d.registers = make([]uint8, 1<<registerBits)
	}
	at := h >> (64 - registerBits)
	rank := uint8(bits.LeadingZeros64(h<<registerBits|1<<(registerBits-1))) + 1
	d.registers[at] = max(d.registers[at], rank)
}

func (d *distinct) estimate() int64 {
	if d.registers == nil {
		return 0
	}
	const m = 1 << registerBits
	sum, zeros := 0.0, 0
	for _, r := range d.registers {
		sum += math.Ldexp(1, -int(r))
		if r == 0 {
			zeros++
		}
	}
	e := 0.7213 / (1 + 1.079/m) * m * m / sum
	if e <= 2.5*m && zeros > 0 { // linear counting is better for few
		e = m * math.Log(m/float64(zeros))
	}
	return int64(math.Round(e))
}
