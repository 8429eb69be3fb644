package program

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/passes"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// alone is a crew of nobody.
type alone struct{}

func (alone) Borrow(int) int { return 0 }
func (alone) Return(int)     {}

// made is a batch, and what is beside its blocks.
type made struct {
	batchtest.Batch
	extras [][]byte
}

func (m made) equal(n made) bool {
	return m.Equal(n.Batch) && slices.EqualFunc(m.extras, n.extras, slices.Equal)
}

// read copies a batch.
func read(m memory.Memory) (b made) {
	b.Batch = batchtest.Read(m)
	l, _ := batch.LayoutOf(memory.ViewAt[int64](m, 0, batch.FixedWords))
	words := memory.ViewAt[int64](m, 0, int64(l.Words()))
	for i := range l.Extras {
		w := words[l.Extra(i):]
		bytes := 4 * w[batch.ExtraLength]
		if w[batch.ExtraKind] == 1 {
			bytes = b.IDBits / 8 * w[batch.ExtraLength]
		}
		b.extras = append(b.extras, slices.Clone(memory.ViewAt[byte](m, w[batch.ExtraOffset], bytes)))
	}
	return b
}

// programs are those that each pass has something to do in.
var programs = map[string]string{
	"sage": `
		%0 = seeds
		%1 = slice %0
		%2 = individual %1 k=3 replace=false site=0
		%3 = row %2
		%4 = union %0, %3
		%5 = slice %4
		%6 = individual %5 k=2 replace=false site=1
		return blocks %6, %2`,
	"replace, from columns": `
		%0 = seeds
		%1 = slice %0
		%2 = individual %1 k=2 replace=true site=0
		%3 = column %2
		%4 = row %2
		%5 = union %3, %4
		%6 = slice %5
		%7 = individual %6 k=-1 replace=true site=1
		return blocks %7, %2`,
	"ladies": `
		%0 = seeds
		%1 = slice %0
		%2 = const value=2
		%3 = pow %1, %2
		%4 = sum %3 axis=1
		%5 = collective %1, %4 k=4 replace=false site=0
		%6 = div %5, %4 axis=1
		%7 = sum %6 axis=0
		%8 = div %6, %7 axis=0
		%9 = row %8
		%10 = const value=2
		%11 = slice %9
		%12 = pow %11, %10
		%13 = sum %12 axis=1
		%14 = collective %11, %13 k=4 replace=false site=1
		%15 = div %14, %13 axis=1
		return blocks %15, %8 "rows"=%9 "norm"=%7`,
	"of the graph": `
		%0 = whole
		%1 = exp %0
		%2 = neg %1
		%3 = abs %2
		%4 = sum %3 axis=1
		%5 = sum %3 axis=0
		%6 = sum %4
		%7 = div %4, %6
		%8 = degree
		%9 = sqrt %8
		%10 = add %7, %9
		%11 = seeds
		%12 = slice %11
		%13 = mul %12, %10 axis=1
		%14 = individual %12, %13 k=3 replace=false site=0
		%15 = random %12 site=5
		%16 = individual %12 k=3 replace=false site=1
		%17 = const value=3
		%18 = neg %17
		%19 = mul %14, %18
		%20 = gather %5, %11
		%21 = abs %13
		%22 = sum %21 axis=0
		%23 = largest %21 axis=1
		return blocks %19, %16 "p"=%10 "q"=%20 "c"=%22 "r"=%23`,
}

// Each pass changes no byte: with any of them off, and with all, a batch is the same. A
// program that is recognised is the other family's then and the executor's without.
func TestPassesChangeNothing(t *testing.T) {
	graphs := csctest.Awkward(40)
	graphs["random"] = csctest.RandomRows(60, 3)
	for name, text := range programs {
		t.Run(name, func(t *testing.T) {
			var code []string
			for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
				code = append(code, strings.TrimSpace(line))
			}
			recognised := 0
			for shape, rows := range graphs {
				for _, bits := range []int{32, 64} {
					nodes := int64(len(rows))
					for _, row := range rows {
						for _, v := range row {
							nodes = max(nodes, v+1)
						}
					}
					g := csctest.Graph(rows, nodes, bits, 64, bits == 32)
					weights := make([]float32, g.NumEdges())
					for i := range weights {
						weights[i] = float32(i%5) / 4
					}
					g.EdgeData = map[string]csc.Values{"w": csc.BorrowValues(int64(uintptr(unsafe.Pointer(unsafe.SliceData(weights)))), int64(len(weights)), csc.Float32)}
					seeds := []int64{0, nodes - 1, nodes / 2, 0}
					if nodes == 0 {
						seeds = nil
					}
					for _, weight := range []any{nil, "w"} {
						var want made
						for i, off := range append([][]string{passes.Names(), nil}, single(passes.Names())...) {
							p, d := planOf(code, map[string]any{"weight": weight, "passes": off})
							if d.Err() != nil {
								t.Fatal(d.Err())
							}
							if p.known != nil {
								recognised++
							}
							var stop atomic.Bool
							m, err := p.CPU(&plan.Work{
								Graph: csc.Homogeneous(g), Crew: alone{}, Stop: &stop,
								Batch: request.Batch{Seed: 7, Epoch: 1, Number: 2, Seeds: csctest.Array(seeds, bits)},
							})
							if err != nil {
								t.Fatalf("%s, without %v: %v", shape, off, err)
							}
							got := read(m)
							m.Release()
							if i == 0 {
								want = got
							} else if !got.equal(want) {
								t.Fatalf("%s, int%d, weight %v, without %v: got\n%+v\nwant\n%+v", shape, bits, weight, off, got, want)
							}
						}
					}
				}
			}
			if known := strings.Contains(name, "sage") || strings.Contains(name, "replace"); known != (recognised > 0) {
				t.Errorf("recognised %d times", recognised)
			}
		})
	}
}

// single are lists of one name.
func single(names []string) (lists [][]string) {
	for _, name := range names {
		lists = append(lists, []string{name})
	}
	return lists
}
