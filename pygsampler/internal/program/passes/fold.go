package passes

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

// fold evaluates arithmetic of constants. This is legal, since an operation on constants is the
// same as in the engines, with one rounding each, in the same order; the engines evaluate exp, log
// and pow, whose definitions have many steps, once per batch.
func fold(p *program.Program) (*program.Program, error) {
	return rewritten(p, func(n *program.Node, nodes []program.Node) int {
		if len(n.In) == 0 {
			return -1
		}
		var x [3]float64
		for k, in := range n.In {
			if nodes[in].Op != program.Const {
				return -1
			}
			x[k] = nodes[in].Value
		}
		if value, known := folded(n.Op, x); known {
			*n = program.Node{Op: program.Const, Value: value, Axis: -1}
		}
		return -1
	})
}

// folded is an operation on constants, by docs/developer/operator-rules.md.
func folded(op program.Op, x [3]float64) (value float64, known bool) {
	a, b := x[0], x[1]
	switch op {
	case program.Neg:
		return -a, true
	case program.Abs:
		return math.Abs(a), true
	case program.Sqrt:
		return math.Sqrt(a), true
	case program.Relu:
		return pick(a > 0, a, 0), true
	case program.Not:
		return pick(a == 0, 1, 0), true
	case program.Add:
		return a + b, true
	case program.Sub:
		return a - b, true
	case program.Mul:
		return a * b, true
	case program.Div:
		return a / b, true
	case program.Min:
		return pick(b < a, b, a), true
	case program.Max:
		return pick(b > a, b, a), true
	case program.Less:
		return pick(a < b, 1, 0), true
	case program.LessEqual:
		return pick(a <= b, 1, 0), true
	case program.Equal:
		return pick(a == b, 1, 0), true
	case program.NotEqual:
		return pick(a != b, 1, 0), true
	case program.Where:
		return pick(a != 0, b, x[2]), true
	}
	return 0, false
}

func pick(first bool, a, b float64) float64 {
	if first {
		return a
	}
	return b
}
