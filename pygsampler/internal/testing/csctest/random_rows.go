package csctest

import "github.com/pygsampler/pygsampler/pygsampler/internal/rng"

// RandomRows returns n rows of skewed degrees, some empty; edges may be parallel or self loops.
func RandomRows(n int, seed uint64) [][]int64 {
	rows := make([][]int64, n)
	for v := range rows {
		state := rng.NewStream(seed, 0, 0, 0, rng.Shuffling).State(uint64(v))
		degree := rng.Below(rng.Draw(state, 0), 8)
		if rng.Draw(state, 1)%16 == 0 {
			degree *= 40
		}
		for j := range degree {
			rows[v] = append(rows[v], int64(rng.Below(rng.Draw(state, int(j)+2), uint64(n))))
		}
	}
	return rows
}

// EveryDegree returns rows of 0 to 70 in-neighbors, and all their nodes as seeds, the last one
// first.
func EveryDegree() (rows [][]int64, seeds []int64) {
	for degree := range 71 {
		row := make([]int64, degree)
		for j := range row {
			row[j] = int64((degree*7 + j*3) % 71)
		}
		rows, seeds = append(rows, row), append(seeds, int64(70-degree))
	}
	return rows, seeds
}

// Awkward returns small graphs that are easily sampled wrong, by name. The star has 5000 leaves,
// and hub edges.
func Awkward(hub int) map[string][][]int64 {
	star, long := make([][]int64, 5001), make([][]int64, 41)
	star[0] = Steps(hub, 1)
	for i := range star[0] {
		star[0][i] %= 5001
	}
	for i := range long[:40] {
		long[i] = []int64{int64(i + 1)}
	}
	return map[string][][]int64{
		"no rows": {}, "isolated": make([][]int64, 5), "self loops": {{0, 0}, {1}, {2, 2, 2}},
		"parallel": {{1, 1, 1, 1, 1, 1}, {0, 0}}, "path": {{1}, {2}, {3}, {}}, "long path": long, "star": star,
	}
}
