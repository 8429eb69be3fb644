package arrow

import (
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/cdata"
	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// region is a memory that holds n ids of each width, 100, 101, ...
func region(t *testing.T, n int64) (m memory.Memory, at map[int]int64) {
	t.Helper()
	m, err := memory.New(64 + n*12)
	if err != nil {
		t.Fatal(err)
	}
	m.SetSize(64 + n*12)
	for i := range n {
		memory.ViewAt[int64](m, 0, n)[i] = 100 + i
		memory.ViewAt[int32](m, n*8, n)[i] = int32(100 + i)
	}
	data := int64(uintptr(m.Pointer()))
	return m, map[int]int64{64: data, 32: data + n*8}
}

func references(m memory.Memory) int64 { return memory.View[int64](m.Address(), 1)[0] }

// Exported arrays can be imported: the same memory, for as long as the pair lives.
func TestRoundTrip(t *testing.T) {
	live := memory.Count().Live
	for _, n := range []int64{1, 5, 1000} {
		m, at := region(t, n)
		for bits, data := range at {
			pair, err := Export(m, data, n, bits)
			if err != nil {
				t.Fatal(err)
			}
			if references(m) != 2 {
				t.Fatalf("%d references to an exported memory", references(m))
			}
			for range 2 { // an import borrows: it takes nothing from the owner
				ids, err := Import(int64(pair.Schema()), int64(pair.Array()))
				if err != nil || ids != (Ids{Bits: bits, Length: n, Data: data}) {
					t.Errorf("%d of %d bits: got %+v, %v", n, bits, ids, err)
				}
			}
			if references(m) != 2 {
				t.Errorf("%d references after an import", references(m))
			}
			pair.Free()
			if references(m) != 1 {
				t.Errorf("%d references after the pair", references(m))
			}
		}
		m.Release()
	}
	if now := memory.Count().Live; now != live {
		t.Errorf("%d memories were lost", now-live)
	}
}

func TestEmptyArray(t *testing.T) {
	m, _ := region(t, 1)
	for _, bits := range []int{32, 64} {
		pair, err := Export(m, 0, 0, bits)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := Import(int64(pair.Schema()), int64(pair.Array()))
		if err != nil || ids != (Ids{Bits: bits}) {
			t.Errorf("got %+v, %v", ids, err)
		}
		pair.Free()
	}
	if references(m) != 1 {
		t.Errorf("%d references", references(m))
	}
	m.Release()
}

// Another library moves the array out of the pair, keeps it beyond the pair and
// the memory's owner, and its release, called once, lets go of the memory.
func TestConsumerReleasesOnce(t *testing.T) {
	live := memory.Count().Live
	m, at := region(t, 50)
	pair, err := Export(m, at[64]+80, 40, 64)
	if err != nil {
		t.Fatal(err)
	}
	m.Release()
	field, a, err := cdata.ImportCArray(cdata.ArrayFromPtr(pair.Array()), cdata.SchemaFromPtr(pair.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	pair.Free() // empty by now
	if memory.Count().Live != live+1 || references(m) != 1 {
		t.Fatalf("%d live, %d references while the consumer holds the array", memory.Count().Live-live, references(m))
	}
	got := a.(*array.Int64).Int64Values()
	if field.Type.ID() != arrow.INT64 || field.Nullable || len(got) != 40 || got[0] != 110 || got[39] != 149 || a.NullN() != 0 {
		t.Errorf("got %v of %v", got, field)
	}
	a.Retain()
	a.Release()
	if memory.Count().Live != live+1 {
		t.Error("released early")
	}
	a.Release()
	if now := memory.Count().Live; now != live {
		t.Errorf("%d memories live after the release", now-live)
	}
}

// exported is an array of arrow/go's own behind the C interface, with an offset.
func exported(t *testing.T, values arrow.Array) memory.ArrowPair {
	t.Helper()
	pair, err := memory.EmptyArrowPair()
	if err != nil {
		t.Fatal(err)
	}
	cdata.ExportArrowArray(values, cdata.ArrayFromPtr(pair.Array()), cdata.SchemaFromPtr(pair.Schema()))
	t.Cleanup(pair.Free)
	return pair
}

// build is an array of n elements of a type that the builder makes.
func build[B array.Builder](t *testing.T, b B, fill func(B)) arrow.Array {
	t.Helper()
	defer b.Release()
	fill(b)
	a := b.NewArray()
	t.Cleanup(a.Release)
	return a
}

func TestImportForeign(t *testing.T) {
	pool := arrowmemory.NewGoAllocator()
	wide := build(t, array.NewInt64Builder(pool), func(b *array.Int64Builder) { b.AppendValues([]int64{1, 2, 3, 4, 5}, nil) })
	narrow := build(t, array.NewInt32Builder(pool), func(b *array.Int32Builder) { b.AppendValues([]int32{1, 2, 3}, []bool{true, false, true}) })
	slice := array.NewSlice(wide, 1, 4)
	defer slice.Release()

	pair := exported(t, slice)
	ids, err := Import(int64(pair.Schema()), int64(pair.Array()))
	if err != nil || ids.Bits != 64 || !slices.Equal(memory.View[int64](ids.Data, ids.Length), []int64{2, 3, 4}) {
		t.Errorf("a slice: %+v, %v", ids, err)
	}
	if ids.Data != int64(uintptr(unsafe.Pointer(&wide.(*array.Int64).Int64Values()[1]))) {
		t.Error("a slice is copied")
	}
	pair = exported(t, narrow)
	if ids, err = Import(int64(pair.Schema()), int64(pair.Array())); err != nil || ids.Bits != 32 || ids.Length != 3 || ids.NullCount != 1 {
		t.Errorf("nulls: %+v, %v", ids, err)
	}

	var wrong *TypeError
	for name, a := range map[string]arrow.Array{
		"float64": build(t, array.NewFloat64Builder(pool), func(b *array.Float64Builder) { b.Append(1) }),
		"uint64":  build(t, array.NewUint64Builder(pool), func(b *array.Uint64Builder) { b.Append(1) }),
		"int16":   build(t, array.NewInt16Builder(pool), func(b *array.Int16Builder) { b.Append(1) }),
		"utf8":    build(t, array.NewStringBuilder(pool), func(b *array.StringBuilder) { b.Append("x") }),
		"bool":    build(t, array.NewBooleanBuilder(pool), func(b *array.BooleanBuilder) { b.Append(true) }),
	} {
		pair := exported(t, a)
		want := "expected an Arrow array of int32 or int64, got " + name
		if _, err := Import(int64(pair.Schema()), int64(pair.Array())); !errors.As(err, &wrong) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
