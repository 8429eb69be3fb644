// Rows of floats in 4 to 16 bits a value. GPU twin: kernels/features/dequantize.cu.
#ifndef PGS_QUANTIZED_H
#define PGS_QUANTIZED_H

#include <stdint.h>

// The kinds of stored values: Kind of quantized.go, _KINDS of quantization.py.
enum { PGS_HALF = 1, PGS_BRAIN, PGS_E4M3, PGS_INT8, PGS_INT4 };

// The types that values are read as.
enum { PGS_TO_FLOAT, PGS_TO_HALF, PGS_TO_BRAIN };

// Kinds of floats that are quantized, beside PGS_HALF and PGS_BRAIN.
enum { PGS_FLOAT = 8, PGS_DOUBLE };

struct pgs_quantized {
  int64_t stride, columns;  // bytes from one stored row to the next, and values of a row
  int32_t kind, to, by_column;
};

// Writes the rows of count ids, each of which the table has, to out without gaps; of null ids the first ones.
// Scales are those of the table's rows, or by_column [columns], or null.
void pgs_dequantize(const struct pgs_quantized *q, const uint8_t *table, const float *scales, const void *ids, int id_bits, int64_t count, void *out);

// Writes rows of floats, [rows][columns] of a kind, to out, zeros behind each; without by_column their scales, too.
// Returns the place of the first value that cannot be stored, or -1.
int64_t pgs_quantize(const struct pgs_quantized *q, const void *from, int from_kind, int64_t rows, float *scales, uint8_t *out);

// Raises most[c] to the greatest size in column c; returns as pgs_quantize does.
int64_t pgs_greatest(const struct pgs_quantized *q, const void *from, int from_kind, int64_t rows, float *most);

// Makes scales of count greatest sizes, in their place.
void pgs_scales(int kind, float *most, int64_t count);

#endif
