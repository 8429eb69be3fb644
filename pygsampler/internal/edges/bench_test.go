package edges

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkParse is the parser of lines alone, on one core.
func BenchmarkParse(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range []struct {
		name, line string
		fields     fields
	}{
		{"snap", "%d\t%d\n", fields{comments: "#", columns: columns{dst: 1}}},
		{"csv", "%d,%d\n", fields{separator: ',', quotes: true, comments: "#", columns: columns{dst: 1}}},
		{"csv of five columns", "7,%d,%d,0.25,text\n", fields{separator: ',', quotes: true, comments: "#", columns: columns{src: 1, dst: 2}}},
		{"csv with quotes", "\"%d\",\"%d\"\n", fields{separator: ',', quotes: true, comments: "#", columns: columns{dst: 1}}},
	} {
		var text strings.Builder
		edges := 0
		for ; text.Len() < blockSize; edges++ {
			fmt.Fprintf(&text, k.line, rng.IntN(1_000_000), rng.IntN(1_000_000))
		}
		data := []byte(text.String())
		src, dst := make([]int64, 0, edges), make([]int64, 0, edges)
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if s, _, _, bad := k.fields.parse(data, src, dst, -1); bad != nil || len(s) != edges {
					b.Fatal(bad)
				}
			}
			b.ReportMetric(float64(b.N)*float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}

// BenchmarkBuild is the passes over edges that are in memory already: degrees, ids
// where vertices are numbered anew, and the scatter.
func BenchmarkBuild(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const nodes, edges = 1 << 18, 4 << 20
	l := whole{make([]int64, edges), make([]int64, edges)}
	for i := range l.src {
		l.src[i], l.dst[i] = rng.Int64N(nodes), rng.Int64N(nodes)*rng.Int64N(nodes)/nodes
	}
	for _, p := range []Plan{{NumNodes: -1, Numbering: Never}, {NumNodes: -1, Numbering: Always}, {NumNodes: -1, Numbering: Never, Undirected: true}} {
		b.Run(fmt.Sprintf("numbering=%d,undirected=%v", p.Numbering, p.Undirected), func(b *testing.B) {
			for b.Loop() {
				var target Memory
				if _, err := Build(l, p, &target, &Meter{}); err != nil {
					b.Fatal(err)
				}
				target.Block.Release()
			}
			b.ReportMetric(float64(b.N)*edges/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}

// whole is a source that hands over copies of its edges in large batches.
type whole struct{ src, dst []int64 }

func (w whole) Facts() Facts { return Facts{64, -1, false} }
func (w whole) Size() int64  { return int64(len(w.src)) }
func (w whole) Scan(_ *Meter, emit func(*Batch) error) error {
	src, dst := make([]int64, rowsAtOnce), make([]int64, rowsAtOnce)
	for at := 0; at < len(w.src); at += rowsAtOnce {
		copy(src, w.src[at:])
		copy(dst, w.dst[at:])
		if err := emit(&Batch{Src: src, Dst: dst}); err != nil {
			return err
		}
	}
	return nil
}
