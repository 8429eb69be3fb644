package bridge

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// A wrong word of a list is named, before a device is requested.
func TestNegativesArguments(t *testing.T) {
	out, alias := make([]int64, 6), make([]int64, 9)
	good := []int64{1, 2, 3, 0, 9, 3, 1, 2, 0, 0, int64(uintptr(unsafe.Pointer(&out[0]))), 64}
	onHost := func(list int64) (int64, error) { return DrawNumbers(onCPU, list, 0) }
	call := func(change map[int]int64, f func(list int64) (int64, error)) error {
		list := append([]int64(nil), good...)
		for i, value := range change {
			list[i] = value
		}
		_, err := f(int64(uintptr(unsafe.Pointer(&list[0]))))
		runtime.KeepAlive(list)
		return err
	}
	for want, change := range map[string]map[int]int64{
		"ValueError: negatives: expected an epoch, a batch and a site, got -1, 3 and 0":        {1: -1},
		"ValueError: negatives: expected an epoch, a batch and a site, got 16777216, 3 and 0":  {1: 1 << 24},
		"ValueError: negatives: expected an epoch, a batch and a site, got 2, -1 and 0":        {2: -1},
		"ValueError: negatives: expected an epoch, a batch and a site, got 2, 3 and 256":       {3: 256},
		"ValueError: negatives: expected an epoch and a batch of at most":                      {2: 1 << 40},
		"ValueError: negatives: expected a graph with nodes, got one of 0":                     {4: 0},
		"ValueError: negatives: expected rows and a count >= 0 and slots >= 1, got -1":         {5: -1},
		"ValueError: negatives: expected rows and a count >= 0 and slots >= 1, got 3, 2 and 0": {6: 0},
		"TypeError: negatives: expected 32 or 64 bits with room for 8, got 16":                 {11: 16},
		"TypeError: negatives: expected 32 or 64 bits with room for 2147483648, got 32":        {4: 1<<31 + 1, 11: 32},
		"ValueError: out: expected an address, got 0":                                          {10: 0},
		"ValueError: alias: expected an address that 8 divides, got 0x4":                       {8: 4},
		"ValueError: places: expected an address that 8 divides, got 0x4":                      {9: 4},
	} {
		for _, f := range []func(int64) (int64, error){onHost, func(list int64) (int64, error) { return DrawNumbers(0, list, 0) }} {
			if err := call(change, f); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("expected %q, got %v", want, err)
			}
		}
	}
	if err := call(nil, onHost); err != nil {
		t.Error(err)
	}
	if err := call(map[int]int64{8: int64(uintptr(unsafe.Pointer(&alias[0])))}, onHost); err != nil {
		t.Error(err)
	}
	if _, err := DrawNumbers(onCPU, 0, 0); err == nil {
		t.Error("expected an error without a list")
	}
	if _, err := deriveStart(1<<40, "negatives", "", "", 0); err == nil || !strings.HasPrefix(err.Error(), "ClosedError") {
		t.Errorf("expected a ClosedError, got %v", err)
	}
	runtime.KeepAlive(out)
	runtime.KeepAlive(alias)
}
