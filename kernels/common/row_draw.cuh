// The draws of a row and the numbering of an edge, for the two baselines research/bsp.cu and
// research/fused.cu. The baselines share only random numbers, choices and barriers with
// neighbor/neighbor.cu, so that each can be read and debugged separately.
//
// A map of all nodes holds, under the batch's tag, the lowest rank at which a node occurred: the
// number of edges of earlier hops (the seeds count as a hop), plus the edge's position in its hop.
// Once a node has a number, the map holds the number. Numbers are below the ranks of all later
// edges. Tags decrease from batch to batch, so that entries of older batches are larger than any
// claim.
#pragma once
#include "common/choose.cuh"
#include "common/grid.cuh"

// Mirrors rowsArgs in internal/engine/cuda/row_args.go.
struct RowsArgs {
  const void *indptr, *indices, *edge_ids;
  const u64* excluded;  // CSC positions to sample around, ascending
  u64* map;             // a word for every vertex
  u64 num_rows, num_nodes, num_edges, num_excluded;
  u32 indptr_bits, edge_id_bits, out_edge_bits, replace;
  u32 key0, key1, batch0, batch1, tag, unused;

  // ---- the map -------------------------------------------------------------------------------

  // Returns the word that was there.
  __device__ __forceinline__ u64 claim(u64 v, u64 rank) const { return atomicMin(map + v, (u64)tag << 32 | rank); }
  __device__ __forceinline__ u64 lowest(u64 v) const { return (u32)load_relaxed(map + v); }
  __device__ __forceinline__ void give(u64 v, u64 number) const { map[v] = (u64)tag << 32 | number; }
  // What stands for the number of an edge's vertex that was found before: the number, or -1 - e where
  // edge e of the hop, which begins at rank base, found it.
  template <typename I>
  __device__ __forceinline__ static I ask(u64 rank, u64 base) {
    return rank < base ? (I)rank : (I)(-1 - (long long)(rank - base));
  }

  // ---- rows ----------------------------------------------------------------------------------

  __device__ __forceinline__ Stream stream(u32 hop) const { return stream_of(key0, key1, hop, batch0, batch1); }

  // How many edges a row gives; whole: all, in order.
  __device__ __forceinline__ u64 take(u64 degree, long long fanout, bool& whole) const {
    whole = gives_all(*this, degree, fanout);
    return whole ? degree : (u64)fanout;
  }
  // The same; 2^31 for more, which no batch has.
  __device__ __forceinline__ u64 taken(u64 degree, long long fanout) const {
    bool whole;
    return min(take(degree, fanout, whole), (u64)MOST_EDGES);
  }

  // The CSC position of the pick-th edge, not counting excluded ones, of the row that begins at start.
  __device__ u64 position(u64 start, u64 pick) const {
    return num_excluded ? kept_position(excluded, num_excluded, start, pick) : start + pick;
  }

  // First position and degree of vertex v.
  __device__ ulonglong2 all_of(u64 v) const {
    if (v >= num_rows) return make_ulonglong2(0, 0);
    u64 start = read(indptr, indptr_bits, v), end = read(indptr, indptr_bits, v + 1);
    return make_ulonglong2(start, end - start);
  }
  // How many edges a row, or a part of one, has beside those that are excluded.
  __device__ u64 kept(ulonglong2 row) const {
    if (!num_excluded) return row.y;
    return row.y - (excluded_below(excluded, num_excluded, row.x + row.y) - excluded_below(excluded, num_excluded, row.x));
  }
  // First position and degree of vertex v, not counting excluded edges.
  __device__ ulonglong2 row_of(u64 v) const {
    ulonglong2 row = all_of(v);
    return make_ulonglong2(row.x, kept(row));
  }

  // ---- choices -------------------------------------------------------------------------------

  // Whether a row's draws stand in shared memory, 32 bits each.
  __device__ __forceinline__ bool narrow(long long fanout) const {
    return fanout > 0 && fanout <= DIRECT && num_edges >> 32 == 0;
  }
  // Draw j of a row of which fanout edges are chosen.
  __device__ __forceinline__ u64 draw(u64 state, u32 j, u64 degree, u64 fanout) const {
    return draw_below(state, j, replace ? degree : degree - fanout + j + 1);
  }
  // All choices of a row, by a warp. They stand where the edge ids will, from e0 on, which are wide
  // enough for any position.
  __device__ void choose_wide(void* edge_ids, u64 e0, u64 state, u64 degree, u64 fanout) const {
    u32 lane = threadIdx.x & 31;
    if (replace) {
      for (u64 j = lane; j < fanout; j += 32) write(edge_ids, out_edge_bits, e0 + j, draw_below(state, (u32)j, degree));
      __syncwarp();
      return;
    }
    for (u64 j = 0; j < fanout; j++) {
      u64 t = draw(state, (u32)j, degree, fanout);
      bool met = false;
      for (u64 i = lane; i < j; i += 32) met |= read(edge_ids, out_edge_bits, e0 + i) == t;
      if (__any_sync(~0u, met)) t = degree - fanout + j;
      if (lane == 0) write(edge_ids, out_edge_bits, e0 + j, t);
      __syncwarp();
    }
  }

  // ---- edges ---------------------------------------------------------------------------------

  // Edge e of a hop: the pick-th of the row that begins at start.
  template <typename I>
  __device__ __forceinline__ void gather(I* ids, void* out_ids, u64 e, u64 start, u64 pick, u64 base) const {
    u64 p = position(start, pick);
    I v = ((const I*)indices)[p];
    ids[e] = v;
    write(out_ids, out_edge_bits, e, edge_id_bits ? read(edge_ids, edge_id_bits, p) : p);
    claim((u64)v, base + e);
  }
};

// The sum of x over the threads of the block before this one; all becomes the sum over all. parts has
// a word for each warp and is free when it returns.
__device__ __forceinline__ u64 rows_before(u64 x, u64& all, u64* parts) {
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  u64 inclusive = x;
  for (int d = 1; d < 32; d <<= 1) {
    u64 y = __shfl_up_sync(~0u, inclusive, d);
    if (lane >= d) inclusive += y;
  }
  if (lane == 31) parts[warp] = inclusive;
  __syncthreads();
  u64 part = lane < warps ? parts[lane] : 0, earlier = lane < warp ? part : 0;
  for (int d = 16; d; d >>= 1) {
    part += __shfl_xor_sync(~0u, part, d);
    earlier += __shfl_xor_sync(~0u, earlier, d);
  }
  __syncthreads();
  all = part;
  return earlier + inclusive - x;
}
