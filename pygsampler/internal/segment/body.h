// The functions of reduce.h for ids of type ID and values of type VALUE; NAME adds both to a name.

// Rows of x that are asked for while earlier ones are added: far enough ahead for a read of memory.
#define AHEAD 8

static inline void NAME(ask)(const VALUE *row, int64_t width) {
  for (int64_t at = 0; at < width; at += 64 / (int64_t)sizeof(VALUE)) __builtin_prefetch(row + at);
}

CLONES static int64_t NAME(reduce)(const pgs_reduction *r, int64_t low, int64_t high) {
  const VALUE *x = r->x, *weights = r->weights;
  const ID *indptr = r->indptr, *indices = r->indices;
  int64_t width = r->width, each = r->heads ? width / r->heads : width;
  for (int64_t row = low; row < high; row++) {
    VALUE *restrict out = (VALUE *)r->out + row * width;
    ID *restrict best = r->best ? (ID *)r->best + row * width : 0;
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) return -2;
    if (r->kind == PGS_MAX) {
      for (int64_t j = 0; j < width; j++) out[j] = 0, best[j] = -1;
    } else {
      for (int64_t j = 0; j < width; j++) out[j] = 0;
    }
    for (int64_t e = begin; e < end; e++) {
      uint64_t source = (uint64_t)(int64_t)indices[e];
      if (source >= (uint64_t)r->sources) return e;
      if (e + AHEAD < r->edges) {
        uint64_t next = (uint64_t)(int64_t)indices[e + AHEAD];
        if (next < (uint64_t)r->sources) NAME(ask)(x + next * width, width);
      }
      const VALUE *from = x + source * width;
      if (r->kind == PGS_MAX) {
        // A NaN wins, and the first of equals.
        for (int64_t j = 0; j < width; j++) {
          int wins = best[j] < 0 || from[j] > out[j] || (from[j] != from[j] && out[j] == out[j]);
          out[j] = wins ? from[j] : out[j];
          best[j] = wins ? (ID)source : best[j];
        }
      } else if (weights) {
        const VALUE *weight = weights + e * r->heads;
        for (int64_t h = 0; h < r->heads; h++)
          for (int64_t j = h * each; j < (h + 1) * each; j++) out[j] += weight[h] * from[j];
      } else {
        for (int64_t j = 0; j < width; j++) out[j] += from[j];
      }
    }
    if (r->kind == PGS_MEAN && end > begin) {
      VALUE degree = (VALUE)(end - begin);
      for (int64_t j = 0; j < width; j++) out[j] /= degree;
    }
  }
  return -1;
}

CLONES static int64_t NAME(dots)(const pgs_reduction *r, VALUE *dots, int64_t low, int64_t high) {
  const VALUE *x = r->x;
  const ID *indptr = r->indptr, *indices = r->indices;
  int64_t width = r->width, each = width / r->heads;
  for (int64_t row = low; row < high; row++) {
    const VALUE *to = (const VALUE *)r->out + row * width;
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) return -2;
    for (int64_t e = begin; e < end; e++) {
      uint64_t source = (uint64_t)(int64_t)indices[e];
      if (source >= (uint64_t)r->sources) return e;
      const VALUE *from = x + source * width;
      for (int64_t h = 0; h < r->heads; h++) {
        // Eight sums side by side, added up in one order on every machine.
        VALUE sums[8] = {0};
        int64_t first = h * each, j = 0;
        for (; j + 8 <= each; j += 8)
          for (int k = 0; k < 8; k++) sums[k] += from[first + j + k] * to[first + j + k];
        for (; j < each; j++) sums[j % 8] += from[first + j] * to[first + j];
        dots[e * r->heads + h] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
      }
    }
  }
  return -1;
}
