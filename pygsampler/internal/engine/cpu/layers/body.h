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

// Adds the edges from begin to end to sums, or makes best and sums their largest. Returns an edge that is none, or -1.
static inline __attribute__((always_inline)) int64_t NAME(add_edges)(
    const pgs_reduction *r, int64_t begin, int64_t end, SUM *restrict sums, ID *restrict best) {
  const VALUE *x = r->x, *weights = r->weights;
  const ID *indices = r->indices, *degrees = r->degrees, *places = r->places;
  int64_t width = r->width, each = r->heads ? width / r->heads : width;
  for (int64_t e = begin; e < end; e++) {
    uint64_t at = NAME(row_of)(r, e);
    if (at == UINT64_MAX) return e;
    if (e + AHEAD < r->edges) {
      // Padding may be prefetched, too.
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
  return -1;
}

static inline void NAME(clear)(const pgs_reduction *r, SUM *restrict sums, ID *restrict best) {
  for (int64_t j = 0; j < r->width; j++) sums[j] = 0;
  if (r->kind == PGS_MAX)
    for (int64_t j = 0; j < r->width; j++) best[j] = -1;
}

static inline void NAME(finish)(const pgs_reduction *r, int64_t row, SUM *sums) {
  const ID *indptr = r->indptr;
  VALUE *out = (VALUE *)r->out + row * r->width;
  SUM degree = (SUM)(indptr[row + 1] - indptr[row]);
  if (r->kind == PGS_MEAN && degree > 0)
    for (int64_t j = 0; j < r->width; j++) sums[j] /= degree;
  if (!IN_PLACE)
    for (int64_t j = 0; j < r->width; j++) out[j] = NARROW(sums[j]);
}

// The end of the piece of a row that begins at begin. A maximum needs no pieces: theirs is the
// same.
static inline int64_t NAME(piece_end)(const pgs_reduction *r, int64_t begin, int64_t end) {
  return r->piece && r->kind != PGS_MAX && end - begin >= 2 * r->piece ? begin + r->piece : end;
}

CLONES static int64_t NAME(reduce)(const pgs_reduction *r, int64_t low, int64_t high, int64_t most, int32_t *skipped) {
  const ID *indptr = r->indptr;
  int64_t width = r->width, wrong = -1;
  // Sums of rows, where they are wider than values, and of a long row's pieces.
  SUM *room = malloc(2 * (size_t)width * sizeof(SUM)), *piece = room + width;
  if (!room) return -3;
  for (int64_t row = low; row < high && wrong == -1; row++) {
    SUM *sums = IN_PLACE ? (SUM *)((VALUE *)r->out + row * width) : room;
    ID *best = r->best ? (ID *)r->best + row * width : 0;
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) {
      wrong = -2;
      break;
    }
    if (end - begin >= most) {
      __atomic_store_n(skipped, 1, __ATOMIC_RELAXED);
      continue;
    }
    int64_t next = NAME(piece_end)(r, begin, end);
    NAME(clear)(r, sums, best);
    wrong = NAME(add_edges)(r, begin, next, sums, best);
    while (next < end && wrong == -1) {
      begin = next, next = NAME(piece_end)(r, begin, end);
      NAME(clear)(r, piece, best);
      wrong = NAME(add_edges)(r, begin, next, piece, best);
      for (int64_t j = 0; j < width; j++) sums[j] += piece[j];
    }
    NAME(finish)(r, row, sums);
  }
  free(room);
  return wrong;
}

CLONES static int64_t NAME(reduce_pieces)(const pgs_reduction *r, int64_t row, int64_t low, int64_t high, void *sums, void *best) {
  const ID *indptr = r->indptr;
  int64_t begin = indptr[row], end = indptr[row + 1], last = (end - begin) / r->piece, wrong = -1;
  for (int64_t i = low; i < high && wrong == -1; i++) {
    SUM *own = (SUM *)sums + i * r->width;
    ID *sources = best ? (ID *)best + i * r->width : 0;
    NAME(clear)(r, own, sources);
    wrong = NAME(add_edges)(r, begin + i * r->piece, i + 1 < last ? begin + (i + 1) * r->piece : end, own, sources);
  }
  return wrong;
}

CLONES static void NAME(fold_pieces)(const pgs_reduction *r, int64_t row, int64_t pieces, const void *sums, const void *best) {
  int64_t width = r->width;
  // The first piece has what the row becomes.
  SUM *all = (SUM *)sums;
  ID *to = r->best ? (ID *)r->best + row * width : 0;
  if (to) memcpy(to, best, (size_t)width * sizeof(ID));
  for (int64_t i = 1; i < pieces; i++) {
    const SUM *piece = all + i * width;
    const ID *sources = best ? (const ID *)best + i * width : 0;
    for (int64_t j = 0; j < width; j++) {
      if (r->kind != PGS_MAX) {
        all[j] += piece[j];
      } else if ((piece[j] > all[j]) | ((piece[j] != piece[j]) & (all[j] == all[j]))) {
        all[j] = piece[j];
        to[j] = sources[j];
      }
    }
  }
  NAME(finish)(r, row, all);
  if (IN_PLACE) memcpy((VALUE *)r->out + row * width, all, (size_t)width * sizeof(SUM));
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
