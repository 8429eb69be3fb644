package real

// Sum adds up numbers in one fixed order, which a warp can follow, too: each 32 numbers by a tree,
// then 32 of these sums one after another, then the results of those. The zero value is an empty
// sum.
//
// CUDA twin: sum_from of kernels/program/sums.cuh.
type Sum struct {
	total float64
	few   float64     // of the last 32s, of which 32 are added to the total at a time
	count int64       // of numbers so far
	part  [32]float64 // those behind the last 32 that were added
}

// Take adds numbers after the earlier ones.
func (s *Sum) Take(values []float64) {
	at := s.count & 31
	for len(values) > 0 {
		if at == 0 && len(values) >= 32 {
			s.few += treeOf((*[32]float64)(values))
			values = values[32:]
			if s.count += 32; s.count%(32*32) == 0 {
				s.total, s.few = s.total+s.few, 0
			}
			continue
		}
		n := copy(s.part[at:], values)
		values = values[n:]
		s.count += int64(n)
		if at += int64(n); at == 32 {
			s.few += treeOf(&s.part)
			at = 0
			if s.count%(32*32) == 0 {
				s.total, s.few = s.total+s.few, 0
			}
		}
	}
}

// End returns the sum and resets it.
func (s *Sum) End() float64 {
	if left := int(s.count & 31); left > 0 {
		s.few += tree(&s.part, left)
	}
	sum := s.total + s.few
	s.total, s.few, s.count = 0, 0, 0
	return sum
}

// tree adds the first n of 32 elements, with zeros behind them: element i takes i + 16, then i + 8 and so
// on. Zeros that are not there would change the sign of a zero alone, which the sum of all 32s, that
// begins with 0, has not.
func tree(a *[32]float64, n int) float64 {
	for half := 16; half > 0; half /= 2 {
		for i := half; i < n; i++ {
			a[(i-half)&31] += a[i&31]
		}
		n = min(n, half)
	}
	return a[0]
}

// treeOf is tree of 32 elements, which it leaves as they are.
func treeOf(a *[32]float64) float64 {
	var s [8]float64
	for i := range s {
		s[i] = (a[i] + a[i+16]) + (a[i+8] + a[i+24])
	}
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}
