#include "reduce.h"

// The wider registers of newer machines, but no fused multiply-add (nor does ISO C fuse): sums have the
// same bits everywhere.
#if defined(__x86_64__) && defined(__gnu_linux__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif

#define ID int32_t
#define VALUE float
#define NAME(name) name##_32_32
#include "body.h"
#undef VALUE
#undef NAME
#define VALUE double
#define NAME(name) name##_32_64
#include "body.h"
#undef VALUE
#undef NAME
#define NAME(name) name##_32
#include "transpose.h"
#undef NAME
#undef ID

#define ID int64_t
#define VALUE float
#define NAME(name) name##_64_32
#include "body.h"
#undef VALUE
#undef NAME
#define VALUE double
#define NAME(name) name##_64_64
#include "body.h"
#undef VALUE
#undef NAME
#define NAME(name) name##_64
#include "transpose.h"
#undef NAME
#undef ID

int64_t pgs_reduce(const pgs_reduction *r, int64_t low, int64_t high) {
  if (r->id_bits == 32) return (r->float_bits == 32 ? reduce_32_32 : reduce_32_64)(r, low, high);
  return (r->float_bits == 32 ? reduce_64_32 : reduce_64_64)(r, low, high);
}

int64_t pgs_transpose(const pgs_reduction *r, void *starts, void *rows, void *places) {
  return r->id_bits == 32 ? transpose_32(r, starts, rows, places) : transpose_64(r, starts, rows, places);
}

int64_t pgs_dots(const pgs_reduction *r, void *dots, int64_t low, int64_t high) {
  if (r->id_bits == 32) {
    if (r->float_bits == 32) return dots_32_32(r, dots, low, high);
    return dots_32_64(r, dots, low, high);
  }
  if (r->float_bits == 32) return dots_64_32(r, dots, low, high);
  return dots_64_64(r, dots, low, high);
}
