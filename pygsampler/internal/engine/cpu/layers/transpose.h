// pgs_transpose for ids of type ID.
static int64_t NAME(transpose)(const pgs_reduction *r, ID *starts, ID *rows, ID *places) {
  const ID *indptr = r->indptr, *indices = r->indices;
  for (int64_t s = 0; s <= r->sources; s++) starts[s] = 0;
  for (int64_t e = 0; e < indptr[r->rows]; e++) {
    uint64_t source = (uint64_t)(int64_t)indices[e];
    if (source >= (uint64_t)r->sources) return e;
    // One further up: after all edges are put down, each start is where it belongs.
    if (source + 2 <= (uint64_t)r->sources) starts[source + 2]++;
  }
  for (int64_t s = 2; s <= r->sources; s++) starts[s] += starts[s - 1];
  for (int64_t row = 0; row < r->rows; row++) {
    int64_t begin = indptr[row], end = indptr[row + 1];
    if (begin < 0 || begin > end || end > indptr[r->rows]) return -2;
    for (int64_t e = begin; e < end; e++) {
      ID at = starts[indices[e] + 1]++;
      rows[at] = (ID)row;
      if (places) places[at] = (ID)e;
    }
  }
  return -1;
}
