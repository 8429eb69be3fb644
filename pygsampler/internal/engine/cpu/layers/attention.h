// The functions of reduce.h for attention, for ids of type ID and values of type VALUE, as body.h has them. EXP and
// LOG are those of SUM.

static inline SUM NAME(leaky)(SUM x, SUM slope) { return x > 0 ? x : x * slope; }

// The largest of one score after another; NaN, where there is one, makes itself felt in the sums.
static inline SUM NAME(larger)(SUM a, SUM b) { return b > a ? b : a; }

// The scores that an edge adds to the row's: the source's, or in room the sum with its own if it
// has some.
static inline __attribute__((always_inline)) const SUM *NAME(scores)(
    const SUM *sources, const SUM *edges, int64_t source, int64_t edge, int64_t heads, SUM *room) {
  if (!edges) return sources + source;
  for (int64_t h = 0; h < heads; h++) room[h] = (sources ? sources[source + h] : 0) + edges[edge + h];
  return room;
}

CLONES static int64_t NAME(attend)(const pgs_reduction *r, const pgs_attention *b, int64_t low, int64_t high) {
  const VALUE *x = r->x;
  const ID *indptr = r->indptr, *indices = r->indices;
  int64_t width = r->width, heads = r->heads, each = width / heads, wrong = -1;
  int64_t row_width = b->shared ? each : width, apart = b->shared ? 0 : each;
  const SUM *sources = b->source, *edges = b->edge;
  SUM slope = (SUM)b->slope, *sums = malloc((size_t)width * sizeof(SUM)), *most = malloc(4 * (size_t)heads * sizeof(SUM));
  SUM *totals = most + heads, *targets = totals + heads, *room = targets + heads;
  if (!sums || !most) wrong = -3;
  for (int64_t row = low; row < high && wrong == -1; row++) {
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) {
      wrong = -2;
      break;
    }
    for (int64_t h = 0; h < heads; h++) targets[h] = b->target ? ((const SUM *)b->target)[row * heads + h] : 0;
    for (int64_t j = 0; j < width; j++) sums[j] = 0;
    for (int64_t h = 0; h < heads; h++) most[h] = -(SUM)INFINITY, totals[h] = 0;
    for (int64_t e = begin; e < end && wrong == -1; e++) {
      if (NAME(row_of)(r, e) == UINT64_MAX) {
        wrong = e;
        break;
      }
      const SUM *source = NAME(scores)(sources, edges, indices[e] * heads, e * heads, heads, room);
      for (int64_t h = 0; h < heads; h++) most[h] = NAME(larger)(most[h], NAME(leaky)(source[h] + targets[h], slope));
    }
    for (int64_t e = begin; e < end && wrong == -1; e++) {
      if (e + AHEAD < r->edges) {
        uint64_t next = NAME(row_of)(r, e + AHEAD);
        if (next != UINT64_MAX) NAME(ask)(x + next * row_width, row_width);
      }
      const VALUE *from = x + indices[e] * row_width;
      const SUM *source = NAME(scores)(sources, edges, indices[e] * heads, e * heads, heads, room);
      for (int64_t h = 0; h < heads; h++) {
        SUM weight = EXP(NAME(leaky)(source[h] + targets[h], slope) - most[h]);
        totals[h] += weight;
        for (int64_t j = 0; j < each; j++) sums[h * each + j] += weight * WIDE(from[h * apart + j]);
      }
    }
    VALUE *out = (VALUE *)r->out + row * width;
    for (int64_t h = 0; h < heads; h++) {
      for (int64_t j = h * each; j < (h + 1) * each; j++) out[j] = NARROW(end > begin ? sums[j] / totals[h] : 0);
      if (b->log) ((SUM *)b->log)[row * heads + h] = most[h] + LOG(totals[h]);
    }
  }
  free(sums);
  free(most);
  return wrong;
}

// The same for one head.
#define SCORE(e)                                   \
  (!edges ? sources[indices[e] * heads + h]        \
          : (sources ? sources[indices[e] * heads + h] : 0) + edges[(e) * heads + h])

CLONES static int64_t NAME(attend_back)(const pgs_reduction *r, const pgs_attention *b, int64_t low, int64_t high) {
  const VALUE *x = r->x;
  const ID *indptr = r->indptr, *indices = r->indices;
  int64_t width = r->width, heads = r->heads, each = width / heads;
  int64_t row_width = b->shared ? each : width, apart = b->shared ? 0 : each;
  const SUM *sources = b->source, *edges = b->edge;
  SUM slope = (SUM)b->slope;
  VALUE *alpha = b->alpha;
  SUM *pre = b->pre;
  for (int64_t row = low; row < high; row++) {
    const VALUE *to = (const VALUE *)r->out + row * width;
    const SUM *log = (const SUM *)b->log + row * heads;
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > r->edges) return -2;
    for (int64_t e = begin; e < end; e++)
      if (NAME(row_of)(r, e) == UINT64_MAX) return e;
    for (int64_t h = 0; h < heads; h++) {
      SUM mean = 0, all = 0, target = b->target ? ((const SUM *)b->target)[row * heads + h] : 0;
      for (int64_t e = begin; e < end; e++) {
        SUM score = SCORE(e) + target;
        SUM weight = EXP(NAME(leaky)(score, slope) - log[h]);
        SUM product = weight * NAME(product)(x + indices[e] * row_width + h * apart, to + h * each, each);
        mean += product;
        pre[e * heads + h] = product;
        alpha[e * heads + h] = NARROW(weight);
      }
      for (int64_t e = begin; e < end; e++) {
        SUM score = SCORE(e) + target;
        // Weights of 16 bits were rounded, so they are computed again.
        SUM weight = IN_PLACE ? WIDE(alpha[e * heads + h]) : EXP(NAME(leaky)(score, slope) - log[h]);
        SUM gradient = (pre[e * heads + h] - weight * mean) * (score > 0 ? 1 : slope);
        pre[e * heads + h] = gradient;
        all += gradient;
      }
      if (b->to_target) ((SUM *)b->to_target)[row * heads + h] = all;
    }
  }
  return -1;
}

#undef SCORE

CLONES static int64_t NAME(softmax)(const pgs_scores *s, int64_t low, int64_t high) {
  const VALUE *x = s->x, *grad = s->grad;
  const ID *indptr = s->indptr;
  VALUE *out = s->out;
  int64_t heads = s->heads;
  for (int64_t row = low; row < high; row++) {
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > s->edges) return -2;
    for (int64_t h = 0; h < heads; h++) {
      SUM most = -(SUM)INFINITY, total = 0;
      if (grad) {
        for (int64_t e = begin; e < end; e++) total += WIDE(x[e * heads + h]) * WIDE(grad[e * heads + h]);
        for (int64_t e = begin; e < end; e++)
          out[e * heads + h] = NARROW(WIDE(x[e * heads + h]) * (WIDE(grad[e * heads + h]) - total));
        continue;
      }
      for (int64_t e = begin; e < end; e++) most = NAME(larger)(most, WIDE(x[e * heads + h]));
      for (int64_t e = begin; e < end; e++) total += EXP(WIDE(x[e * heads + h]) - most);
      for (int64_t e = begin; e < end; e++) out[e * heads + h] = NARROW(EXP(WIDE(x[e * heads + h]) - most) / total);
    }
  }
  return -1;
}
