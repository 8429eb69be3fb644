// Rows of values, reduced over the segments of a CSR: one row of the result for each row of it.
#ifndef PGS_REDUCE_H
#define PGS_REDUCE_H

#include <stdint.h>

enum { PGS_SUM, PGS_MEAN, PGS_MAX };

// The arrays that a reduction reads and writes, in C order and without gaps. Edges from the last
// offset on are padding and are never read.
typedef struct {
  const void *x;         // [table, width]
  const void *indptr;    // [rows + 1], from 0 to at most edges
  const void *indices;   // [edges], sources
  const void *weights;   // [edges, heads], or null: all edges count once
  void *out;             // [rows, width]; 0 for rows without edges
  void *best;            // of PGS_MAX [rows, width]: which source it was, or -1; of the width of ids
  int64_t sources, rows, edges, width, heads;
  int32_t kind, id_bits, float_bits;
  int32_t brain;         // whether floats of 16 bits are bfloat16
  const void *ids;       // [sources]: the row of x that a source has, or null: its own
  int64_t table;         // rows of x, as many as sources without ids
  const void *degrees;   // [sources + 1], or null: offsets, by whose steps each source's row is divided
  const void *places;    // [edges], or null: which weight an edge has
  int64_t piece;         // sums of rows of at least twice so many edges are sums of pieces; 0: of none
} pgs_reduction;

// Makes rows low to high, but those of at least most edges, for which it sets skipped. Returns the place of an edge whose source, or its row of x, is none, -1
// where all are, -2 where indptr is none, -3 where there is no memory.
int64_t pgs_reduce(const pgs_reduction *r, int64_t low, int64_t high, int64_t most, int32_t *skipped);

// Makes pieces low to high of a long row: piece i into sums and best, [pieces, width], of which sums
// are of the type that values are added as. Returns as pgs_reduce.
int64_t pgs_reduce_pieces(const pgs_reduction *r, int64_t row, int64_t low, int64_t high, void *sums, void *best);

// Makes a row of so many pieces.
void pgs_fold_pieces(const pgs_reduction *r, int64_t row, int64_t pieces, const void *sums, const void *best);

// Groups the edges by their sources: the row and the place of each, in the order of the edges;
// places may be null. starts has sources + 1 elements; all are of id_bits. Returns as pgs_reduce.
int64_t pgs_transpose(const pgs_reduction *r, void *starts, void *rows, void *places);

// Writes to dots [edges, heads] the products of each edge's row of x with its row of out, which
// is read, for rows low to high. Returns as pgs_reduce.
int64_t pgs_dots(const pgs_reduction *r, void *dots, int64_t low, int64_t high);

// Attention on top of a reduction, whose out is written, or in pgs_attend_back the gradient and
// read. All but alpha are of the type that values are added as: float for those of 16 bits.
typedef struct {
  const void *source;  // [sources, heads]; null, as target and edge: 0
  const void *target;  // [rows, heads]
  const void *edge;    // [edges, heads]
  void *log;           // [rows, heads]: of the sum of a row's exponentials; may be null in pgs_attend
  void *alpha;         // [edges, heads]: the weights; with pre and to_target of pgs_attend_back
  void *pre;           // [edges, heads]: the gradients of source + target + edge
  void *to_target;     // [rows, heads]; may be null
  double slope;
  int32_t shared;      // whether x is [table, width / heads], and each head adds all of a row
} pgs_attention;

// Rows low to high by the softmax of leaky_relu(source + target + edge). Returns as pgs_reduce.
int64_t pgs_attend(const pgs_reduction *r, const pgs_attention *a, int64_t low, int64_t high);

// Writes alpha, pre and to_target of rows low to high. Returns as pgs_reduce.
int64_t pgs_attend_back(const pgs_reduction *r, const pgs_attention *a, int64_t low, int64_t high);

// Scores of edges that GATv2 has, on top of a reduction: att times leaky_relu(x + own + edge), for
// each head. att, scores and to_att are of the type that values are added as.
typedef struct {
  const void *own;   // [rows, width]
  const void *att;   // [width]
  const void *edge;  // [edges, width]; may be null
  void *scores;      // [edges, heads]: written; or with to_own their gradients by places, and read
  void *to_own;      // [rows, width]: gradients of own, of pgs_edge_scores_back, as those below
  void *to_att;      // [rows, width]: gradients of att by rows; may be null
  void *to_edge;     // [edges, width]: gradients of edge; may be null
  double slope;
} pgs_edge_scores;

// Scores of the edges of rows low to high. Returns as pgs_reduce.
int64_t pgs_edge_scores_of(const pgs_reduction *r, const pgs_edge_scores *b, int64_t low, int64_t high);

// Writes to_own, to_att and to_edge of rows low to high. Returns as pgs_reduce.
int64_t pgs_edge_scores_back(const pgs_reduction *r, const pgs_edge_scores *b, int64_t low, int64_t high);

// Scores of edges, [edges, heads], of which out becomes the softmax in each row; with grad x is
// what it was, and out becomes the gradient of the scores.
typedef struct {
  const void *indptr, *x, *grad;
  void *out;
  int64_t rows, edges, heads;
  int32_t id_bits, float_bits, brain;
} pgs_scores;

// Rows low to high. Returns -1, or -2 where indptr is none.
int64_t pgs_softmax(const pgs_scores *s, int64_t low, int64_t high);

#endif
