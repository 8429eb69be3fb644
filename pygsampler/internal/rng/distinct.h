#pragma once
#include <stdint.h>

// The most that a row may draw.
enum { PGS_MOST = 32 };

// Writes the CSC positions that n rows give, those of each row behind those of the row before: all of a row's that has at
// most fanout edges, else fanout distinct ones of the next of the states, 0 < fanout <= PGS_MOST; without states the others have any. There is room for as many
// positions as the rows give. Row i has the
// positions from starts[i] on, degrees[i] of them. Vectors have at most so many bits as the widest.
void pgs_distinct(int64_t *to, int64_t room, const int64_t *starts, const int64_t *degrees, int64_t n, const uint64_t *states, int64_t fanout, int widest);
