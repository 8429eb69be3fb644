// The functions of reduce.h for scores of edges, for ids of type ID and values of type VALUE, as body.h has them.

// The rows of an edge, which has zeros where it has none of its own; and those of the next ones are asked for.
#define SCORED(e)                                                          \
  uint64_t at = NAME(row_of)(r, e);                                        \
  if (at == UINT64_MAX) {                                                  \
    wrong = e;                                                             \
    break;                                                                 \
  }                                                                        \
  if (e + AHEAD < r->edges) {                                              \
    uint64_t next = NAME(row_of)(r, e + AHEAD);                            \
    if (next != UINT64_MAX) NAME(ask)(x + next * width, width);            \
  }                                                                        \
  int64_t place = places ? places[e] : e;                                  \
  const VALUE *from = x + at * width, *more = edge ? edge + place * width : zeros;

#define SCORE(j) (WIDE(from[j]) + WIDE(own[j]) + WIDE(more[j]))

// The product of att and what an edge has of a head: eight sums side by side, as in product.
static inline __attribute__((always_inline)) SUM NAME(one_score)(const SUM *restrict from, const SUM *restrict att, int64_t width) {
  SUM sums[8] = {0};
  int64_t j = 0;
  for (; j + 8 <= width; j += 8)
    for (int k = 0; k < 8; k++) sums[k] += from[j + k] * att[j + k];
  for (; j < width; j++) sums[j % 8] += from[j] * att[j];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

CLONES static int64_t NAME(edge_scores)(const pgs_reduction *r, const pgs_edge_scores *b, int64_t low, int64_t high) {
  const VALUE *x = r->x, *edge = b->edge;
  const ID *indptr = r->indptr, *places = r->places;
  const SUM *att = b->att, slope = (SUM)b->slope;
  int64_t width = r->width, heads = r->heads, each = width / heads, wrong = -1;
  SUM *restrict steep = malloc((size_t)width * sizeof(SUM));
  VALUE *zeros = calloc((size_t)width, sizeof(VALUE));
  if (!steep || !zeros) wrong = -3;
  for (int64_t row = low; row < high && wrong == -1; row++) {
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) wrong = -2;
    const VALUE *own = (const VALUE *)b->own + row * width;
    for (int64_t e = begin; e < end && wrong == -1; e++) {
      SCORED(e)
      SUM *score = (SUM *)b->scores + e * heads;
      for (int64_t j = 0; j < width; j++) {
        // Choices without arithmetic, of which the compiler makes no branch.
        SUM z = SCORE(j), above = z > 0 ? z : 0, below = z > 0 ? 0 : z;
        steep[j] = above + below * slope;
      }
      for (int64_t h = 0; h < heads; h++) score[h] = NAME(one_score)(steep + h * each, att + h * each, each);
    }
  }
  free(steep);
  free(zeros);
  return wrong;
}

CLONES static int64_t NAME(edge_scores_back)(const pgs_reduction *r, const pgs_edge_scores *b, int64_t low, int64_t high) {
  const VALUE *x = r->x, *edge = b->edge;
  const ID *indptr = r->indptr, *places = r->places;
  const SUM *att = b->att, slope = (SUM)b->slope;
  int64_t width = r->width, heads = r->heads, each = width / heads, wrong = -1;
  SUM *restrict sums = malloc((size_t)width * sizeof(SUM)), *restrict to_att = malloc((size_t)width * sizeof(SUM));
  VALUE *zeros = calloc((size_t)width, sizeof(VALUE));
  if (!sums || !to_att || !zeros) wrong = -3;
  for (int64_t row = low; row < high && wrong == -1; row++) {
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) wrong = -2;
    const VALUE *own = (const VALUE *)b->own + row * width;
    for (int64_t j = 0; j < width; j++) sums[j] = to_att[j] = 0;
    for (int64_t e = begin; e < end && wrong == -1; e++) {
      SCORED(e)
      VALUE *to_edge = b->to_edge ? (VALUE *)b->to_edge + e * width : 0;
      for (int64_t h = 0; h < heads; h++) {
        SUM gradient = ((const SUM *)b->scores)[place * heads + h], less = gradient * slope;
        for (int64_t j = h * each; j < (h + 1) * each; j++) {
          SUM z = SCORE(j), steep = z > 0 ? gradient : less;
          sums[j] += steep;
          to_att[j] += steep * z;
        }
        if (to_edge)
          for (int64_t j = h * each; j < (h + 1) * each; j++) to_edge[j] = NARROW((SCORE(j) > 0 ? gradient : less) * att[j]);
      }
    }
    for (int64_t j = 0; j < width; j++) {
      ((VALUE *)b->to_own)[row * width + j] = NARROW(sums[j] * att[j]);
      if (b->to_att) ((SUM *)b->to_att)[row * width + j] = to_att[j];
    }
  }
  free(sums);
  free(to_att);
  free(zeros);
  return wrong;
}
#undef SCORE
#undef SCORED
