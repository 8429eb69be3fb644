// k-hop and layer sampling without deduplication: at each step the nodes of the previous step, the
// transits, draw in-edges. So the slot of each new node is known before anything is drawn.
//
// Source: A. Jangda et al., "Accelerating Graph Sampling for Graph Machine Learning using GPUs",
// EuroSys 2021 (NextDoor), sections 4 and 6.1.
//
// Kernels of a call, in a stream; none waits for the host:
//   begin     one thread per sample: its root
//   then for each step of k-hop, by sample (NextDoor's sample-parallel execution):
//   step      one thread per slot: lanes write adjacent slots, and those of one transit read one row
//   or by transit (section 6.1), with the classes and the order of transit.cu:
//   enter     one thread per transit: it is counted at its node. An absent transit writes -1
//   transit_open, transit_place
//   transits  blocks process tasks, which are transits of one node, with its row in shared memory;
//             then threads process the slots of small transits, in their order
//   or for each step of layer sampling:
//   layer     one block per sample: the sums of its transits' edges; then one thread per slot finds
//             the edge of its rank. All transits of a sample draw from one list, so transits of one
//             node have no work in common: there is the execution by sample only
//   or for each step of k-hop in which no node occurs twice in a sample:
//   unique    a team, a warp or a block, per sample, with one thread per slot
//   or for each such step of layer sampling:
//   layer_unique  one block per sample: sums as in layer, then as in unique
//   finish    the report
//
// Draws depend on the sample, step and slot, never on the node: neither the execution nor the grid
// changes a bit. docs/developer/walk-draws.md has the rules.
//
// Invariants: bad_seed is ~0 when no kernel runs, unless the last one reported a seed out of range;
// counts are zero.
//
// Go caller: internal/research/cuda/khop.go. Go twin: internal/research/khop.
#include "common/warp_match.cuh"
#include "common/row_draw.cuh"
#include "research/constants.cuh"

#define NOBODY (~0u)

// Mirrors khopArgs in internal/research/cuda/khop.go; loading compares the sizes.
struct KHopArgs {
  const void* seeds;
  char* out;  // the samples; layout of khop.Rule.Words
  u64* report;
  u32* arrived;   // the meetings' counter
  u64* bad_seed;  // the lowest seed out of range; ~0 if none
  const void *indptr, *indices, *edge_ids;
  // By transit, as TransitArgs has them.
  uint4* records;
  const uint2* order;
  const uint4* tasks;
  u32 *counts, *counters;
  // Of layer the sums, [blocks][of], and of unique steps the tables, [blocks][2 * capacity + of], where they do
  // not fit into shared memory.
  u64* sums;
  u64 samples, first_sample, num_rows, num_nodes;
  u64 nodes_at, edges_at;  // edges_at 0: nobody asks for them
  // The step: where the vertices before it begin and how many a sample has, where its own do and how many,
  // and where its edges begin.
  u64 before, of, first, width, edges;
  u32 count;  // draws of a transit, or with layer of a sample
  u32 hop, distinct;
  // Of unique: the tries of a slot, the threads of a team, and the entries of its table, a power of two.
  u32 tries, team, row_most;  // row_most: as TransitArgs has it
  u64 capacity;
  u32 id_bits, seed_bits, indptr_bits, edge_id_bits, out_edge_bits;
  u32 key0, key1, batch0, batch1;
};

// The place of draw j of a transit whose draws are distinct. Go twin: khop.Distinct.
__device__ __forceinline__ u64 distinct(u64 state, u64 first, u32 j, u64 degree) {
  u64 at = j + below(draw_bits64(state, first + j), degree - j);
  for (u32 i = j; i-- > 0;)
    if (i + below(draw_bits64(state, first + i), degree - i) == at) at = i;
  return at;
}

template <typename I>
struct Hop {
  const KHopArgs& a;

  __device__ __forceinline__ I* nodes() const { return (I*)(a.out + a.nodes_at); }
  __device__ __forceinline__ u64 state(u64 sample) const {
    return row_state(stream_of(a.key0, a.key1, a.hop, a.batch0, a.batch1, PURPOSE_WALKING), a.first_sample + sample);
  }
  // The first place and the number of the edges of a vertex, or of none.
  __device__ __forceinline__ ulonglong2 row_of(long long v) const {
    if (v < 0 || (u64)v >= a.num_rows) return make_ulonglong2(0, 0);
    u64 start = read(a.indptr, a.indptr_bits, v);
    return make_ulonglong2(start, read(a.indptr, a.indptr_bits, v + 1) - start);
  }
  // A slot takes the edge at a place of a row whose ids are read there.
  __device__ __forceinline__ void put(u64 slot, const I* ids, u64 start, u64 place) const {
    nodes()[a.first + slot] = ids[place];
    if (!a.edges_at) return;
    u64 at = start + place;
    write(a.out + a.edges_at, a.out_edge_bits, a.edges + slot, a.edge_id_bits ? read(a.edge_ids, a.edge_id_bits, at) : at);
  }
  __device__ __forceinline__ void none(u64 slot) const {
    nodes()[a.first + slot] = -1;
    if (a.edges_at) write(a.out + a.edges_at, a.out_edge_bits, a.edges + slot, ~0ull);
  }
  // Draw j of a transit.
  __device__ __forceinline__ void draw(u32 transit, u32 j, ulonglong2 row, const I* ids) const {
    u32 sample = transit / (u32)a.of;
    u64 slot = (u64)transit * a.count + j, first = (u64)(transit - sample * (u32)a.of) * a.count;
    if (row.y == 0 || (a.distinct && j >= row.y)) return none(slot);
    u64 own = state(sample);
    put(slot, ids, row.x, a.distinct ? distinct(own, first, j, row.y) : below(draw_bits64(own, first + j), row.y));
  }
  __device__ __forceinline__ void draw(u32 transit, u32 j, long long v) const {
    ulonglong2 row = row_of(v);
    draw(transit, j, row, (const I*)a.indices + row.x);
  }
};

template <typename I>
__device__ __forceinline__ void khop_begin(const KHopArgs& a) {
  const Hop<I> hop{a};
  for (u64 i = (u64)blockIdx.x * KHOP_THREADS + threadIdx.x; i < a.samples; i += (u64)gridDim.x * KHOP_THREADS) {
    u64 v = read(a.seeds, a.seed_bits, i);
    bool is = v < a.num_nodes;
    if (!is) atomicMin(a.bad_seed, i);
    hop.nodes()[i] = is ? (I)v : (I)-1;
  }
}

// Slots of a step are fewer than 2^31.
template <typename I>
__device__ __forceinline__ void khop_step(const KHopArgs& a) {
  const Hop<I> hop{a};
  u32 slots = (u32)(a.samples * a.width);
#pragma unroll 1
  for (u32 i = blockIdx.x * KHOP_THREADS + threadIdx.x; i < slots; i += gridDim.x * KHOP_THREADS) {
    u32 transit = i / a.count;
    hop.draw(transit, i - transit * a.count, (long long)hop.nodes()[a.before + transit]);
  }
}

template <typename I>
__device__ __forceinline__ void khop_enter(const KHopArgs& a) {
  const Hop<I> hop{a};
  u32 transits = (u32)(a.samples * a.of), lane = threadIdx.x & 31;
  if (blockIdx.x == 0 && threadIdx.x < 2 * TRANSIT_COUNTERS)
    a.counters[threadIdx.x] = threadIdx.x == TRANSIT_COUNTERS + TRANSIT_MANY ? transits : 0;
  // All lanes of a warp go on while one has a transit.
#pragma unroll 1
  for (u32 p = blockIdx.x * KHOP_THREADS + threadIdx.x; p - lane < transits; p += gridDim.x * KHOP_THREADS) {
    long long v = p < transits ? (long long)hop.nodes()[a.before + p] : -1;
    bool going = v >= 0;
    Peers same(going ? (u32)v : NOBODY);
    u32 number = 0;
    if (going && same.before == 0) number = atomicAdd(a.counts + v, (u32)__popc(same.lanes));
    number = __shfl_sync(~0u, number, same.first) + same.before;
    if (p >= transits) continue;
    a.records[p] = make_uint4(going ? p : NOBODY, (u32)v, number, NOBODY);
    if (!going)
      for (u32 j = 0; j < a.count; j++) hop.none((u64)p * a.count + j);
  }
}

template <typename I>
__device__ __forceinline__ void khop_transits(const KHopArgs& a) {
  __shared__ I ids[TRANSIT_ROW];
  const Hop<I> hop{a};
  u32 few = a.counters[TRANSIT_FEW], tasks = a.counters[TRANSIT_TASKS];
#pragma unroll 1
  for (u32 task = blockIdx.x; task < tasks; task += gridDim.x) {
    uint4 what = a.tasks[task];
    ulonglong2 row = hop.row_of(what.x);
    const I* edges = (const I*)a.indices + row.x;
    u32 slots = what.z * a.count;
    bool kept = row.y <= a.row_most && row.y * sizeof(I) <= 32 * (u64)slots;
    if (kept) {
      for (u32 i = threadIdx.x; i < row.y; i += KHOP_THREADS) ids[i] = edges[i];
      edges = ids;
      __syncthreads();
    }
#pragma unroll 1
    for (u32 i = threadIdx.x; i < slots; i += KHOP_THREADS) {
      u32 own = i / a.count;
      hop.draw(a.order[what.y + own].x, i - own * a.count, row, edges);
    }
    if (kept) __syncthreads();  // the next row takes this one's place
  }
  // Blocks that had a task more than others begin last.
  u32 slots = few * a.count;
#pragma unroll 1
  for (u32 i = (gridDim.x - 1 - blockIdx.x) * KHOP_THREADS + threadIdx.x; i < slots; i += gridDim.x * KHOP_THREADS) {
    u32 place = i / a.count;
    uint2 own = a.order[place];
    hop.draw(own.x, i - place * a.count, (long long)own.y);
  }
}

// The edges of a sample's transits as one list: a block makes the sums of their degrees.
template <typename I>
struct Joint {
  const Hop<I>& hop;
  u64* sums;
  const I* transits;
  u64 total;

  __device__ __forceinline__ Joint(const Hop<I>& hop, u64 sample, u64* sums, u64* parts)
      : hop(hop), sums(sums), transits(hop.nodes() + hop.a.before + sample * hop.a.of), total(0) {
#pragma unroll 1
    for (u64 i = 0; i < hop.a.of; i += KHOP_THREADS) {
      u64 own = i + threadIdx.x, all, degree = own < hop.a.of ? hop.row_of((long long)transits[own]).y : 0;
      u64 earlier = rows_before(degree, all, parts);
      if (own < hop.a.of) sums[own] = total + earlier + degree;
      total += all;
    }
    __syncthreads();
  }
  // The first place of the row that has a rank of the list, and, in its stead, the rank in the row.
  __device__ __forceinline__ u64 row_with(u64& rank) const {
    u64 low = 0, high = hop.a.of - 1;
    while (low < high) {
      u64 middle = (low + high) / 2;
      if (sums[middle] > rank) high = middle;
      else low = middle + 1;
    }
    if (low) rank -= sums[low - 1];
    return hop.row_of((long long)transits[low]).x;
  }
};

template <typename I>
__device__ __forceinline__ void khop_layer(const KHopArgs& a) {
  __shared__ u64 kept[TRANSIT_ROW];
  __shared__ u64 parts[KHOP_THREADS / 32];
  const Hop<I> hop{a};
  u64* sums = a.of <= TRANSIT_ROW ? kept : a.sums + blockIdx.x * a.of;
#pragma unroll 1
  for (u64 w = blockIdx.x; w < a.samples; w += gridDim.x) {
    const Joint<I> joint(hop, w, sums, parts);
    u64 state = hop.state(w);
#pragma unroll 1
    for (u64 j = threadIdx.x; j < a.width; j += KHOP_THREADS) {
      u64 slot = w * a.width + j;
      if (joint.total == 0) {
        hop.none(slot);
        continue;
      }
      u64 rank = below(draw_bits64(state, j), joint.total), start = joint.row_with(rank);
      hop.put(slot, (const I*)a.indices + start, start, rank);
    }
    __syncthreads();  // the next sample's sums take the place of these
  }
}

// A step of a sample in which no node occurs twice: slot after slot takes the first edge of its own list
// whose node no earlier slot has. A slot's list is its tries, then all edges that it draws from by the key that
// the slot draws for each. Those are its transit's, or, where there is a joint list, all of that.
//
// Any order of the slots comes to that: a node is held by the lowest slot that has asked for it, and a slot
// that loses its node goes on in its list. Holders only fall, so a slot that was refused once is refused for
// good: this is deferred acceptance (Gale and Shapley, 1962) where all nodes prefer lower slots, and it has one
// outcome. The thread that takes a node from another slot goes on for that slot, so nobody waits.
template <typename I, bool JOINED>
struct UniqueStep {
  const KHopArgs& a;
  const Hop<I> hop;
  u64 *keys, *holders;  // a node, or ~0; and slot << PLACE_BITS | place in the graph of the edge that it holds it by
  u32* spent;           // of a transit, or of the joint list: the lowest of its slots known to find nothing left
  const Joint<I>* joint;
  u64 state;
  u32 sample;

  static constexpr u32 PLACE_BITS = 33;
  static constexpr u64 NONE = ~0ull;

  // The node's entry, which is made where create says so; NONE if there is none.
  __device__ __forceinline__ u64 entry(u64 v, bool create) const {
    u64 at = v * GOLDEN >> 32 & (a.capacity - 1);
    for (u64 i = 0; i < a.capacity; i++) {
      u64 found = create ? atomicCAS(keys + at, NONE, v) : load(keys + at);
      if (found == v || (found == NONE && create)) return at;
      if (found == NONE) return NONE;
      at = (at + 1) & (a.capacity - 1);
    }
    return NONE;
  }
  // Other threads change entries meanwhile: an atomic that changes nothing, so that racecheck sees no race.
  __device__ __forceinline__ static u64 load(u64* p) { return atomicCAS(p, NONE, NONE); }

  // The first place and the number of the edges that the slots of a transit draw from, and the place of one.
  __device__ __forceinline__ ulonglong2 list_of(u32 transit) const {
    if constexpr (JOINED) return make_ulonglong2(0, joint->total);
    else return hop.row_of((long long)hop.nodes()[a.before + (u64)sample * a.of + transit]);
  }
  __device__ __forceinline__ u64 place_of(ulonglong2 list, u64 rank) const {
    if constexpr (JOINED) {
      u64 start = joint->row_with(rank);
      return start + rank;
    } else {
      return list.x + rank;
    }
  }

  // Asks for the edge at a place for a slot. True if the slot has it now; only then other is written: the
  // slot that lost the node, or NONE.
  __device__ __forceinline__ bool take(u32 slot, u64 place, u64& other) const {
    u64 at = entry((u64)((const I*)a.indices)[place], true);
    if (at == NONE) return false;
    u64 own = (u64)slot << PLACE_BITS | place, before = atomicMin(holders + at, own);
    if (own > before) return false;
    other = before == NONE ? NONE : before >> PLACE_BITS;
    return true;
  }
  // The place of the edge with the least key among those whose node no lower slot has, or NONE.
  __device__ u64 least(ulonglong2 list, u32 slot) const {
    u64 own = part_state(state, slot), least = 0, at = NONE;
    for (u64 p = 0; p < list.y; p++) {
      u64 key = draw_bits64(own, p);
      if (at != NONE && key >= least) continue;
      u64 place = place_of(list, p), met = entry((u64)((const I*)a.indices)[place], false);
      if (met != NONE && load(holders + met) >> PLACE_BITS < slot) continue;
      least = key, at = place;
    }
    return at;
  }
  // Has a slot take what it can, and so each slot that loses its node by that.
  __device__ void settle(u64 slot) const {
    while (slot != NONE) {
      u32 t = (u32)slot, transit = t / a.count;
      slot = NONE;
      ulonglong2 list = list_of(transit);
      // Slot d of d edges finds nothing left, or a slot before it did.
      if (t - transit * a.count >= list.y || t >= atomicMin(spent + transit, ~0u)) continue;
      bool has = false;
      for (u64 i = 0, n = min((u64)a.tries, list.y); i < n && !has; i++)
        has = take(t, place_of(list, below(draw_bits64(state, i * a.width + t), list.y)), slot);
      while (!has) {
        u64 place = least(list, t);
        if (place == NONE) {
          atomicMin(spent + transit, t);
          break;
        }
        has = take(t, place, slot);
      }
    }
  }
};

// Threads of a team meet.
__device__ __forceinline__ void team_sync(u32 team) {
  if (team == 32) __syncwarp();
  else __syncthreads();
}

template <typename I, bool JOINED>
__device__ __forceinline__ void unique_step(const KHopArgs& a) {
  // Of all teams of a block. Slots, and so transits, are half of that at most where these are used; a joint
  // list is a block's, whose transits are half of that at most, too.
  __shared__ u64 keys[TRANSIT_ROW], holders[TRANSIT_ROW];
  __shared__ u64 shared_sums[JOINED ? TRANSIT_ROW / 2 : 1], parts[KHOP_THREADS / 32];
  __shared__ u32 spent[TRANSIT_ROW / 2];
  u32 teams = KHOP_THREADS / a.team, team = threadIdx.x / a.team, lane = threadIdx.x % a.team;
  bool kept = teams * a.width <= TRANSIT_ROW / 2 && (!JOINED || a.of <= TRANSIT_ROW / 2);
  u64* own = a.sums + blockIdx.x * (2 * a.capacity + a.of);
  u64* sums = kept ? shared_sums : own + 2 * a.capacity;
  u64 lists = JOINED ? 1 : a.of;
  const Hop<I> hop{a};
  UniqueStep<I, JOINED> step{a, hop};
  step.keys = kept ? keys + team * a.capacity : own;
  step.holders = kept ? holders + team * a.capacity : own + a.capacity;
  step.spent = kept || JOINED ? spent + team * lists : (u32*)(own + 2 * a.capacity);
#pragma unroll 1
  for (u64 w = blockIdx.x * teams + team; w < a.samples; w += (u64)gridDim.x * teams) {
    step.sample = (u32)w;
    step.state = hop.state(w);
    for (u64 i = lane; i < a.capacity; i += a.team) step.keys[i] = step.holders[i] = step.NONE;
    for (u64 i = lane; i < lists; i += a.team) step.spent[i] = ~0u;
    for (u64 i = lane; i < a.width; i += a.team) hop.none(w * a.width + i);
    team_sync(a.team);
    const auto settle = [&] {
#pragma unroll 1
      for (u64 i = lane; i < a.width; i += a.team) step.settle(i);
    };
    if constexpr (JOINED) {
      const Joint<I> joint(hop, w, sums, parts);
      step.joint = &joint;
      settle();
    } else {
      settle();
    }
    team_sync(a.team);
    for (u64 i = lane; i < a.capacity; i += a.team) {
      if (step.keys[i] == step.NONE) continue;
      u64 slot = step.holders[i] >> step.PLACE_BITS, place = step.holders[i] & ((1ull << step.PLACE_BITS) - 1);
      hop.put(w * a.width + slot, (const I*)a.indices, 0, place);
    }
    team_sync(a.team);  // the next sample's table takes the place of this one
  }
}

template <typename I>
__device__ __forceinline__ void khop_unique(const KHopArgs& a) { unique_step<I, false>(a); }
template <typename I>
__device__ __forceinline__ void khop_layer_unique(const KHopArgs& a) { unique_step<I, true>(a); }

#define KHOP(NAME, SUFFIX, I) \
  extern "C" __global__ void __launch_bounds__(KHOP_THREADS) NAME##SUFFIX(const __grid_constant__ KHopArgs a) { NAME<I>(a); }
#define KHOPS(SUFFIX, I)         \
  KHOP(khop_begin, SUFFIX, I)    \
  KHOP(khop_step, SUFFIX, I)     \
  KHOP(khop_enter, SUFFIX, I)    \
  KHOP(khop_transits, SUFFIX, I) \
  KHOP(khop_layer, SUFFIX, I)    \
  KHOP(khop_unique, SUFFIX, I)   \
  KHOP(khop_layer_unique, SUFFIX, I)
KHOPS(32, int)
KHOPS(64, long long)

extern "C" __global__ void __launch_bounds__(32) khop_finish(const __grid_constant__ KHopArgs a) {
  if (threadIdx.x) return;
  Meeting meeting{a.arrived, 0};
  if (!meeting.come_last()) return;
  u64 bad = load_relaxed(a.bad_seed);
  a.report[REPORT_DETAIL] = bad;
  __threadfence_system();
  *(volatile u64*)(a.report + REPORT_STATUS) = bad == ~0ull ? STATUS_OK : STATUS_SEED_OUT_OF_RANGE;
}
