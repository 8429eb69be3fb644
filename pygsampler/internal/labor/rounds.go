package labor

// Rounds of LABOR-* go on while the expected number of nodes falls by some part. It is counted in parts of
// 2^-32 of a node, so that no order of the nodes changes it.
//
// CUDA twin: kernels/hetero/labor.cuh.

// most is the part of it that may be left for another round.
const most = 0.9999

// Expect returns the contribution of a node to the expected number of nodes: the chance that it is
// sampled, at most 1.
func Expect(chance float64) uint64 { return uint64(min(chance, 1) * 0x1p32) }

// Falls records how the expected number has fallen so far. Its zero value has seen no round.
type Falls struct {
	before float64
	some   bool
}

// Continues reports whether another round follows one after which expected nodes are expected.
func (f *Falls) Continues(expected uint64) bool {
	now := float64(expected)
	on := !f.some || now < f.before*most
	f.before, f.some = now, true
	return on
}
