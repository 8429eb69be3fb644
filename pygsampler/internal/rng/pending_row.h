#pragma once
#include <stdint.h>

// The most edges of a row of which draws are made among what is left.
enum { PGS_SHORT = 32 };

// A row of at most PGS_SHORT edges, whose sums stand from one of all on, and whose positions, as many as its fanout, at a
// place among all; a bit for each of those that are to be drawn again. Go twin PendingRow in left.go.
struct pgs_left {
  int64_t at, fanout, start, edges;
  uint64_t state, refused;
};

// Draws again what rows have refused, by the sums over what is left. Vectors have at most so many bits as the widest.
void pgs_draw_left(int64_t *positions, const uint64_t *sums, const struct pgs_left *rows, int64_t n, int widest);
