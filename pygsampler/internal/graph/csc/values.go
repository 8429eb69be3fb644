package csc

import (
	"fmt"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
)

// DType is the element type of a named array.
type DType uint8

// The types of elements. A truth is a byte, 0 or 1.
const (
	Bool DType = iota
	Int8
	Uint8
	Int16
	Int32
	Int64
	Float32
	Float64
)

var dtypes = [...]struct {
	name string
	size int64
}{{"bool", 1}, {"int8", 1}, {"uint8", 1}, {"int16", 2}, {"int32", 4}, {"int64", 8}, {"float32", 4}, {"float64", 8}}

// String returns NumPy's name of the type.
func (d DType) String() string { return dtypes[d].name }

// ParseDType returns the type with a name; false: arrays of graphs do not support it.
func ParseDType(name string) (DType, bool) {
	for d, of := range dtypes {
		if of.name == name {
			return DType(d), true
		}
	}
	return 0, false
}

// Values is a borrowed array of one number for each edge or node. Any number of goroutines may read
// it, as doubles, and it stays valid as long as its owner keeps the memory; the zero value is
// empty.
type Values struct {
	DType  DType
	length int64
	data   unsafe.Pointer
}

// BorrowValues returns the array at an address.
func BorrowValues(address, length int64, dtype DType) Values {
	bytes := memory.View[byte](address, length*dtypes[dtype].size)
	return Values{dtype, length, unsafe.Pointer(unsafe.SliceData(bytes))}
}

// Number is the set of Go element types of an array.
type Number interface {
	~int8 | ~uint8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// ValuesOf returns a slice as an array.
func ValuesOf[T Number](a []T) Values {
	var d DType
	switch any(*new(T)).(type) {
	case int8:
		d = Int8
	case uint8:
		d = Uint8
	case int16:
		d = Int16
	case int32:
		d = Int32
	case int64:
		d = Int64
	case float32:
		d = Float32
	case float64:
		d = Float64
	default:
		panic(fmt.Sprintf("values: no array of a graph has elements of %T", *new(T)))
	}
	return Values{d, int64(len(a)), unsafe.Pointer(unsafe.SliceData(a))}
}

// Len returns the number of elements.
func (v Values) Len() int64 { return v.length }

// Pointer returns the address of the elements, for copies without conversion.
func (v Values) Pointer() unsafe.Pointer { return v.data }

// Bytes returns the size of all elements.
func (v Values) Bytes() int64 { return v.length * dtypes[v.DType].size }

func elements[T Number](v Values) []T { return unsafe.Slice((*T)(v.data), v.length) }

// Float64 returns element i as the nearest double.
func (v Values) Float64(i int64) float64 {
	at, to := [1]int64{i}, [1]float64{}
	Gather(v, to[:], at[:])
	return to[0]
}

// Range widens len(to) elements from lo on.
func (v Values) Range(to []float64, lo int64) {
	switch v.DType {
	case Int8:
		widenRange(to, elements[int8](v)[lo:])
	case Bool, Uint8:
		widenRange(to, elements[uint8](v)[lo:])
	case Int16:
		widenRange(to, elements[int16](v)[lo:])
	case Int32:
		widenRange(to, elements[int32](v)[lo:])
	case Int64:
		widenRange(to, elements[int64](v)[lo:])
	case Float32:
		if n := int64(len(to)); n > 0 {
			widen32(&to[0], &elements[float32](v)[lo : lo+n][0], int(n))
		}
	default:
		copy(to, elements[float64](v)[lo:lo+int64(len(to))])
	}
}

// Fetch prefetches n elements from lo on.
func (v Values) Fetch(lo, n int64) {
	if size := dtypes[v.DType].size; n > 0 && lo >= 0 && lo+n <= v.length {
		prefetch.All(unsafe.Slice((*byte)(unsafe.Add(v.data, lo*size)), n*size))
	}
}

func widenRange[T Number](to []float64, from []T) {
	from = from[:len(to)]
	for i, x := range from {
		to[i] = float64(x)
	}
}

// Gather widens the elements at places.
func Gather[I Index](v Values, to []float64, at []I) {
	switch v.DType {
	case Int8:
		widen(to, elements[int8](v), at)
	case Bool, Uint8:
		widen(to, elements[uint8](v), at)
	case Int16:
		widen(to, elements[int16](v), at)
	case Int32:
		widen(to, elements[int32](v), at)
	case Int64:
		widen(to, elements[int64](v), at)
	case Float32:
		widen(to, elements[float32](v), at)
	default:
		widen(to, elements[float64](v), at)
	}
}

func widen[T Number, I Index](to []float64, from []T, at []I) {
	to = to[:len(at)]
	// Elements of a node or an edge lie anywhere.
	data, size := unsafe.Pointer(unsafe.SliceData(from)), unsafe.Sizeof(*new(T))
	for lo := 0; lo < len(at); lo += prefetch.Step {
		switch size {
		case 4:
			prefetch.Ahead(unsafe.Slice((*uint32)(data), len(from)), at, lo)
		case 8:
			prefetch.Ahead(unsafe.Slice((*uint64)(data), len(from)), at, lo)
		}
		for k := lo; k < min(lo+prefetch.Step, len(at)); k++ {
			to[k] = float64(from[at[k]])
		}
	}
}
