package csctest

// Steps returns n nodes: 0, step, twice the step and so on.
func Steps(n int, step int64) []int64 {
	a := make([]int64, n)
	for i := range a {
		a[i] = int64(i) * step
	}
	return a
}

// Squares returns n squares, modulo a number of nodes: after a few, some are repeated.
func Squares(n int, nodes int64) []int64 {
	a := Steps(n, 1)
	for i, v := range a {
		a[i] = v * v % nodes
	}
	return a
}

// Mixed is nodes below 3060, of which some are repeated where they are
// many.
func Mixed(n int) []int64 {
	if n < 700 {
		return Steps(n, 7)
	}
	return Squares(n, 3060)
}
