package bridge

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
)

// FuzzArguments calls every function with any numbers where that is safe: addresses
// are 0, since no check can tell a good address from a bad one. Each answers with a
// value or with an error of the right form.
func FuzzArguments(f *testing.F) {
	for function := range byte(17 + len(deviceCalls)) {
		f.Add(function, "memory_retain", int64(0), int64(0), int64(64), int64(0), int64(0))
		f.Add(function, "auto", int64(1), int64(-1), int64(32), int64(5), int64(1<<40))
		f.Add(function, "\xff", int64(-1<<63), int64(1<<63-1), int64(63), int64(1<<62), int64(-1<<62))
	}
	g, s := newRing(f, 10), newSampler(f, "auto", 2)
	fanouts := []int64{1, -1, 5}
	f.Fuzz(func(t *testing.T, function byte, text string, a, b, c, d, e int64) {
		var err error
		switch n := int(function) % (17 + len(deviceCalls)); n {
		case 0:
			_, err = Symbol(text)
		case 1:
			_, err = ArrowExport(onCPU, 0, 0, b, c)
		case 2:
			_, err = ArrowImport(0, a)
		case 3:
			_, err = ArrowImport(a, 0)
		case 4:
			_, err = graphNew("", onCPU, 0, c, a, 0, c, b, 0, d, e, 0, 0, 0, 0, 0, 0)
		case 5:
			// A count of vertices is an order for memory: small ones, or such as no machine has.
			if d > 1000 {
				d |= 1 << 46
			}
			_, err = GraphFromCOO(0, 0, c, b, d)
		case 6:
			_, err = ExpandRows(0, a, b, c)
		case 7:
			var sampler int64
			if sampler, err = SamplerNew(document(text, a&1 == 1, fanouts[:uint64(a)%4]), b, 0); err == nil {
				_, err = SamplerClose(sampler)
			}
		case 8:
			_, err = PlanRead(text)
		case 9:
			var job int64
			if job, err = submit(g.handle, s, 0, a, c, d, e, 0, b, a); err == nil {
				_, err = Cancel(-job)
			}
		case 10:
			_, err = sample(g.handle, s, 0, a|1, c, d, e, 0, b, a)
		case 11:
			_, err = submit(a|1<<61, b, 0, 0, 64, 0, 0, 0, 0, 0)
		case 12:
			_, err = Wait(a|1<<61, b)
		case 13:
			_, err = Shuffle(0, a, c, d, e)
		case 14:
			// A size is an order for memory too.
			var job int64
			if job, err = Gather(0, a, b%(1<<20), c, 0); err == nil {
				_, err = Cancel(-job)
			}
		case 15:
			_, err = Gather(0, a|1, b, c, 1)
		case 16:
			var job int64
			if job, err = Gather(part(0, a, c, 0, b, d, e), 1, min(a^b, 1<<20), d, 0); err == nil {
				_, err = Cancel(-job)
			}
		default:
			if _, err = deviceCalls[n-17](a, b, c, d, e); err == nil {
				t.Errorf("function %d for devices: expected an error, got none", n-17)
			}
		}
		if err != nil && !message.MatchString(err.Error()) {
			t.Errorf("got %q", err)
		}
	})
	runtime.KeepAlive(g)
	runtime.KeepAlive(fanouts)
}

// FuzzShuffle: any array keeps its elements, in an order that its bytes do not
// change.
func FuzzShuffle(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, int64(1), int64(2))
	f.Add([]byte{}, int64(-1), int64(1<<24-1))
	f.Fuzz(func(t *testing.T, raw []byte, seed, epoch int64) {
		a := make([]int64, len(raw)/2)
		for i := range a {
			a[i] = int64(binary.LittleEndian.Uint16(raw[2*i:]))
		}
		b, order := slices.Clone(a), make([]int32, len(a))
		for i := range order {
			order[i] = int32(i)
		}
		_, err := Shuffle(address(b), int64(len(b)), 64, seed, epoch)
		if (err == nil) != (epoch >= 0 && epoch < 1<<24) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if _, err := Shuffle(address(order), int64(len(order)), 32, seed, epoch); err != nil {
			t.Fatal(err)
		}
		for i, from := range order {
			if b[i] != a[from] {
				t.Fatalf("element %d", i)
			}
		}
	})
}
