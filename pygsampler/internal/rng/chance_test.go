package rng

import (
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/uniformity"
)

// row is the choice of a row as the engines make it.
func row(c *Chooser, pos []int64, s Stream, v uint64, degree int64) {
	c.Distinct(pos, s.State(v), degree)
}

// Single and pairwise inclusion against n/d and n(n-1)/(d(d-1)), the exact
// probabilities of a uniform subset.
//
// The counts of positions and of pairs are not multinomial, so Pearson's statistic
// would not be chi-square. The covariance of a uniform subset is known exactly. For
// positions it is a multiple of the projection off the constant. For pairs it acts
// on two spaces (of the Johnson scheme): one that single inclusion spans, and the
// rest, of dimension d(d-3)/2, which is what is tested here.
func TestInclusion(t *testing.T) {
	for _, k := range []struct {
		degree int64
		n      int
	}{{5, 2}, {7, 3}, {12, 10}, {30, 10}, {64, 20}, {65, 20}, {100, 32}, {70, 40}, {400, 5}} {
		var c Chooser
		d, n := float64(k.degree), float64(k.n)
		const trials = 20000
		stream := NewStream(42, 0, 0, 0, Neighbors)
		pos := make([]int64, k.n)
		single := make([]float64, k.degree)
		pair := make([]float64, k.degree*k.degree)
		for v := range uint64(trials) {
			row(&c, pos, stream, v, k.degree)
			for i, p := range pos {
				single[p]++
				for _, q := range pos[:i] {
					pair[p*k.degree+q]++
					pair[q*k.degree+p]++
				}
			}
		}
		p1 := n / d
		x := 0.0
		for _, count := range single {
			x += (count - trials*p1) * (count - trials*p1)
		}
		uniformity.Plausible(t, x/(trials*p1*(1-p1)*d/(d-1)), int(d)-1, "single inclusion, %d of %d", k.n, k.degree)

		p2 := p1 * (n - 1) / (d - 1)
		p3 := p2 * (n - 2) / (d - 2)
		p4 := p3 * (n - 3) / (d - 3)
		// The eigenvalue of the pairs' covariance on the space of the rest.
		lambda := p2*(1-p2) - 2*(p3-p2*p2) + (p4 - p2*p2)
		if lambda < 1e-9 {
			t.Fatalf("%d of %d: pairs follow from positions", k.n, k.degree)
		}
		sums := make([]float64, k.degree)
		for i := range k.degree {
			for j := range k.degree {
				if i != j {
					sums[i] += pair[i*k.degree+j] - trials*p2
				}
			}
		}
		x = 0
		for i := range k.degree {
			for j := range i {
				rest := pair[i*k.degree+j] - trials*p2 - (sums[i]+sums[j])/(d-2)
				x += rest * rest
			}
		}
		uniformity.Plausible(t, x/(trials*lambda), int(d*(d-3)/2), "pairwise inclusion, %d of %d", k.n, k.degree)
	}
}

// Every subset of a short row is equally likely: this is all there is to know.
func TestSubsetsAreUniform(t *testing.T) {
	for degree := int64(2); degree <= 8; degree++ {
		for n := 1; n < int(degree); n++ {
			var c Chooser
			counts := map[uint64]float64{}
			subsets := 1
			for i := range n {
				subsets = subsets * (int(degree) - i) / (i + 1)
			}
			stream, pos := NewStream(7, 1, 2, 3, Neighbors), make([]int64, n)
			const each = 300
			for v := range uint64(each * subsets) {
				row(&c, pos, stream, v, degree)
				set := uint64(0)
				for _, p := range pos {
					set |= 1 << p
				}
				counts[set]++
			}
			x := float64(subsets-len(counts)) * each
			for _, count := range counts {
				x += (count - each) * (count - each) / each
			}
			uniformity.Plausible(t, x, subsets-1, "subsets, %d of %d", n, degree)
		}
	}
}

func TestRepeatedIsUniform(t *testing.T) {
	for _, degree := range []int64{2, 3, 10, 97, 1000} {
		counts, pos := make([]float64, degree), make([]int64, 10)
		stream := NewStream(8, 0, 0, 0, Neighbors)
		rows := 50 * degree
		for v := range uint64(rows) {
			Repeated(pos, stream.State(v), degree)
			for _, p := range pos {
				counts[p]++
			}
		}
		x := 0.0
		for _, count := range counts {
			x += (count - 500) * (count - 500) / 500
		}
		uniformity.Plausible(t, x, int(degree)-1, "draws from %d", degree)
	}
}

// Rows that differ in one field of the counter choose independently, though they
// have the same degree: the joint counts of their choices (2 of 4 positions, 6
// subsets) against the product of exact margins.
func TestRowsAreIndependent(t *testing.T) {
	const each = 300
	type coordinates struct {
		seed   uint64
		epoch  uint32
		batch  uint64
		hop    uint8
		vertex uint64
	}
	at := func(i uint64) coordinates { return coordinates{seed: 1, vertex: 4 * i} }
	for name, other := range map[string]func(*coordinates){
		"next vertex":          func(c *coordinates) { c.vertex++ },
		"vertex 2^32 later":    func(c *coordinates) { c.vertex += 1 << 32 },
		"vertex 2^47 later":    func(c *coordinates) { c.vertex += 1 << 47 },
		"next hop":             func(c *coordinates) { c.hop++ },
		"hop 128 later":        func(c *coordinates) { c.hop += 128 },
		"next batch":           func(c *coordinates) { c.batch++ },
		"batch 2^32 later":     func(c *coordinates) { c.batch += 1 << 32 },
		"next epoch":           func(c *coordinates) { c.epoch++ },
		"epoch 2^23 later":     func(c *coordinates) { c.epoch += 1 << 23 },
		"next seed":            func(c *coordinates) { c.seed++ },
		"seed 2^32 later":      func(c *coordinates) { c.seed += 1 << 32 },
		"next batch and epoch": func(c *coordinates) { c.batch++; c.epoch++ },
	} {
		var c Chooser
		index := map[uint64]int{3: 0, 5: 1, 9: 2, 6: 3, 10: 4, 12: 5}
		choose := func(k coordinates) int {
			var pos [2]int64
			row(&c, pos[:], NewStream(k.seed, k.epoch, k.batch, k.hop, Neighbors), k.vertex, 4)
			return index[1<<pos[0]|1<<pos[1]]
		}
		var joint [36]float64
		for i := range uint64(36 * each) {
			a := at(i)
			b := a
			other(&b)
			joint[choose(a)*6+choose(b)]++
		}
		x := 0.0
		for _, count := range joint {
			x += (count - each) * (count - each) / each
		}
		uniformity.Plausible(t, x, 35, "%s", name)
	}
}

// Draws of one row are independent too: consecutive draws with replacement.
func TestDrawsAreIndependent(t *testing.T) {
	const each = 300
	var joint [64]float64
	stream := NewStream(5, 0, 0, 0, Neighbors)
	pos := make([]int64, 2)
	for v := range uint64(64 * each) {
		Repeated(pos, stream.State(v), 8)
		joint[pos[0]*8+pos[1]]++
	}
	x := 0.0
	for _, count := range joint {
		x += (count - each) * (count - each) / each
	}
	uniformity.Plausible(t, x, 63, "consecutive draws")
}
