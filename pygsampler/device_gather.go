package pygsampler

import (
	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/quantized"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// mostGathers bounds what is gathered by one call.
const mostGathers = 1 << 10

// Words of a gather in the list of DeviceGather.
const (
	gatherIDs = iota
	gatherCount
	gatherIDBits
	gatherTable
	gatherRows
	gatherRowBytes
	gatherCached
	gatherSlots
	gatherOut
	gatherCounts
	gatherBad
	deviceGatherWords
)

// The words of quantized tables follow the words of all tables: five describe the format, as in
// Gather, and one is the address of working memory for the stored rows, or 0 to convert them where
// they are. gatherQuantized is added to the bits of the ids.
const (
	gatherQuantized = 1 << 8
	quantizedWords  = formWords + 1
)

// DeviceGather enqueues copies of rows of tables, as cuda.Gather describes, and for quantized
// tables cuda.Dequantize after it, or in its place. The address list holds 11 integers for each
// table: the address, number and bits of the ids; the address of the table, its rows, and the bytes
// of a row; the address of the cached rows, and the address of the cache slot of each row of the
// table, or 0 and 0; the address of the result; the address of the count of rows from the cache, or
// 0; the address for the position of an id outside of the table, or 0. gatherQuantized is added to
// the bits of the ids of a quantized table. beside leaves room on the device for other work.
func DeviceGather(device, count, list int64, beside bool, stream int64) error {
	if list == 0 || count < 1 || count > mostGathers {
		return Errorf(KindValue, "list: expected 1 to %d tables at an address, got %d at %#x", mostGathers, count, list)
	}
	all := make([]cuda.Gather, 0, count)
	var conversions []cuda.Dequantize
	for i, w := range memory.View[[deviceGatherWords]int64](list, count) {
		byID := false
		if w[gatherIDBits]&gatherQuantized != 0 {
			w[gatherIDBits] &^= gatherQuantized
			words := memory.View[int64](list+8*(deviceGatherWords*count+quantizedWords*int64(len(conversions))), quantizedWords)
			one, err := quantizedPart(i, &w, words)
			if err != nil {
				return err
			}
			conversions = append(conversions, one)
			if byID = one.ByID; !byID {
				w[gatherOut] = words[formWords]
			}
		}
		if err := checkGather(i, &w); err != nil {
			return err
		}
		if byID {
			continue
		}
		all = append(all, cuda.Gather{
			IDs: gpu.Address(w[gatherIDs]), Count: uint64(w[gatherCount]), Bits: int(w[gatherIDBits]),
			Table: gpu.Address(w[gatherTable]), Rows: uint64(w[gatherRows]), Row: uint64(w[gatherRowBytes]),
			Cached: gpu.Address(w[gatherCached]), Slots: gpu.Address(w[gatherSlots]), Out: gpu.Address(w[gatherOut]),
			Counts: gpu.Address(w[gatherCounts]), Bad: gpu.Address(w[gatherBad]),
		})
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	if err = e.Gather(all, beside, s); err == nil {
		for i := range conversions {
			if err = e.Dequantize(&conversions[i], beside, s); err != nil {
				break
			}
		}
	}
	return onDevice(err)
}

// quantizedPart returns the conversion of the stored rows of table i to floats; words are the words
// of a quantized table.
func quantizedPart(i int, w *[deviceGatherWords]int64, words []int64) (cuda.Dequantize, error) {
	form, stored := formAt(words), words[formWords]
	if err := form.Check(w[gatherRowBytes]); err != nil {
		return cuda.Dequantize{}, err
	}
	ids, err := deviceIDs(w[gatherIDs], w[gatherCount], w[gatherIDBits])
	if err != nil {
		return cuda.Dequantize{}, err
	}
	one := cuda.Dequantize{
		IDs: ids, Rows: uint64(w[gatherRows]), Scales: gpu.Address(form.Scales), Stored: gpu.Address(stored), Out: gpu.Address(w[gatherOut]),
		Row: uint64(w[gatherRowBytes]), Columns: uint64(form.Columns), Kind: form.Kind, To: form.To, ByColumn: form.ByColumn,
	}
	unit := int64(16)
	if stored == 0 {
		if unit = 1; form.Kind <= quantized.Brain {
			unit = 2
		}
		one.ByID, one.Stored, one.Bad = true, gpu.Address(w[gatherTable]), gpu.Address(w[gatherBad])
	}
	size := form.ReadBytes() / form.Columns
	switch out := w[gatherOut]; {
	case w[gatherRows] < 0 || form.Columns > cuda.MostRow:
		return one, Errorf(KindValue, "list[%d]: expected rows >= 0 and 1 to %d columns, got %d and %d", i, cuda.MostRow, w[gatherRows], form.Columns)
	case one.ByID && w[gatherSlots] != 0:
		return one, Errorf(KindValue, "list[%d]: expected an address for stored rows, of which some are cached, got 0", i)
	case ids.Count > 0 && (int64(one.Stored)%unit != 0 || out == 0 || out%size != 0):
		return one, Errorf(KindValue, "list[%d]: expected addresses for stored rows and for floats that %d and %d divide, got %#x and %#x", i, unit, size, one.Stored, out)
	}
	return one, nil
}

// checkGather checks table i of a list. A kernel that meets a wrong address ends all work of
// the process on that device, so what can be seen here is refused.
func checkGather(i int, w *[deviceGatherWords]int64) error {
	bits := w[gatherIDBits]
	switch {
	case w[gatherCount] < 0:
		return Errorf(KindValue, "list[%d].count: expected an integer >= 0, got %d", i, w[gatherCount])
	case bits != 32 && bits != 64:
		return Errorf(KindValue, "list[%d].id_bits: expected 32 or 64, got %d", i, bits)
	case w[gatherRows] < 0:
		return Errorf(KindValue, "list[%d].rows: expected an integer >= 0, got %d", i, w[gatherRows])
	case w[gatherRowBytes] < 1 || w[gatherRowBytes] > cuda.MostRow:
		return Errorf(KindValue, "list[%d].row_bytes: expected 1 to %d, got %d", i, cuda.MostRow, w[gatherRowBytes])
	case (w[gatherCached] == 0) != (w[gatherSlots] == 0):
		return Errorf(KindValue, "list[%d].slots: expected addresses of cached rows and of their slots, or neither, got %#x and %#x", i, w[gatherCached], w[gatherSlots])
	case w[gatherCount] == 0:
		return nil
	}
	for _, one := range []struct {
		name   string
		word   int
		needed bool
		to     int64 // what the address is a multiple of
	}{
		{"ids", gatherIDs, true, bits / 8}, {"table", gatherTable, w[gatherRows] > 0, 1}, {"slots", gatherSlots, false, 4},
		{"out", gatherOut, true, 1}, {"counts", gatherCounts, false, 8}, {"bad", gatherBad, false, 8},
	} {
		if at := w[one.word]; at == 0 && one.needed {
			return Errorf(KindValue, "list[%d].%s: expected an address, got 0", i, one.name)
		} else if at%one.to != 0 {
			return Errorf(KindValue, "list[%d].%s: expected an address that %d divides, got %#x", i, one.name, one.to, at)
		}
	}
	return nil
}
