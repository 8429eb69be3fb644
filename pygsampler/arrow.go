package pygsampler

import (
	"encoding/json"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory/arrow"
)

// ArrowExport returns the address of an Arrow C pair over length ids at data. The pair holds a
// reference to the memory at the address mem.
func ArrowExport(mem, data, length int64, bits int) (int64, error) {
	if mem == 0 || length < 0 || bits != 32 && bits != 64 {
		return 0, Errorf(KindValue, "array: expected a memory of ids of 32 or 64 bits, got length %d of %d bits", length, bits)
	}
	pair, err := arrow.Export(memory.FromAddress(mem), data, length, bits)
	if err != nil {
		return 0, err
	}
	return pair.Address(), nil
}

// ArrowImport describes a borrowed Arrow array of ids as JSON.
func ArrowImport(schema, array int64) (string, error) {
	if schema == 0 || array == 0 {
		return "", Errorf(KindValue, "array: expected the addresses of an Arrow schema and array, got %d and %d", schema, array)
	}
	ids, err := arrow.Import(schema, array)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(ids)
	return string(text), err
}
