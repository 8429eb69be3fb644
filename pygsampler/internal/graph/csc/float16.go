package csc

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// halves are the dtypes of 16 bits, by what makes a float32 of one; each has its value there.
var halves = map[string]func(uint16) float32{"float16": half, "bfloat16": func(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }}

// half is the value of a float16.
func half(b uint16) float32 {
	sign, exponent, fraction := uint32(b)>>15<<31, b>>10&31, b&(1<<10-1)
	switch exponent {
	case 0:
		return math.Float32frombits(math.Float32bits(float32(fraction)/(1<<24)) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | uint32(fraction)<<13)
	}
	return math.Float32frombits(sign | (uint32(exponent)+127-15)<<23 | uint32(fraction)<<13)
}

// Widened returns a float64 copy of an array at an address whose dtype Values does not support:
// 16-bit floats, all of whose values float64 represents, and unsigned integers; is is false for all
// others.
func Widened(address, length int64, dtype string) (copied []float64, is bool) {
	switch dtype {
	case "float16", "bfloat16":
		value := halves[dtype]
		return widened(address, length, func(x uint16) float64 { return float64(value(x)) }), true
	case "uint16":
		return widened(address, length, func(x uint16) float64 { return float64(x) }), true
	case "uint32":
		return widened(address, length, func(x uint32) float64 { return float64(x) }), true
	case "uint64":
		return widened(address, length, func(x uint64) float64 { return float64(x) }), true
	}
	return nil, false
}

func widened[T uint16 | uint32 | uint64](address, length int64, value func(T) float64) []float64 {
	from := memory.View[T](address, length)
	to := make([]float64, len(from))
	Parallel(0, length, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			to[i] = value(from[i])
		}
	})
	return to
}
