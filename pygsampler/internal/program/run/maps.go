package run

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/lanes"
	"github.com/pygsampler/pygsampler/pygsampler/internal/real"
)

// leastLanes is from how many elements on a call of C is worth its price.
const leastLanes = 64

// inLanes are the maps that there is C for, from Add on.
var inLanes = [...]lanes.Op{
	0: lanes.Add, program.Sub - program.Add: lanes.Sub, program.Mul - program.Add: lanes.Mul,
	program.Div - program.Add: lanes.Div, program.Min - program.Add: lanes.Min, program.Max - program.Add: lanes.Max,
}

// unary writes op of each element; to and x may be one array.
func unary(op program.Op, to, x []float64) {
	x = x[:len(to)]
	switch op {
	case program.Neg:
		for i, a := range x {
			to[i] = -a
		}
	case program.Abs:
		for i, a := range x {
			to[i] = math.Abs(a)
		}
	case program.Sqrt:
		if len(to) >= leastLanes {
			lanes.Map(lanes.Sqrt, to, x, x)
			return
		}
		for i, a := range x {
			to[i] = math.Sqrt(a)
		}
	case program.Exp:
		for i, a := range x {
			to[i] = real.Exp(a)
		}
	case program.Log:
		for i, a := range x {
			to[i] = real.FullLog(a)
		}
	case program.Relu:
		if len(to) >= leastLanes {
			lanes.Map(lanes.Relu, to, x, x)
			return
		}
		for i, a := range x {
			to[i] = choose(a > 0, a, 0)
		}
	case program.Not:
		for i, a := range x {
			to[i] = truth(a == 0)
		}
	default:
		panic("not a map: " + op.String())
	}
}

// binary writes op of each two elements; to may be one of the others.
func binary(op program.Op, to, x, y []float64) {
	x, y = x[:len(to)], y[:len(to)]
	if len(to) >= leastLanes && op >= program.Add && op <= program.Max && op != program.Pow {
		lanes.Map(inLanes[op-program.Add], to, x, y)
		return
	}
	switch op {
	case program.Add:
		for i, a := range x {
			to[i] = a + y[i]
		}
	case program.Sub:
		for i, a := range x {
			to[i] = a - y[i]
		}
	case program.Mul:
		for i, a := range x {
			to[i] = a * y[i]
		}
	case program.Div:
		for i, a := range x {
			to[i] = a / y[i]
		}
	case program.Pow:
		for i, a := range x {
			to[i] = power(a, y[i])
		}
	case program.Min:
		for i, a := range x {
			to[i] = choose(y[i] < a, y[i], a)
		}
	case program.Max:
		for i, a := range x {
			to[i] = choose(y[i] > a, y[i], a)
		}
	case program.Less:
		for i, a := range x {
			to[i] = truth(a < y[i])
		}
	case program.LessEqual:
		for i, a := range x {
			to[i] = truth(a <= y[i])
		}
	case program.Equal:
		for i, a := range x {
			to[i] = truth(a == y[i])
		}
	case program.NotEqual:
		for i, a := range x {
			to[i] = truth(a != y[i])
		}
	default:
		panic("not a map: " + op.String())
	}
}

// where writes y where c is not 0, else z.
func where(to, c, y, z []float64) {
	c, y, z = c[:len(to)], y[:len(to)], z[:len(to)]
	for i, a := range c {
		to[i] = choose(a != 0, y[i], z[i])
	}
}

// truth and choose are without a branch, which data would have mispredicted.

func truth(is bool) float64 { return math.Float64frombits(mask(is) & 0x3FF0000000000000) }

func choose(is bool, a, b float64) float64 {
	x, y := math.Float64bits(a), math.Float64bits(b)
	return math.Float64frombits(y ^ (x^y)&mask(is))
}

func mask(is bool) uint64 {
	m := uint64(0)
	if is {
		m = 1
	}
	return -m
}

// The largest integer exponents that are multiplied out.
const multiplied = 64

// powers is x ** y for one y.
func powers(to, x []float64, y float64) {
	x = x[:len(to)]
	switch y {
	case 1:
		copy(to, x)
	case 2:
		for i, a := range x {
			to[i] = a * a
		}
	case 0.5:
		for i, a := range x {
			to[i] = math.Sqrt(a)
		}
	default:
		for i, a := range x {
			to[i] = power(a, y)
		}
	}
}

// power is x ** y.
func power(x, y float64) float64 {
	if math.Abs(y) <= multiplied && y == math.Floor(y) {
		r, digits := 1.0, int(math.Abs(y))
		for digits > 0 {
			if digits&1 != 0 {
				r *= x
			}
			if digits >>= 1; digits > 0 {
				x *= x
			}
		}
		if y < 0 {
			return 1 / r
		}
		return r
	}
	if y == 0.5 {
		return math.Sqrt(x)
	}
	return real.Exp(float64(y * real.FullLog(x)))
}
