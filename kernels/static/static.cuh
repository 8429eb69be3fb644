// The common part of static.cu and static_hetero.cu.
#pragma once
#include "common/philox.cuh"

// Mirrors staticStep in internal/engine/cuda/static.go: the seeds of a batch, and its random numbers.
struct StaticStep {
  u64 first, num_seeds;
  u32 key0, key1, batch0, batch1;
};
