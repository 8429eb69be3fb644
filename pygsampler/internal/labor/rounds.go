package labor

// Rounds of LABOR-* go on while the expected number of vertices falls by some part. It is counted in parts of
// 2^-32 of a vertex, so that no order of the vertices changes it.
//
// CUDA twin: kernels/hetero/labor.cuh.

// most is the part of it that may be left for another round.
const most = 0.9999

// Expect is what a vertex adds to the expected number: the chance that it is there, at most 1.
func Expect(chance float64) uint64 { return uint64(min(chance, 1) * 0x1p32) }

// Falls is how the expected number has fallen so far. Its zero value has seen none.
type Falls struct {
	before float64
	some   bool
}

// Continues is whether another round follows one after which so many are expected.
func (f *Falls) Continues(expected uint64) bool {
	now := float64(expected)
	on := !f.some || now < f.before*most
	f.before, f.some = now, true
	return on
}
