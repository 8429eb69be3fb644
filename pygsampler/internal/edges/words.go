package edges

import (
	"fmt"
	"strconv"
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
)

// mostWords is the maximal number of different words of a column, since they name types.
const mostWords = 4096

// Words is a column of names, such as the types of edges: its values are the positions of the names
// in the order of their first occurrence.
type Words struct {
	Values // int32
	List   []string
	places map[string]int32
}

// place returns the index of a word, which is added if it is new.
func (w *Words) place(path, where, word string) (int32, error) {
	at, known := w.places[word]
	if !known {
		if len(w.List) == mostWords {
			return 0, located(path, "%s: expected at most %d different names, got more", where, mostWords)
		}
		at = int32(len(w.List))
		w.places[word] = at
		w.List = append(w.List, word)
	}
	return at, nil
}

// all is the places of n words as bytes.
func (w *Words) all(path, where string, n int, word func(i int) string) ([]byte, error) {
	out := make([]int32, n)
	for i := range out {
		var err error
		if out[i], err = w.place(path, where, word(i)); err != nil {
			return nil, err
		}
	}
	return bytesOf(out), nil
}

func newWords(size int64) *Words {
	return &Words{Values: Values{DType: graphfile.Int32, Size: size}, places: map[string]int32{}}
}

func noWords(path, where, name, kind string) error {
	return located(path, "%s: expected a column of text or integers, got %q of type %s", where, name, kind)
}

// heard is the words that the workers of a text have met, in any order.
type heard struct {
	sync.RWMutex
	places map[string]int64
	list   []string
}

func (h *heard) place(word []byte) int64 {
	h.RLock()
	at, known := h.places[string(word)]
	h.RUnlock()
	if known {
		return at
	}
	h.Lock()
	defer h.Unlock()
	if at, known = h.places[string(word)]; known {
		return at
	}
	at = int64(len(h.list))
	h.list = append(h.list, string(word))
	h.places[string(word)] = at
	return at
}

// word reads a field as the place of a word.
func (f *fields) word(field []byte) (at int64, problem string) {
	word := field
	if f.quotes {
		word = unquote(field)
	}
	if len(word) == 0 {
		return 0, "expected a name, got " + quoted(field)
	}
	return f.heard.place(word), ""
}

// Words implements Table.
func (t *text) Words(where string, c Column) (*Words, error) {
	at, err := findIn(t.path, t.names, where, c)
	if err != nil {
		return nil, err
	}
	w := newWords(t.size)
	w.Scan = func(m *Meter, emit func([]byte) error) error {
		column := *t
		column.fields.columns = columns{at, at, where, where}
		column.fields.heard = &heard{places: map[string]int64{}}
		column.rejected = ""
		return column.Scan(m, func(b *Batch) error {
			column.fields.heard.RLock()
			list := column.fields.heard.list
			column.fields.heard.RUnlock()
			values, err := w.all(t.path, where, len(b.Src), func(i int) string { return list[b.Src[i]] })
			if err != nil {
				return err
			}
			return emit(values)
		})
	}
	return w, nil
}

// Words implements Table.
func (a *arrowFile) Words(where string, c Column) (w *Words, err error) {
	err = guarded(a.path, func() error {
		at, field, err := a.column(where, c)
		if err != nil {
			return err
		}
		kind := field.Type
		if d, ok := kind.(*arrow.DictionaryType); ok {
			kind = d.ValueType
		}
		if id := kind.ID(); id != arrow.STRING && id != arrow.LARGE_STRING && !arrow.IsInteger(id) {
			return noWords(a.path, where, field.Name, fmt.Sprint(field.Type))
		}
		w = newWords(a.size)
		w.Scan = func(m *Meter, emit func([]byte) error) error {
			return a.scanValues(m, where, at, func(column arrow.Array) ([]byte, error) {
				return w.all(a.path, where, column.Len(), column.ValueStr)
			}, emit)
		}
		return nil
	})
	return w, err
}

// Words implements Table.
func (p *parquetFile) Words(where string, c Column) (w *Words, err error) {
	err = guarded(p.path, func() error {
		column, at, size, err := p.beside(where, c)
		if err != nil {
			return err
		}
		text := column.PhysicalType() == parquet.Types.ByteArray
		kind := parquetKind(column)
		switch kind {
		case graphfile.Bool, graphfile.Float32, graphfile.Float64, 0:
			if !text || column.MaxRepetitionLevel() > 0 {
				return noWords(p.path, where, column.Path(), kindOfColumn(column))
			}
		}
		w = newWords(size)
		w.Scan = func(m *Meter, emit func([]byte) error) error {
			return p.scanValues(m, where, at, func(chunk file.ColumnChunkReader, n int64) ([]byte, int64, int64, error) {
				return w.read(p.path, where, chunk, kind, n)
			}, emit)
		}
		return nil
	})
	return w, err
}

// read is readValues for words.
func (w *Words) read(path, where string, column file.ColumnChunkReader, kind graphfile.DType, n int64) (values []byte, rows, null int64, err error) {
	if c, ok := column.(*file.ByteArrayColumnChunkReader); ok {
		levels, read := make([]int16, n), make([]parquet.ByteArray, n)
		var defined int
		rows, defined, err = c.ReadBatch(n, read, levels, nil)
		if null, err = firstNull(column, n, rows, defined, levels, err); err != nil {
			return nil, rows, null, err
		}
		values, err = w.all(path, where, max(defined, 0), func(i int) string { return string(read[i]) })
		return values, rows, null, err
	}
	bytes, rows, null, err := readValues(column, kind, n)
	if err != nil {
		return nil, rows, null, err
	}
	size := int(kind.Size())
	values, err = w.all(path, where, len(bytes)/size, func(i int) string {
		at := unsafe.Pointer(&bytes[i*size])
		switch kind {
		case graphfile.Int8:
			return strconv.Itoa(int(*(*int8)(at)))
		case graphfile.Uint8:
			return strconv.Itoa(int(*(*uint8)(at)))
		case graphfile.Int16:
			return strconv.Itoa(int(*(*int16)(at)))
		case graphfile.Uint16:
			return strconv.Itoa(int(*(*uint16)(at)))
		case graphfile.Int32:
			return strconv.Itoa(int(*(*int32)(at)))
		case graphfile.Uint32:
			return strconv.Itoa(int(*(*uint32)(at)))
		case graphfile.Uint64:
			return strconv.FormatUint(*(*uint64)(at), 10)
		}
		return strconv.FormatInt(*(*int64)(at), 10)
	})
	return values, rows, null, err
}
