// Rows of values, reduced over the segments of a CSR: one row of the result for each row of it.
#ifndef PGS_REDUCE_H
#define PGS_REDUCE_H

#include <stdint.h>

enum { PGS_SUM, PGS_MEAN, PGS_MAX };

// What a reduction reads and writes. All arrays are in C order and without gaps.
typedef struct {
  const void *x;         // [sources, width]
  const void *indptr;    // [rows + 1], from 0 to edges
  const void *indices;   // [edges], rows of x
  const void *weights;   // [edges, heads], or null: all edges count once
  void *out;             // [rows, width]; 0 for rows without edges
  void *best;            // of PGS_MAX [rows, width]: which row of x it was, or -1; of the width of ids
  int64_t sources, rows, edges, width, heads;
  int32_t kind, id_bits, float_bits;
} pgs_reduction;

// Makes rows low to high. Returns the place of an edge whose source is no row of x, -1 where all
// are, -2 where indptr is none.
int64_t pgs_reduce(const pgs_reduction *r, int64_t low, int64_t high);

// Groups the edges by their sources: the row and the place of each, in the order of the edges.
// starts has sources + 1 elements; all are of id_bits. Returns as pgs_reduce.
int64_t pgs_transpose(const pgs_reduction *r, void *starts, void *rows, void *places);

// Writes to dots [edges, heads] the products of each edge's row of x with its row of out, which
// is read, for rows low to high. Returns as pgs_reduce.
int64_t pgs_dots(const pgs_reduction *r, void *dots, int64_t low, int64_t high);

#endif
