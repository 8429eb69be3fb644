package edges

import (
	"bytes"
	"fmt"
	"strings"
)

// matrix is a MatrixMarket file of coordinates: the entry (i, j) is an edge from
// node i-1 to node j-1.
type matrix struct {
	text    *text
	rows    int64
	columns int64
	entries int64
}

// openMatrix reads the banner and the line of sizes.
func openMatrix(path string, src, dst Column) (Source, error) {
	if src.Given || dst.Given {
		return nil, located(path, "src, dst: expected none for a matrix, whose columns are fixed")
	}
	size, err := fileSize(path)
	if err != nil {
		return nil, err
	}
	t := &text{path: path, name: baseName(path), size: size}
	t.fields = fields{comments: "%", columns: columns{0, 1, "row", "column"}}
	head, err := t.head()
	if err != nil {
		return nil, err
	}
	banner, _, _ := bytes.Cut(head, []byte("\n"))
	words := strings.Fields(strings.ToLower(string(banner)))
	if len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" {
		return nil, valueError("%s:1: expected %%%%MatrixMarket matrix coordinate ..., got %s", t.name, quoted(banner))
	}
	if words[2] != "coordinate" {
		return nil, valueError("%s:1: expected a matrix of coordinates, got %q", t.name, words[2])
	}
	line, start := t.fields.firstLine(head, 0)
	if line == nil {
		return nil, located(path, "expected a line with rows, columns and entries, got none")
	}
	end := start + t.fields.record(head[start:])
	t.skip, t.skipped = int64(end), numberLines(head[:end])
	mt := &matrix{text: t}
	var more string
	n, _ := fmt.Sscan(string(line), &mt.rows, &mt.columns, &mt.entries, &more)
	if n != 3 || mt.rows < 0 || mt.columns < 0 || mt.entries < 0 {
		return nil, valueError("%s:%d: expected rows, columns and entries, got %s", t.name, numberLines(head[:start])+1, quoted(line))
	}
	if mt.rows != mt.columns {
		return nil, valueError("%s:%d: expected as many rows as columns, got %d and %d, which are nodes of two kinds; HeteroGraph.from_scipy({(\"user\", \"to\", \"item\"): scipy.io.mmread(path)}) keeps them apart", t.name, numberLines(head[:start])+1, mt.rows, mt.columns)
	}
	t.facts = Facts{Bits: 64, NumNodes: mt.rows, Symmetric: words[4] != "general"}
	return mt, nil
}

func (mt *matrix) Facts() Facts { return mt.text.facts }
func (mt *matrix) Size() int64  { return mt.text.size }

func (mt *matrix) Scan(m *Meter, emit func(*Batch) error) error {
	seen := int64(0)
	err := mt.text.Scan(m, func(b *Batch) error {
		for _, side := range []struct {
			name string
			ids  []int64
			most int64
		}{{"row", b.Src, mt.rows}, {"column", b.Dst, mt.columns}} {
			for i, id := range side.ids {
				// One comparison for both ends: 0 wraps around.
				if uint64(id-1) >= uint64(side.most) {
					return valueError("%s: %s: expected an integer in [1, %d], got %d", b.where(i), side.name, side.most, id)
				}
				side.ids[i] = id - 1
			}
		}
		seen += int64(len(b.Src))
		return emit(b)
	})
	if err == nil && seen != mt.entries {
		err = located(mt.text.path, "expected %d entries, as its line of sizes says, got %d", mt.entries, seen)
	}
	return err
}
