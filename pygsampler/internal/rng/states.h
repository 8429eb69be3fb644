#pragma once
#include <stdint.h>

// Puts the state of each of n vertices in its place. The key is those of Philox, then words 1 (without the vertex), 2 and 3
// of its counter. Vectors have at most so many bits as the widest.
void pgs_states(uint64_t *v, int64_t n, const uint32_t key[5], int widest);

// Puts the bits of the uniform number of each node's first draw in its place.
void pgs_uniforms(uint64_t *v, int64_t n, const uint32_t key[5], int widest);
