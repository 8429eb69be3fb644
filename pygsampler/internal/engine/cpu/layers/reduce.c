#include "reduce.h"

#include <math.h>
#include <stdlib.h>

#include "half.h"

// The wider registers of newer machines, but no fused multiply-add: sums have the same bits everywhere. gcc does
// not fuse in ISO C, and for ARM, which has the instruction always, setup.py tells clang not to.
#if defined(__x86_64__) && defined(__gnu_linux__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

#define ID int32_t
#define NAMED(name) name##_32
#include "floats.h"
#undef NAMED
#undef ID
#define ID int64_t
#define NAMED(name) name##_64
#include "floats.h"
#undef NAMED
#undef ID

// The function for the widths of r.
#define OF_FLOATS(name, bits)                          \
  (r->float_bits == 64   ? name##_double_##bits        \
   : r->float_bits == 32 ? name##_float_##bits         \
   : r->brain            ? name##_brain_##bits         \
                         : name##_half_##bits)

int64_t pgs_reduce(const pgs_reduction *r, int64_t low, int64_t high, int64_t most, int32_t *skipped) {
  return r->id_bits == 32 ? OF_FLOATS(reduce, 32)(r, low, high, most, skipped) : OF_FLOATS(reduce, 64)(r, low, high, most, skipped);
}

int64_t pgs_reduce_pieces(const pgs_reduction *r, int64_t row, int64_t low, int64_t high, void *sums, void *best) {
  return r->id_bits == 32 ? OF_FLOATS(reduce_pieces, 32)(r, row, low, high, sums, best)
                          : OF_FLOATS(reduce_pieces, 64)(r, row, low, high, sums, best);
}

void pgs_fold_pieces(const pgs_reduction *r, int64_t row, int64_t pieces, const void *sums, const void *best) {
  r->id_bits == 32 ? OF_FLOATS(fold_pieces, 32)(r, row, pieces, sums, best)
                   : OF_FLOATS(fold_pieces, 64)(r, row, pieces, sums, best);
}

int64_t pgs_transpose(const pgs_reduction *r, void *starts, void *rows, void *places) {
  return r->id_bits == 32 ? transpose_32(r, starts, rows, places) : transpose_64(r, starts, rows, places);
}

int64_t pgs_dots(const pgs_reduction *r, void *dots, int64_t low, int64_t high) {
  return r->id_bits == 32 ? OF_FLOATS(dots, 32)(r, dots, low, high) : OF_FLOATS(dots, 64)(r, dots, low, high);
}

int64_t pgs_attend(const pgs_reduction *r, const pgs_attention *a, int64_t low, int64_t high) {
  return r->id_bits == 32 ? OF_FLOATS(attend, 32)(r, a, low, high) : OF_FLOATS(attend, 64)(r, a, low, high);
}

int64_t pgs_attend_back(const pgs_reduction *r, const pgs_attention *a, int64_t low, int64_t high) {
  return r->id_bits == 32 ? OF_FLOATS(attend_back, 32)(r, a, low, high) : OF_FLOATS(attend_back, 64)(r, a, low, high);
}

int64_t pgs_edge_scores_of(const pgs_reduction *r, const pgs_edge_scores *b, int64_t low, int64_t high) {
  return r->id_bits == 32 ? OF_FLOATS(edge_scores, 32)(r, b, low, high) : OF_FLOATS(edge_scores, 64)(r, b, low, high);
}

int64_t pgs_edge_scores_back(const pgs_reduction *r, const pgs_edge_scores *b, int64_t low, int64_t high) {
  return r->id_bits == 32 ? OF_FLOATS(edge_scores_back, 32)(r, b, low, high) : OF_FLOATS(edge_scores_back, 64)(r, b, low, high);
}

int64_t pgs_softmax(const pgs_scores *r, int64_t low, int64_t high) {
  return r->id_bits == 32 ? OF_FLOATS(softmax, 32)(r, low, high) : OF_FLOATS(softmax, 64)(r, low, high);
}
