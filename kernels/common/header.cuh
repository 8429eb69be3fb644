// The positions of the words that describe a batch.
//
// Go twin: batch.Layout in internal/batch/layout.go.
#pragma once
#include "common/philox.cuh"

struct Layout {
  u32 hops, types, relations;

  __device__ __forceinline__ u32 type(u32 t) const { return FIXED_WORDS + TYPE_WORDS * t; }
  __device__ __forceinline__ u32 block(u32 hop, u32 r) const { return type(types) + BLOCK_WORDS * (hop * relations + r); }
  __device__ __forceinline__ u32 edge_id_bits(u32 r) const { return block(hops, 0) + r; }
  __device__ __forceinline__ u32 count(u32 t, u32 hop) const { return edge_id_bits(relations) + t * (hops + 1) + hop; }
  __device__ __forceinline__ u32 extra(u32 i) const { return count(types, 0) + EXTRA_WORDS * i; }
  __device__ __forceinline__ u32 words(u32 extras = 0) const { return extra(extras); }

  // The words that every header begins with.
  __device__ __forceinline__ void sign(u64* header, u64 id_bits, u64 size, u64 extras = 0) const {
    header[WORD_SIGNATURE] = MAGIC, header[WORD_ID_BITS] = id_bits, header[WORD_SIZE] = size, header[WORD_CAPACITY] = 0;
    header[WORD_NUM_HOPS] = hops, header[WORD_NUM_TYPES] = types, header[WORD_NUM_RELATIONS] = relations;
    header[WORD_NUM_EXTRAS] = extras;
  }
};

// That of a homogeneous graph's batch.
__device__ __forceinline__ Layout homogeneous(u32 hops) { return Layout{hops, 1, 1}; }

// The words of the largest of these.
enum { MOST_WORDS = FIRST_BLOCK + (BLOCK_WORDS + 1) * MOST_HOPS + 2 };
