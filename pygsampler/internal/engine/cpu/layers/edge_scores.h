// The functions of reduce.h for scores of edges, for ids of type ID and values of type VALUE, as body.h has them.

// The row of the others of a CSR's edge, and whether there is one.
#define SCORED(e)                                                          \
  uint64_t at = NAME(row_of)(r, e);                                        \
  if (at == UINT64_MAX) {                                                  \
    wrong = e;                                                             \
    break;                                                                 \
  }                                                                        \
  int64_t place = places ? places[e] : e;                                  \
  const VALUE *from = x + at * width, *more = edge ? edge + place * width : 0;

CLONES static int64_t NAME(edge_scores)(const pgs_reduction *r, const pgs_edge_scores *b, int64_t low, int64_t high) {
  const VALUE *x = r->x, *edge = b->edge;
  const ID *indptr = r->indptr, *places = r->places;
  const SUM *att = b->att, slope = (SUM)b->slope;
  int64_t width = r->width, heads = r->heads, each = width / heads, wrong = -1;
  for (int64_t row = low; row < high && wrong == -1; row++) {
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) return -2;
    const VALUE *own = (const VALUE *)b->own + row * width;
    for (int64_t e = begin; e < end; e++) {
      SCORED(e)
      SUM *score = (SUM *)b->scores + e * heads;
      for (int64_t h = 0; h < heads; h++) {
        SUM sums[8] = {0};
        for (int64_t j = h * each; j < (h + 1) * each; j++)
          sums[j % 8] += att[j] * NAME(leaky)(WIDE(from[j]) + WIDE(own[j]) + (more ? WIDE(more[j]) : 0), slope);
        score[h] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
      }
    }
  }
  return wrong;
}

CLONES static int64_t NAME(edge_scores_back)(const pgs_reduction *r, const pgs_edge_scores *b, int64_t low, int64_t high) {
  const VALUE *x = r->x, *edge = b->edge;
  const ID *indptr = r->indptr, *places = r->places;
  const SUM *att = b->att, slope = (SUM)b->slope;
  int64_t width = r->width, heads = r->heads, each = width / heads, wrong = -1;
  SUM *sums = malloc(2 * (size_t)width * sizeof(SUM)), *to_att = sums + width;
  if (!sums) return -3;
  for (int64_t row = low; row < high && wrong == -1; row++) {
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) wrong = -2;
    const VALUE *own = (const VALUE *)b->own + row * width;
    for (int64_t j = 0; j < 2 * width; j++) sums[j] = 0;
    for (int64_t e = begin; e < end && wrong == -1; e++) {
      SCORED(e)
      VALUE *to_edge = b->to_edge ? (VALUE *)b->to_edge + e * width : 0;
      for (int64_t h = 0; h < heads; h++) {
        SUM gradient = ((const SUM *)b->scores)[place * heads + h];
        for (int64_t j = h * each; j < (h + 1) * each; j++) {
          SUM z = WIDE(from[j]) + WIDE(own[j]) + (more ? WIDE(more[j]) : 0), steep = z > 0 ? gradient : gradient * slope;
          sums[j] += steep;
          to_att[j] += steep * z;
          if (to_edge) to_edge[j] = NARROW(steep * att[j]);
        }
      }
    }
    for (int64_t j = 0; j < width; j++) {
      ((VALUE *)b->to_own)[row * width + j] = NARROW(sums[j] * att[j]);
      if (b->to_att) ((SUM *)b->to_att)[row * width + j] = to_att[j];
    }
  }
  free(sums);
  return wrong;
}
#undef SCORED
