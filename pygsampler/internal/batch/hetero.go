package batch

// The constants here are those of Python too, as words.go says. This file imports nothing.

// TypedMagic is the first word of a batch of a graph with types ("PGST").
const TypedMagic = 0x50475354

// Words of a batch of a graph with types. Those that are not here are where the header of a batch
// has them. Behind the header come TypeWords for each type of vertices; then for each of these how
// many vertices it had when each hop began, and in the end; then the width of the edge ids of
// each relation; then a block for each hop and relation, outermost hop first.
const (
	TypedHops         = 3
	TypedNumTypes     = 4
	TypedNumRelations = 5
)

// Words of a type of vertices.
const (
	TypeNumNodes = iota
	TypeNodes
	TypeNumOutput
	TypeOutputNodes
	TypeOutputIndex
	TypeTrees // 0 where trees share vertices
	TypeWords = 8
)
