// Package dense multiplies dense rows of float32 on the CPU. Products of two numbers are exact as
// doubles, and are added as doubles in the order that docs/developer/operator-rules.md defines. The
// loops are C, whose compiler uses wide registers.
package dense

/*
#cgo CFLAGS: -O3 -std=c11
#include <stdint.h>

// A product of a double is rounded before it is added.
#pragma STDC FP_CONTRACT OFF

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

// Rows of products that are added at a time, by a tree; and how many such sums are then.
enum { LOT = 32, LOTS = 32 };

// The first n of LOT rows of parts are added up, and to few: row i takes row i + 16, then i + 8 and so on.
static inline __attribute__((always_inline)) void pgs_tree(double *few, double *parts, int64_t n, int64_t h) {
  for (int64_t half = LOT / 2; half > 0; half /= 2) {
    for (int64_t i = half; i < n; i++) {
      double *to = parts + (i - half) * h, *from = parts + i * h;
      for (int64_t k = 0; k < h; k++) to[k] += from[k];
    }
    if (n > half) n = half;
  }
  for (int64_t k = 0; k < h; k++) few[k] += parts[k];
}

static inline __attribute__((always_inline)) void pgs_level(double *sums, double *few, int64_t h) {
  for (int64_t k = 0; k < h; k++) {
    sums[k] += few[k];
    few[k] = 0;
  }
}

// n values times rows go behind the count that were there; where a LOT is, it is added up. work is the sums, few and parts.
static inline __attribute__((always_inline)) int64_t pgs_lots(double *work, int64_t count, const double *values, const float *x, const int64_t *at, int64_t n, int64_t h) {
  double *few = work + h, *parts = few + h;
  for (int64_t i = 0; i < n; i++) {
    const float *row = x + at[i] * h;
    double *to = parts + count % LOT * h, value = values[i];
    for (int64_t k = 0; k < h; k++) to[k] = value * (double)row[k];
    if (++count % LOT == 0) {
      pgs_tree(few, parts, LOT, h);
      if (count % (LOT * LOTS) == 0) pgs_level(work, few, h);
    }
  }
  return count;
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static int64_t pgs_lots_wide(double *work, int64_t count, const double *values, const float *x, const int64_t *at, int64_t n, int64_t h) {
  return pgs_lots(work, count, values, x, at, n, h);
}
#endif

static int64_t pgs_add(double *work, int64_t count, const double *values, const float *x, const int64_t *at, int64_t n, int64_t h) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return pgs_lots_wide(work, count, values, x, at, n, h);
#endif
  return pgs_lots(work, count, values, x, at, n, h);
}

// The sums of count rows; the next begin with 0.
static void pgs_end(float *out, double *work, int64_t count, int64_t h) {
  double *few = work + h, *parts = few + h;
  if (count % LOT) pgs_tree(few, parts, count % LOT, h);
  pgs_level(work, few, h);
  for (int64_t k = 0; k < h; k++) {
    out[k] = (float)work[k];
    work[k] = 0;
  }
}

// Computes the products of n pairs of rows: eight sums in turn, and then repeatedly the sum of
// each with the one half of them behind.
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

// Project writes the product of n rows of x, of d numbers each, and w, d by h.
func Project(out, x, w []float32, n, d, h int64) {
	if n*h == 0 {
		return
	}
	C.pgs_project(floats(x[:n*d]), C.int64_t(n), C.int64_t(d), floats(w[:d*h]), C.int64_t(h), floats(out[:n*h]))
}

// Dot writes the dot products of rows at[i] of p and to[i] of q, of h numbers each.
func Dot(out []float64, p []float32, at []int64, q []float32, to []int64, h int64) {
	n := len(out)
	if n == 0 {
		return
	}
	C.pgs_dot(floats(p), (*C.int64_t)(unsafe.SliceData(at[:n])), floats(q), (*C.int64_t)(unsafe.SliceData(to[:n])),
		C.int64_t(n), C.int64_t(h), (*C.double)(unsafe.SliceData(out)))
}

// Sums adds up rows times values, of h numbers each, in the order of docs/developer/operator-rules.md.
type Sums struct {
	h, count int64
	work     []float64 // the sums; those of a few rows; products that have not been added yet
}

// NewSums returns sums that are 0.
func NewSums(h int64) *Sums {
	return &Sums{h: h, work: make([]float64, h*(2+C.LOT))}
}

// Add adds values[i] times row at[i] of x.
func (s *Sums) Add(values []float64, x []float32, at []int64) {
	if s.h > 0 && len(values) > 0 {
		s.count = int64(C.pgs_add(doubles(s.work), C.int64_t(s.count), doubles(values), floats(x),
			(*C.int64_t)(unsafe.SliceData(at[:len(values)])), C.int64_t(len(values)), C.int64_t(s.h)))
	}
}

// End writes the sums and resets them.
func (s *Sums) End(out []float32) {
	if s.h > 0 {
		C.pgs_end(floats(out[:s.h]), doubles(s.work), C.int64_t(s.count), C.int64_t(s.h))
	}
	s.count = 0
}

func doubles(x []float64) *C.double { return (*C.double)(unsafe.SliceData(x)) }

func floats(x []float32) *C.float { return (*C.float)(unsafe.SliceData(x)) }
