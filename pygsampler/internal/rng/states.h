#pragma once
#include <stdint.h>

// Puts the state of each of n vertices in its place. The key is those of Philox, then words 1 (without the vertex), 2 and 3
// of its counter. Vectors have at most so many bits as the widest.
void pgs_states(uint64_t *v, int64_t n, const uint32_t key[5], int widest);

// Likewise the bits of the uniform number of each state's first draw.
void pgs_uniforms(uint64_t *v, int64_t n, const uint32_t key[5], int widest);
