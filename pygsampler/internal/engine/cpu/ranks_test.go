package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// tileList is tiles of random ids, each of which extends one of several lists of nodes.
type tileList struct {
	ids   [][]int32
	lists []int
}

// tilesOf is some tiles of up to so many ids, which are below nodes: a few of them in most places, as hubs are.
func tilesOf(draw *rand.Rand, tiles, most, lists int, nodes int64) (a tileList) {
	for range tiles {
		ids := make([]int32, draw.IntN(most+1))
		for k := range ids {
			if ids[k] = int32(draw.Int64N(nodes)); draw.IntN(3) == 0 {
				ids[k] = int32(draw.Int64N(min(nodes, 5)))
			}
		}
		a.ids, a.lists = append(a.ids, ids), append(a.lists, draw.IntN(lists))
	}
	return a
}

// Ranks give the numbers that claims in order give, in all kinds of numberings, hop after hop, whatever workers do when: also
// where few ranks fit beside the numbers, so that there are many rounds, and tiles that no round has room for.
func TestRanksAreClaimsInOrder(t *testing.T) {
	const nodes = 3000
	for _, k := range []struct {
		by    numbering
		limit int64
	}{{narrowMap, narrowNumbers}, {narrowMap, 4096}, {wideMap, wideNumbers}, {wideMap, 4096}, {hashed, 0}} {
		for _, extra := range []int{0, 1, 3, 7} {
			for _, lists := range []int{1, 3} {
				deadline.Within(t, time.Minute, func() {
					draw := rand.New(rand.NewPCG(uint64(k.limit), uint64(extra)))
					team := muster(idle(extra), many)
					defer team.dismiss()
					var scratch rankScratch
					defer scratch.free()
					var ranks, claims [3]struct {
						narrow directMap[uint32]
						wide   directMap[uint64]
						table  hashTable
						ranked[int32]
					}
					begin := func(l *ranked[int32]) {
						var err error
						switch k.by {
						case narrowMap:
							err = l.narrow.begin(nodes, uint32(k.limit))
						case wideMap:
							err = l.wide.begin(nodes, uint64(k.limit))
						default:
							if l.table.entries == nil {
								// On Go's heap: the race detector does not see what orders reads and writes elsewhere.
								l.table.entries, l.table.shift = make([]uint64, 2<<13), 64-13
							}
							l.table.begin()
							err = l.table.reserve(nodes, 0, nil)
						}
						if err != nil {
							t.Fatal(err)
						}
						l.by, l.n, l.nodes = k.by, 0, make([]int32, nodes+1)
					}
					for i := range lists {
						for _, l := range []*ranked[int32]{&ranks[i].ranked, &claims[i].ranked} {
							l.narrow, l.wide, l.table = &directMap[uint32]{}, &directMap[uint64]{}, &hashTable{}
						}
					}
					var stop atomic.Bool
					for batch := range 2 {
						for i := range lists {
							begin(&ranks[i].ranked)
							begin(&claims[i].ranked)
						}
						for hop := range 4 {
							a := tilesOf(draw, draw.IntN(25), []int{1, 40, 400, 5000}[draw.IntN(4)], lists, []int64{1, 50, nodes}[draw.IntN(3)])
							want := make([][]int32, len(a.ids))
							for i, ids := range a.ids {
								want[i] = slices.Clone(ids)
								claims[a.lists[i]].claim(want[i])
							}
							got := make([][]int32, len(a.ids))
							tiles := rankedTiles[int32]{
								count: int64(len(a.ids)), last: hop == 3,
								list: func(i int64) *ranked[int32] { return &ranks[a.lists[i]].ranked },
								size: func(i int64) int64 { return int64(len(a.ids[i])) },
								ids:  func(i int64) []int32 { return got[i] },
								draw: func(_ int, i int64) { hesitate(); got[i] = slices.Clone(a.ids[i]) },
							}
							for i := range lists {
								tiles.lists = append(tiles.lists, &ranks[i].ranked)
							}
							if err := tiles.number(team, &stop, &scratch); err != nil {
								t.Fatal(err)
							}
							for i := range want {
								if !slices.Equal(got[i], want[i]) {
									t.Fatalf("%+v, %d workers, batch %d, hop %d, tile %d: got %.400s, want %.400s", k, 1+extra, batch, hop, i, fmt.Sprint(got[i]), fmt.Sprint(want[i]))
								}
							}
							for i := range lists {
								r, c := &ranks[i], &claims[i]
								if r.n != c.n || !slices.Equal(r.nodes[:r.n], c.nodes[:c.n]) {
									t.Fatalf("%+v, %d workers, batch %d, hop %d: %d nodes %.400s, want %d %.400s", k, 1+extra, batch, hop, r.n, fmt.Sprint(r.nodes[:r.n]), c.n, fmt.Sprint(c.nodes[:c.n]))
								}
							}
						}
					}
					for i := range lists {
						for _, l := range []*ranked[int32]{&ranks[i].ranked, &claims[i].ranked} {
							l.narrow.free()
							l.wide.free()
						}
					}
				})
			}
		}
	}
}

// hubs is rows of a graph with much of what is rare: most nodes lead to a few, some have the same edge many times, or
// themselves, or none; one row is longer than many tiles.
func hubs(n int64, seed uint64) [][]int64 {
	draw := rand.New(rand.NewPCG(seed, 1))
	rows := make([][]int64, n)
	for v := range rows {
		size := draw.IntN(30)
		if v == 7 {
			size = 30_000
		}
		for range size {
			switch draw.IntN(8) {
			case 0:
				rows[v] = append(rows[v], int64(v))
			case 1, 2:
				rows[v] = append(rows[v], draw.Int64N(6))
			case 3:
				rows[v] = append(rows[v], int64(v+1)%n, int64(v+1)%n)
			default:
				rows[v] = append(rows[v], draw.Int64N(n))
			}
		}
	}
	return rows
}

// Batches of many workers, some of whose hops are numbered by rank, are those of one.
func TestManyWorkersSampleAsOne(t *testing.T) {
	const n = 20_000
	all := [][]int64{{5, 5, 5}, {4, -1}, {3, 0, 12}, {1500, 3}}
	if testing.Short() { // under the race detector, which does not see the maps and the batches
		all = all[:1]
	}
	for _, bits := range []int{32, 64} {
		g := csctest.Graph(hubs(n, uint64(bits)), n+2, bits, 96-bits, bits == 64)
		draw := rand.New(rand.NewPCG(5, 6))
		seeds := []int64{7, 7, n, n + 1, 0}
		for range 1200 {
			seeds = append(seeds, draw.Int64N(n), draw.Int64N(40))
		}
		for _, fanouts := range all {
			for _, options := range []request.Hops{{}, {Replace: true}, {OnlyNew: true}, {Disjoint: true}} {
				if options.Replace && slices.Min(fanouts) < 0 {
					continue
				}
				for _, mapBytes := range []int64{0, 1} {
					r := Request{Relation: g, MapBytes: mapBytes, EdgeWeights: options.OnlyNew}
					r.Hops = options
					r.Fanouts = fanouts
					r.Batch = request.Batch{Seed: 9, Number: 4, Seeds: csctest.Array(seeds, bits)}
					want := sample(t, &r, idle(0))
					for _, extra := range []idle{3, 15} {
						if got := sample(t, &r, extra); !got.Equal(want) {
							t.Fatalf("%d bits, %v, %+v, limit %d: %d workers sample another batch than one", bits, fanouts, options, mapBytes, 1+extra)
						}
					}
				}
			}
		}
	}
}

// Batches of many workers from a heterogeneous graph, in which several relations lead from one node type, are those of one.
func TestManyWorkersSampleHeteroAsOne(t *testing.T) {
	const n = 20_000
	for _, bits := range []int{32, 64} {
		g := &csc.Graph{Schema: &csc.Schema{NodeTypes: []csc.NodeType{{Name: "a", Nodes: n}, {Name: "b", Nodes: n}}}}
		for i, ends := range [][2]int{{0, 0}, {1, 0}, {0, 1}, {1, 0}} {
			g.Add(csc.EdgeType{Src: ends[0], Dst: ends[1], Salt: uint64(i)}, csctest.Graph(hubs(n, uint64(i)), n, bits, 64, i == 2))
		}
		draw := rand.New(rand.NewPCG(5, 6))
		seeds := []int64{7, 7}
		for range 1100 {
			seeds = append(seeds, draw.Int64N(n))
		}
		for variant := range 16 {
			r := &HeteroRequest{
				Graph: g, Fanouts: [][]int64{{3, 4}, {0, 5}, {4, 0}, {5, 2}}, Seeds: []int64{1000, 102}, Replace: variant&1 != 0, OnlyNew: variant&2 != 0,
				Disjoint: variant&12 == 12, EdgeWeights: variant&4 != 0, MapBytes: int64(variant & 8 / 8), Batch: request.Batch{Seed: 3, Seeds: csctest.Array(seeds, bits)},
			}
			if variant == 4 {
				r.Fanouts[1][1] = -1
			}
			var words []int64
			var arrays [][]int64
			for _, extra := range []idle{0, 3, 15} {
				var stop atomic.Bool
				m, err := SampleHetero(r, extra, &stop)
				if err != nil {
					t.Fatal(err)
				}
				gotWords, got := batchtest.Arrays(m, batch.Layout{Hops: 2, Types: 2, Relations: 4})
				m.Release()
				if extra == 0 {
					words, arrays = gotWords, got
				} else if !slices.Equal(gotWords, words) || !slices.EqualFunc(got, arrays, slices.Equal[[]int64]) {
					t.Fatalf("%d bits, variant %d: %d workers sample another batch than one", bits, variant, 1+extra)
				}
			}
		}
	}
}

// A batch whose hops are numbered by rank ends soon after it is stopped, with the error that says so, and one over arrays
// that were changed with an error; the next one finds nothing of either.
func TestStoppedAndDamagedRanks(t *testing.T) {
	const n = 20_000
	g := csctest.Graph(hubs(n, 1), n, 64, 64, false)
	damaged := csctest.Graph(hubs(n, 1), n, 64, 64, false)
	for i := range damaged.Indices.I64 {
		if i%5000 == 4999 {
			damaged.Indices.I64[i] = 1 << 40
		}
	}
	// More nodes than a table of all nodes has room for.
	strange := csctest.Graph(hubs(n, 1), n, 64, 64, false)
	for i := range strange.Indices.I64 {
		strange.Indices.I64[i] = int64(i) + 1<<40
	}
	draw := rand.New(rand.NewPCG(5, 6))
	seeds := make([]int64, 4000)
	for i := range seeds {
		seeds[i] = draw.Int64N(n)
	}
	seeds[0] = 7
	r := Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{5, 5}}, Batch: request.Batch{Seeds: csctest.Array(seeds, 64)}}}
	want := sample(t, &r, idle(0))
	for round := range 30 {
		deadline.Within(t, time.Minute, func() {
			var stop atomic.Bool
			go func() {
				time.Sleep(time.Duration(round*50) * time.Microsecond)
				stop.Store(true)
			}()
			m, err := Sample(&r, idle(5), &stop)
			if err == nil {
				m.Release()
			} else if err != request.ErrCancelled {
				t.Fatal(err)
			}
			var never atomic.Bool
			for _, bad := range []Request{
				{Relation: damaged, Request: r.Request},
				{Relation: strange, MapBytes: 1, Request: request.Request{Hops: request.Hops{Fanouts: []int64{-1, -1}}, Batch: r.Batch}},
			} {
				m, err := Sample(&bad, idle(5), &never)
				if err == nil {
					m.Release()
					t.Fatal("no error")
				}
			}
			if !sample(t, &r, idle(5)).Equal(want) {
				t.Fatal("another batch after one that ended early")
			}
		})
	}
}

// TestByRank says which hops are numbered by rank: large ones of many workers.
func TestByRank(t *testing.T) {
	for _, k := range []struct {
		workers int
		edges   int64
		want    bool
	}{{1, 1 << 30, false}, {2, 1 << 30, false}, {rankedWorkers - 1, 1 << 30, false}, {rankedWorkers, rankedEdges, true}, {16, rankedEdges - 1, false}} {
		if got := (&team{size: k.workers}).byRank(k.edges); got != k.want {
			t.Errorf("%+v: got %v", k, got)
		}
	}
}
