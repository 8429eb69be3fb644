// The functions of reduce.h for ids of type ID and values of type VALUE, which are added as SUM; WIDE and
// NARROW are the way there and back, and NAME adds the types to a name. IN_PLACE says that VALUE is SUM.

// Rows of x that are asked for while earlier ones are added: far enough ahead for a read of memory.
#define AHEAD 8

static inline void NAME(ask)(const VALUE *row, int64_t width) {
  for (int64_t at = 0; at < width; at += 64 / (int64_t)sizeof(VALUE)) __builtin_prefetch(row + at);
}

// The row of x of an edge, or one beyond all.
static inline uint64_t NAME(row_of)(const pgs_reduction *r, int64_t e) {
  uint64_t source = (uint64_t)(int64_t)((const ID *)r->indices)[e];
  if (source >= (uint64_t)r->sources) return UINT64_MAX;
  uint64_t row = r->ids ? (uint64_t)(int64_t)((const ID *)r->ids)[source] : source;
  return row < (uint64_t)r->table ? row : UINT64_MAX;
}

CLONES static int64_t NAME(reduce)(const pgs_reduction *r, int64_t low, int64_t high) {
  const VALUE *x = r->x, *weights = r->weights;
  const ID *indptr = r->indptr, *indices = r->indices, *degrees = r->degrees, *places = r->places;
  int64_t width = r->width, each = r->heads ? width / r->heads : width, wrong = -1;
  SUM *own = IN_PLACE ? 0 : malloc((size_t)width * sizeof(SUM));
  if (!IN_PLACE && !own) return -3;
  for (int64_t row = low; row < high; row++) {
    VALUE *out = (VALUE *)r->out + row * width;
    SUM *restrict sums = IN_PLACE ? (SUM *)out : own;
    ID *restrict best = r->best ? (ID *)r->best + row * width : 0;
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) {
      wrong = -2;
      break;
    }
    for (int64_t j = 0; j < width; j++) sums[j] = 0;
    if (r->kind == PGS_MAX)
      for (int64_t j = 0; j < width; j++) best[j] = -1;
    for (int64_t e = begin; e < end; e++) {
      uint64_t at = NAME(row_of)(r, e);
      if (at == UINT64_MAX) {
        wrong = e;
        break;
      }
      if (e + AHEAD < r->edges) {
        // What is padding may be asked for too.
        uint64_t next = NAME(row_of)(r, e + AHEAD);
        if (next != UINT64_MAX) NAME(ask)(x + next * width, width);
      }
      const VALUE *from = x + at * width;
      if (r->kind == PGS_MAX) {
        // A NaN wins, and the first of equals.
        ID source = indices[e];
        for (int64_t j = 0; j < width; j++) {
          SUM value = WIDE(from[j]);
          int wins = (best[j] < 0) | (value > sums[j]) | ((value != value) & (sums[j] == sums[j]));
          sums[j] = wins ? value : sums[j];
          best[j] = wins ? source : best[j];
        }
      } else if (weights) {
        const VALUE *weight = weights + (places ? places[e] : e) * r->heads;
        for (int64_t h = 0; h < r->heads; h++) {
          SUM factor = WIDE(weight[h]);
          for (int64_t j = h * each; j < (h + 1) * each; j++) sums[j] += factor * WIDE(from[j]);
        }
      } else if (degrees) {
        SUM factor = (SUM)1 / (SUM)(degrees[at + 1] - degrees[at]);
        for (int64_t j = 0; j < width; j++) sums[j] += factor * WIDE(from[j]);
      } else {
        for (int64_t j = 0; j < width; j++) sums[j] += WIDE(from[j]);
      }
    }
    if (wrong != -1) break;
    if (r->kind == PGS_MEAN && end > begin) {
      SUM degree = (SUM)(end - begin);
      for (int64_t j = 0; j < width; j++) sums[j] /= degree;
    }
    if (!IN_PLACE)
      for (int64_t j = 0; j < width; j++) out[j] = NARROW(sums[j]);
  }
  free(own);
  return wrong;
}

// The product of two rows: eight sums side by side, added up in one order on every machine.
static inline __attribute__((always_inline)) SUM NAME(product)(const VALUE *from, const VALUE *to, int64_t width) {
  SUM sums[8] = {0};
  int64_t j = 0;
  for (; j + 8 <= width; j += 8)
    for (int k = 0; k < 8; k++) sums[k] += WIDE(from[j + k]) * WIDE(to[j + k]);
  for (; j < width; j++) sums[j % 8] += WIDE(from[j]) * WIDE(to[j]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

CLONES static int64_t NAME(dots)(const pgs_reduction *r, void *products, int64_t low, int64_t high) {
  const VALUE *x = r->x;
  VALUE *dots = products;
  const ID *indptr = r->indptr;
  int64_t width = r->width, each = width / r->heads;
  for (int64_t row = low; row < high; row++) {
    const VALUE *to = (const VALUE *)r->out + row * width;
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) return -2;
    for (int64_t e = begin; e < end; e++) {
      uint64_t at = NAME(row_of)(r, e);
      if (at == UINT64_MAX) return e;
      const VALUE *from = x + at * width;
      for (int64_t h = 0; h < r->heads; h++)
        dots[e * r->heads + h] = NARROW(NAME(product)(from + h * each, to + h * each, each));
    }
  }
  return -1;
}
