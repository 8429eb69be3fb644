package quantized

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

type alone struct{}

func (alone) Borrow(int) int { return 0 }
func (alone) Return(int)     {}

// onHeap makes what address is asked for escape: memory on a goroutine's stack moves.
var onHeap any

func address[T any](values []T) int64 {
	onHeap = values
	return int64(uintptr(unsafe.Pointer(&values[0])))
}

// e4m3 is the value of a code by its definition (OCP 8-bit floating point specification, table 1).
func e4m3(code byte) float64 {
	exponent, fraction := int(code>>3&15), float64(code&7)
	size := (1 + fraction/8) * math.Pow(2, float64(exponent-7))
	if exponent == 0 {
		size = fraction / 8 * math.Pow(2, -6)
	}
	if code&0x7F == 0x7F {
		size = math.NaN()
	}
	if code&0x80 != 0 {
		return -size
	}
	return size
}

func TestEveryCodeOfE4M3(t *testing.T) {
	table, ids, out := make([]byte, 256), make([]int32, 256), make([]float32, 256)
	scales := make([]float32, 256)
	for i := range table {
		table[i], ids[i], scales[i] = byte(i), int32(i), 1
	}
	f := Form{Kind: E4M3, Columns: 1, Scales: address(scales)}
	Read(&f, table, 1, ids, bytesOf(out))
	for i, got := range out {
		if want := e4m3(byte(i)); float64(got) != want && !(math.IsNaN(want) && math.Float32bits(got) == 0x7FFFFFFF) {
			t.Errorf("code %#x: expected %v, got %v", i, want, got)
		}
	}
	// The nearest code is taken for every value, and the even one for what is between two.
	random := rand.New(rand.NewPCG(1, 2))
	from, made, one := make([]float32, 4096), make([]byte, 4096), []float32{1}
	for i := range from {
		from[i] = float32(math.Ldexp(random.Float64()*2-1, random.IntN(24)-14))
		if i < 127 {
			from[i] = float32(e4m3(byte(i))+e4m3(byte(min(i+1, 126)))) / 2
		}
		from[i] = min(max(from[i], -448), 448)
	}
	columns := Form{Kind: E4M3, Columns: 1, Scales: address(one), ByColumn: true}
	if at, err := Store(&columns, &Source{Address: address(from), Bits: 32, Rows: 4096}, address(made), 1, alone{}); at != -1 || err != nil {
		t.Fatal(at, err)
	}
	for i, x := range from {
		got := math.Abs(e4m3(made[i]) - float64(x))
		for code := range 127 {
			other := math.Abs(math.Copysign(e4m3(byte(code)), float64(x)) - float64(x))
			if other < got || other == got && made[i]&1 == 1 && code&1 == 0 {
				t.Fatalf("%v: expected code %#x, got %#x", x, code, made[i])
			}
		}
	}
}

func bytesOf[T any](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(values)*int(unsafe.Sizeof(values[0])))
}

// Each kind is within its bound for rows of every width, by rows and by columns, from every float.
func TestBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, kind := range []int{Half, Brain, E4M3, Int8, Int4} {
		for columns := int64(1); columns < 40; columns++ {
			for _, byColumn := range []bool{false, true} {
				if byColumn && kind < E4M3 {
					continue
				}
				const rows = 9
				from := make([]float32, rows*columns)
				for i := range from {
					from[i] = float32(random.NormFloat64() * math.Exp(4*random.NormFloat64()))
				}
				clear(from[columns : 2*columns])
				scales := make([]float32, max(rows, columns))
				f := Form{Kind: kind, Columns: columns, ByColumn: byColumn}
				if kind >= E4M3 {
					f.Scales = address(scales)
				}
				s := Source{Address: address(from), Bits: 32, Rows: rows}
				// Without padding, with some, and to a whole line.
				stride := f.Bytes()
				switch columns % 3 {
				case 1:
					stride += 4
				case 2:
					stride = 128
				}
				if byColumn {
					if at, err := Store(&f, &s, 0, stride, alone{}); at != -1 || err != nil {
						t.Fatal(at, err)
					}
					Scale(&f)
				}
				table := bytes.Repeat([]byte{0xFF}, int(rows*stride))
				if at, err := Store(&f, &s, address(table), stride, alone{}); at != -1 || err != nil {
					t.Fatal(at, err)
				}
				for i := range int64(rows) {
					if behind := table[i*stride:][f.Bytes():stride]; len(bytes.Trim(behind, "\x00")) > 0 {
						t.Fatalf("kind %d, %d columns: %v behind row %d", kind, columns, behind, i)
					}
				}
				out := make([]float32, len(from))
				Read(&f, table, stride, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8}, bytesOf(out))
				// A file's rows are read by another way, to the same bits.
				f.InFile = true
				again := make([]float32, len(from))
				Read(&f, table, stride, []int32{8, 7, 6, 5, 4, 3, 2, 1, 0}, bytesOf(again))
				for i, x := range again {
					if at := (rows-1-int64(i)/columns)*columns + int64(i)%columns; math.Float32bits(x) != math.Float32bits(out[at]) {
						t.Fatalf("kind %d, %d columns, by column %v: %v of memory is %v of a file", kind, columns, byColumn, out[at], x)
					}
				}
				for i, x := range from {
					scale := float64(scales[int64(i)/columns])
					if byColumn {
						scale = float64(scales[int64(i)%columns])
					}
					size := math.Abs(float64(x))
					bound := map[int]float64{
						Half: math.Max(size/2048, 1.0/(1<<25)), Brain: size / 256,
						E4M3: math.Max(size/16, scale/1024), Int8: scale / 2, Int4: scale / 2,
					}[kind] * (1 + 1e-6)
					if math.Abs(float64(out[i]-x)) > bound && size < 65504 {
						t.Fatalf("kind %d, %d columns, by column %v: %v became %v, bound %v", kind, columns, byColumn, x, out[i], bound)
					}
				}
			}
		}
	}
}

func TestWhatCannotBeStored(t *testing.T) {
	nan, infinity := float32(math.NaN()), float32(math.Inf(-1))
	for _, c := range []struct {
		kind int
		x    float32
		at   int64
	}{
		{Int8, nan, 5}, {Int4, nan, 5}, {E4M3, nan, -1}, {Int8, infinity, 5}, {Int4, infinity, 5}, {E4M3, infinity, 5}, {Half, infinity, -1},
		{Brain, nan, -1},
	} {
		from := []float32{1, 2, 3, 4, 5, c.x, 7, c.x}
		scales, table, out := make([]float32, 4), make([]byte, 16), make([]float32, 8)
		f := Form{Kind: c.kind, Columns: 2}
		if c.kind >= E4M3 {
			f.Scales = address(scales)
		}
		at, err := Store(&f, &Source{Address: address(from), Bits: 32, Rows: 4}, address(table), 4, alone{})
		if at != c.at || err != nil {
			t.Errorf("kind %d, %v: expected %d, got %d, %v", c.kind, c.x, c.at, at, err)
		}
		if c.at < 0 {
			Read(&f, table, 4, []int32{0, 1, 2, 3}, bytesOf(out))
			if got := out[5]; got != c.x && !(got != got && c.x != c.x) {
				t.Errorf("kind %d: %v became %v", c.kind, c.x, got)
			}
		}
	}
}

func TestForms(t *testing.T) {
	for _, f := range []Form{{}, {Kind: Int8, Columns: 4}, {Kind: Half, Columns: 2, Scales: 64}, {Kind: Int4, Columns: 9, Scales: 64}, {Kind: Int8, Columns: 4, Scales: 66}, {Kind: Brain, Columns: 2, To: 3}} {
		if err := f.Check(4); !errors.Is(err, request.ErrValue) {
			t.Errorf("%+v: got %v", f, err)
		}
	}
	// Rows are as long as their values, or longer, and values of 16 bits begin at even places.
	for _, c := range []struct {
		f      Form
		stride int64
		fits   bool
	}{
		{Form{Kind: Int8, Columns: 4, Scales: 64}, 3, false}, {Form{Kind: Int8, Columns: 4, Scales: 64}, 4, true}, {Form{Kind: Int8, Columns: 4, Scales: 64}, 5, true},
		{Form{Kind: Int4, Columns: 9, Scales: 64}, 4, false}, {Form{Kind: Int4, Columns: 9, Scales: 64}, 16, true},
		{Form{Kind: Half, Columns: 2}, 3, false}, {Form{Kind: Brain, Columns: 2}, 5, false}, {Form{Kind: Half, Columns: 2}, 6, true},
	} {
		if err := c.f.Check(c.stride); (err == nil) != c.fits {
			t.Errorf("%+v in %d bytes: got %v", c.f, c.stride, err)
		}
	}
	if _, err := Store(&Form{Kind: Half, Columns: 2}, &Source{Address: 64, Bits: 8, Rows: 1}, 64, 4, alone{}); !errors.Is(err, request.ErrValue) {
		t.Errorf("got %v", err)
	}
}

// A file that becomes shorter under a reader is a panic, which jobs make an error of, and no end of the process.
func TestFilesThatBecomeShorter(t *testing.T) {
	path := t.TempDir() + "/rows"
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pages, err := syscall.Mmap(int(file.Fd()), 0, 1<<16, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(pages)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	table, scales, out := make([]byte, 1<<14), make([]float32, 1<<14), make([]byte, 64)
	for name, read := range map[string]func(){
		"rows": func() {
			Read(&Form{Kind: Int8, Columns: 4, Scales: address(scales), InFile: true}, pages, 4, []int32{1, 9000}, out)
		},
		"scales": func() {
			Read(&Form{Kind: Int8, Columns: 4, Scales: address(pages), InFile: true}, table, 4, []int32{1, 4000}, out)
		},
		"floats": func() {
			_, _ = Store(&Form{Kind: Int8, Columns: 4, Scales: address(scales)}, &Source{Address: address(pages), Bits: 32, Rows: 1 << 12}, address(table), 4, alone{})
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: expected a panic", name)
				}
			}()
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			read()
		}()
	}
}
