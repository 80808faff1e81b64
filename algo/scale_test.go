package algo

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// longScale is scale for a machine that only has doubles: long multiplication
// and division bit by bit, with no value above 2^53. A mirror of this package in
// such a language does exactly this.
func longScale(t testing.TB, a, b, c float64) (q, r float64) {
	exact := func(x float64) float64 {
		if x >= 1<<53 {
			t.Fatalf("longScale(%.0f, %.0f, %.0f): %.0f is not exact in a double", a, b, c, x)
		}
		return x
	}
	// b = whole*c + part, by the multiples of c with powers of two.
	whole, part, d := 0.0, b, c
	for d <= part {
		d = exact(d * 2)
	}
	for ; d >= c; d /= 2 {
		if part >= d {
			part, whole = part-d, exact(whole+d/c)
		}
	}
	// a*b = q*c + r with r < c, by the bits of a from the top: each doubles what is
	// there, and adds b if it is set. As q only grows, it may stop above Max.
	bit := 1.0
	for bit <= a {
		bit *= 2
	}
	carry := func() {
		if r >= c {
			q, r = q+1, r-c
		}
	}
	for bit /= 2; bit >= 1 && q <= Max; bit /= 2 {
		q, r = exact(q*2), exact(r*2)
		carry()
		if a >= bit && q <= Max {
			a -= bit
			q, r = exact(q+whole), exact(r+part)
			carry()
		}
	}
	if q > Max {
		return Max + 1, 0
	}
	return q, r
}

func TestScaleIsExact(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	edges := []int64{0, 1, 2, 3, 7, 999_983, 1_000_000, 1 << 20, 1<<26 - 1, 1 << 26, 1<<26 + 1, 1 << 32, 1 << 40, 2_592_000_000_000, Max - 1, Max}
	draw := func() int64 {
		switch r.IntN(3) {
		case 0:
			return edges[r.IntN(len(edges))]
		case 1:
			return r.Int64N(Max + 1)
		}
		return r.Int64N(1 << (1 + r.IntN(52)))
	}
	saturated, wide := 0, 0
	check := func(a, b, c int64) {
		product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		if product.BitLen() > 64 {
			wide++
		}
		want, rest := new(big.Int).QuoRem(product, big.NewInt(c), new(big.Int))
		if want.Cmp(big.NewInt(Max)) > 0 {
			saturated++
			want, rest = big.NewInt(Max+1), big.NewInt(0)
		}
		q, rem := scale(a, b, c)
		if q != want.Int64() || rem != rest.Int64() {
			t.Fatalf("scale(%d, %d, %d) = %d, %d; want %v, %v", a, b, c, q, rem, want, rest)
		}
		lq, lr := longScale(t, float64(a), float64(b), float64(c))
		if int64(lq) != q || int64(lr) != rem {
			t.Fatalf("longScale(%d, %d, %d) = %.0f, %.0f; want %d, %d", a, b, c, lq, lr, q, rem)
		}
	}
	for _, a := range edges {
		for _, b := range edges {
			for _, c := range edges {
				check(a, b, max(c, 1))
			}
		}
	}
	for range 30_000 {
		a, b := draw(), draw()
		c := max(draw(), 1)
		if r.IntN(4) == 0 { // quotients around the edge of Max
			c = max(new(big.Int).Quo(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), big.NewInt(Max)).Int64()+r.Int64N(3)-1, 1)
			c = min(c, Max)
		}
		check(a, b, c)
	}
	if saturated < 300 || wide < 300 {
		t.Errorf("%d saturated, %d wider than a word: the edges are not met", saturated, wide)
	}
}
