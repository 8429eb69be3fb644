// Package rows multiplies dense rows of float32 on the CPU. Products of two are exact as doubles, and are
// added as such in an order that docs/operators.md has. The loops are C, whose compiler uses wide registers.
package rows

/*
#cgo CFLAGS: -O3 -std=c11
#include <stdint.h>

// Rows and columns of a block, whose sums stay in registers.
enum { ROWS = 4, COLUMNS = 8 };

// Each of n rows of x times w, d by h.
static inline __attribute__((always_inline)) void pgs_multiply(const float *x, int64_t n, int64_t d, const float *w, int64_t h, float *out) {
  for (int64_t i = 0; i < n; i += ROWS) {
    const int rows = n - i < ROWS ? (int)(n - i) : ROWS;
    for (int64_t j = 0; j < h; j += COLUMNS) {
      const int columns = h - j < COLUMNS ? (int)(h - j) : COLUMNS;
      const float *a = x + i * d, *b = w + j;
      double s[ROWS][COLUMNS] = {{0}};
      if (rows == ROWS && columns == COLUMNS) {
        for (int64_t k = 0; k < d; k++, b += h)
          for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++) s[r][c] += (double)a[r * d + k] * b[c];
      } else {
        for (int64_t k = 0; k < d; k++, b += h)
          for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) s[r][c] += (double)a[r * d + k] * b[c];
      }
      for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) out[(i + r) * h + j + c] = (float)s[r][c];
    }
  }
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void pgs_multiply_wide(const float *x, int64_t n, int64_t d, const float *w, int64_t h, float *out) {
  pgs_multiply(x, n, d, w, h, out);
}
#endif

static void pgs_project(const float *x, int64_t n, int64_t d, const float *w, int64_t h, float *out) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) {
    pgs_multiply_wide(x, n, d, w, h, out);
    return;
  }
#endif
  pgs_multiply(x, n, d, w, h, out);
}

// Of n pairs of rows the products: eight sums in turn, and then of these the sum of each and the one half
// of them behind.
static void pgs_dot(const float *p, const int64_t *at, const float *q, const int64_t *to, int64_t n, int64_t h, double *out) {
  for (int64_t i = 0; i < n; i++) {
    const float *a = p + at[i] * h, *b = q + to[i] * h;
    double s[8] = {0};
    int64_t k = 0;
    for (; k + 8 <= h; k += 8)
      for (int j = 0; j < 8; j++) s[j] += (double)a[k + j] * b[k + j];
    for (int j = 0; k < h; j++, k++) s[j] += (double)a[k] * b[k];
    for (int half = 4; half; half /= 2)
      for (int j = 0; j < half; j++) s[j] += s[j + half];
    out[i] = s[0];
  }
}
*/
import "C"

import "unsafe"

// Project writes n rows of x, of d numbers each, times w, d by h.
func Project(out, x, w []float32, n, d, h int64) {
	if n*h == 0 {
		return
	}
	C.pgs_project(floats(x[:n*d]), C.int64_t(n), C.int64_t(d), floats(w[:d*h]), C.int64_t(h), floats(out[:n*h]))
}

// Dot writes the products of rows at[i] of p and to[i] of q, of h numbers each.
func Dot(out []float64, p []float32, at []int64, q []float32, to []int64, h int64) {
	n := len(out)
	if n == 0 {
		return
	}
	C.pgs_dot(floats(p), (*C.int64_t)(unsafe.SliceData(at[:n])), floats(q), (*C.int64_t)(unsafe.SliceData(to[:n])),
		C.int64_t(n), C.int64_t(h), (*C.double)(unsafe.SliceData(out)))
}

func floats(x []float32) *C.float { return (*C.float)(unsafe.SliceData(x)) }
