// Random walks by transits, instead of one thread per walk (walk/walk.cu). At each step walkers are
// grouped by their present node, their transit, so that walkers that read the same row are adjacent:
// lanes of a warp then read the same sectors, and a block reads a row into shared memory once for all
// of its walkers.
//
// Source: A. Jangda et al., "Accelerating Graph Sampling for Graph Machine Learning using GPUs",
// EuroSys 2021 (NextDoor), sections 5.2 and 6.1: transit-parallel execution.
//
// Kernels of a walk, in a stream; none waits for the host, since all sizes stay on the device:
//   begin   one thread per walker: its root, where it is counted. Steps that are never reached get -1
//   then for each step
//   open    gives each transit a place in the order, and a class by the number n of its walkers
//           (NextDoor's Table 2): up to TRANSIT_WARP share warps with others ("sub-warp"); more are a
//           task for a block ("thread block"); more than TRANSIT_PIECE are several tasks ("grid")
//   place   one thread per walker: it moves to its transit's place. Ended walkers are dropped: so the
//           order holds active walkers only, those of small transits from its front on, those of
//           large ones from its end
//   step    blocks process the tasks in order, then warps process the front of the order. A walker
//           takes its edge, and is counted at its new node, or at the node that it returns to, for
//           the next step
//   finish  the report, unless visit_counts (walk/visit_counts.cu) follows
//
// NextDoor sorts walkers by cub's radix sort. Counting is enough here, since transits may be in any
// order: an atomic counts a walker at its transit (one for all lanes of a warp at the same transit)
// and returns its number there, and a thread for every few nodes assigns places, with one addition
// per block. Nodes are nearly in order then, so that rows are read in the order of memory. If few
// nodes have a walker, a kernel iterates over walkers instead, and the first of each transit requests
// the place: the cost of a step is then proportional to walkers instead of nodes.
//
// A task's row is read into shared memory if it fits, and if it has at most as many sectors as the
// task has walkers; otherwise nothing is saved. NextDoor holds rows of sub-warps in registers; with
// one draw per walker and few walkers per row this saves nothing, so lanes only pass on the bounds of
// rows.
//
// Packed edges (walk/walk.cu) do not help here: a row is looked up once for all of its walkers.
// node2vec's filter of pairs is used as in walk.cu.
//
// Draws are those of walk/walk.cu, by walk and step: grouping changes no bit.
//
// Invariants: counts are zero when no kernel runs; an active walker has one record and one place.
// Records have the positions of the walkers in the order, so the records of a step are in its two
// parts, except for holes of ended walkers.
//
// Go caller: internal/research/cuda/transit.go. Go twin: internal/walk.
#include "common/warp_match.cuh"
#include "common/row_draw.cuh"
#include "walk/walk.cuh"
#include "research/constants.cuh"

#define NOBODY (~0u)
#define JUMPS 0x80000000u  // with a walker's number, which is below: its step goes back to the root

// Mirrors transitArgs in internal/research/cuda/transit.go; loading compares the sizes.
struct TransitArgs {
  WalkArgs walk;
  void* order;     // [walks]: Place, of the walkers under way
  uint4* records;  // [walks]: walker (NOBODY: a hole), transit, number among its walkers, where it came from
  uint4* tasks;    // [walks / TRANSIT_WARP + 1]: transit, first place in the order, walkers
  u32 *counts, *starts;  // [num_nodes], the former padded to 16 bytes
  u32* counters;   // two sets of TRANSIT_COUNTERS
  u32 step, kind;  // the step of the walks, and the kind of its edges
  u32 id_bits, second;
  // Walkers of a transit that shares warps, and edges of a row that is put into shared memory, at most: TRANSIT_WARP
  // and TRANSIT_ROW, unless what these bring is measured.
  u32 warp_most, row_most;
  u64 words;       // of 32 bits, from the walks' vertices on
};

// A walker in the order: its number, where it is, and with node2vec where it came from.
template <bool SECOND_ORDER>
struct Place {
  u32 walker, at;
  __device__ __forceinline__ u32 last() const { return NOBODY; }
};
template <>
struct __align__(16) Place<true> {
  u32 walker, at, from, unused;
  __device__ __forceinline__ u32 last() const { return from; }
};

struct Transits {
  const TransitArgs& t;

  __device__ __forceinline__ u32* counters(u32 step) const { return t.counters + (step & 1) * TRANSIT_COUNTERS; }
  __device__ __forceinline__ u64 root(u32 walker) const { return read(t.walk.seeds, t.walk.seed_bits, walker / t.walk.per_seed); }
  __device__ __forceinline__ u64 state(u32 walker) const {
    const WalkArgs& a = t.walk;
    return row_state(stream_of(a.key0, a.key1, 0, a.batch0, a.batch1, PURPOSE_WALKING), a.first_walk + walker);
  }
  __device__ __forceinline__ void end(u32 walker, u32 step) const { ((int*)(t.walk.out + t.walk.lengths_at))[walker] = (int)step; }

  // Where in the order, or in records, one of the walkers of the two parts stands.
  __device__ __forceinline__ u64 stands(u64 i, u64 few, u64 many) const { return i < few ? i : t.walk.walks - many + (i - few); }

  // A walker of record p that comes to a step at v: it is counted there, or at its root, or ends. All lanes of a warp
  // come, those that are none of them without going.
  template <bool PLAINLY>
  __device__ __forceinline__ void enter(bool is, bool going, u64 p, u32 walker, u64 state, u64 v, u32 last, u32 step) const {
    const WalkArgs& a = t.walk;
    u32 jump = 0;
    if (!PLAINLY && going) {
      u64 draw = draw_bits(state, step);
      if (a.stop && may_stop(a, step) && coin(draw_bits(draw, STOP_DRAW)) < a.stop) {
        end(walker, step);
        going = false;
      } else if (a.restart && coin(draw_bits(draw, RESTART_DRAW)) < a.restart) {
        v = root(walker), last = NOBODY;
        if (a.jumps) jump = JUMPS;
      }
    }
    Peers same(going ? (u32)v : NOBODY);
    u32 number = 0;
    if (going && same.before == 0) number = atomicAdd(t.counts + v, (u32)__popc(same.lanes));
    number = __shfl_sync(~0u, number, same.first) + same.before;
    if (is) t.records[p] = make_uint4(going ? walker | jump : NOBODY, (u32)v, number, last);
  }
};

extern "C" __global__ void __launch_bounds__(TRANSIT_THREADS) transit_begin(const __grid_constant__ TransitArgs t) {
  const Transits transits{t};
  const WalkArgs& a = t.walk;
  u32 lane = threadIdx.x & 31;
  if (blockIdx.x == 0 && threadIdx.x < TRANSIT_COUNTERS) {
    transits.counters(0)[threadIdx.x] = 0;
    transits.counters(1)[threadIdx.x] = threadIdx.x == TRANSIT_FEW ? (u32)a.walks : 0;
  }
  for (u64 i = a.walks * (t.id_bits / 32) + (u64)blockIdx.x * TRANSIT_THREADS + threadIdx.x; i < t.words; i += (u64)gridDim.x * TRANSIT_THREADS)
    ((u32*)(a.out + a.nodes_at))[i] = ~0u;
  // All lanes of a warp go on while one has a walker.
#pragma unroll 1
  for (u64 w = (u64)blockIdx.x * TRANSIT_THREADS + threadIdx.x; w - lane < a.walks; w += (u64)gridDim.x * TRANSIT_THREADS) {
    bool is = w < a.walks, going = is;
    u64 v = is ? transits.root((u32)w) : 0;
    if (is && v >= a.num_nodes) {
      atomicMin(a.bad_seed, w / a.per_seed);
      going = false;
    }
    if (is) write(a.out + a.nodes_at, t.id_bits, w, v), transits.end((u32)w, going ? a.length : 0);
    if (a.length) transits.enter<false>(is, going, w, (u32)w, transits.state((u32)w), v, NOBODY, 0);
  }
}

// ---- the order ---------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(TRANSIT_THREADS) transit_open(const __grid_constant__ TransitArgs t) {
  __shared__ u64 parts[TRANSIT_THREADS / 32];
  __shared__ u32 first[TRANSIT_COUNTERS];
  const Transits transits{t};
  const u32 TILE = TRANSIT_THREADS * TRANSIT_SIDE;
  u32 *now = transits.counters(t.step), lane = threadIdx.x & 31;
  const u32* before = transits.counters(t.step - 1);
  u64 few = before[TRANSIT_FEW], many = before[TRANSIT_MANY], nodes = t.walk.num_nodes;
  bool sparse = (few + many) * TRANSIT_SPARSE < nodes;
  u64 items = sparse ? few + many : nodes;
#pragma unroll 1
  for (u64 tile = (u64)blockIdx.x * TILE; tile < items; tile += (u64)gridDim.x * TILE) {
    u32 v[TRANSIT_SIDE], n[TRANSIT_SIDE];
    u64 from = tile + threadIdx.x * TRANSIT_SIDE;
    uint4 four = make_uint4(0, 0, 0, 0);
    if (!sparse && from < items) {
      uint4* own = (uint4*)(t.counts + from);
      four = *own;
      if (four.x | four.y | four.z | four.w) *own = make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (u32 k = 0; k < TRANSIT_SIDE; k++) {
      v[k] = (u32)from + k;
      n[k] = k == 0 ? four.x : k == 1 ? four.y : k == 2 ? four.z : four.w;
      u64 i = tile + k * TRANSIT_THREADS + threadIdx.x;
      if (sparse && i < items) {
        uint4 record = t.records[transits.stands(i, few, many)];
        if (record.x != NOBODY && record.z == 0) {
          v[k] = record.y, n[k] = t.counts[record.y];
          t.counts[record.y] = 0;
        }
      }
    }
    u32 mine = 0, large = 0, tasks = 0;
#pragma unroll
    for (u32 k = 0; k < TRANSIT_SIDE; k++) {
      if (n[k] <= t.warp_most) mine += n[k];
      else large += n[k], tasks += (n[k] + TRANSIT_PIECE - 1) / TRANSIT_PIECE;
    }
    bool some = __syncthreads_or(mine | large), tasked = __syncthreads_or(tasks);
    if (!some) continue;
    u64 all, all_tasks = 0, task = 0, places = rows_before(mine | (u64)large << 32, all, parts);
    if (tasked) task = rows_before(tasks, all_tasks, parts);
    if (threadIdx.x == 0) {
      first[TRANSIT_FEW] = (u32)all ? atomicAdd(now + TRANSIT_FEW, (u32)all) : 0;
      if (tasked) {
        first[TRANSIT_MANY] = atomicAdd(now + TRANSIT_MANY, (u32)(all >> 32));
        first[TRANSIT_TASKS] = atomicAdd(now + TRANSIT_TASKS, (u32)all_tasks);
      }
    }
    __syncthreads();
    u32 front = first[TRANSIT_FEW] + (u32)places, back = 0;
    if (tasked) back = (u32)t.walk.walks - first[TRANSIT_MANY] - (u32)(places >> 32), task += first[TRANSIT_TASKS];
#pragma unroll
    for (u32 k = 0; k < TRANSIT_SIDE; k++) {
      if (n[k] && n[k] <= t.warp_most) {
        t.starts[v[k]] = front;
        front += n[k];
      }
      if (!tasked) continue;
      u32 pieces = n[k] <= t.warp_most ? 0 : (n[k] + TRANSIT_PIECE - 1) / TRANSIT_PIECE, own = (u32)task;
      if (pieces) t.starts[v[k]] = back -= n[k];
      if (pieces == 1) t.tasks[own] = make_uint4(v[k], back, n[k], 0);
      task += pieces;
      // All lanes write the pieces of a hub: one walker in a million may be at another vertex.
      for (u32 hubs = __ballot_sync(~0u, pieces > 1); hubs; hubs &= hubs - 1) {
        int hub = __ffs((int)hubs) - 1;
        u32 at = __shfl_sync(~0u, v[k], hub), place = __shfl_sync(~0u, back, hub), walkers = __shfl_sync(~0u, n[k], hub);
        u32 to = __shfl_sync(~0u, own, hub), count = __shfl_sync(~0u, pieces, hub);
        for (u32 i = lane; i < count; i += 32)
          t.tasks[to + i] = make_uint4(at, place + i * TRANSIT_PIECE, min(walkers - i * TRANSIT_PIECE, (u32)TRANSIT_PIECE), 0);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(TRANSIT_THREADS) transit_place(const __grid_constant__ TransitArgs t) {
  const Transits transits{t};
  const u32* before = transits.counters(t.step - 1);
  u64 few = before[TRANSIT_FEW], many = before[TRANSIT_MANY];
  for (u64 i = (u64)blockIdx.x * TRANSIT_THREADS + threadIdx.x; i < few + many; i += (u64)gridDim.x * TRANSIT_THREADS) {
    uint4 record = t.records[transits.stands(i, few, many)];
    if (record.x == NOBODY) continue;
    u32 p = t.starts[record.y] + record.z;
    if (t.second) ((uint4*)t.order)[p] = make_uint4(record.x, record.y, record.w, 0);
    else ((uint2*)t.order)[p] = make_uint2(record.x, record.y);
  }
}

// ---- a step ------------------------------------------------------------------------------------

template <typename I, bool WEIGHTED, WalkKind KIND>
struct Walkers : Transits {
  typedef Place<KIND == SECOND> Own;

  // Where a row's edges are read: where the graph has them, or in shared memory.
  struct Edges {
    const I* ids;
    const u64* alias;
  };

  __device__ __forceinline__ Edges edges(const Row<false>& row) const {
    return Edges{(const I*)t.walk.indices + row.start, WEIGHTED ? t.walk.alias + row.start : nullptr};
  }

  // As Steps::propose.
  __device__ __forceinline__ Step<false> propose(const Row<false>& row, const Edges& edges, u64 draw) const {
    u64 slot = below(draw, row.degree);
    if constexpr (WEIGHTED) {
      u64 entry = edges.alias[slot];
      if ((u32)(draw * row.degree >> 32) >= (u32)entry) slot = entry >> 32;
    }
    Step<false> s;
    s.at = row.start + slot, s.to = (u64)edges.ids[slot];
    return s;
  }

  // The step of the walker of a place. All lanes of a warp come.
  __device__ __forceinline__ void go(bool is, u64 p, Own own, Row<false> row, Edges edges) const {
    const WalkArgs& a = t.walk;
    const Steps<I, false, WEIGHTED> steps{a};
    u32 walker = own.walker & ~JUMPS, last = own.last();
    u64 v = own.at, from = is ? state(walker) : 0;
    bool going = is;
    if (is) {
      bool jumped = false;
      if constexpr (KIND != PLAIN) {
        jumped = own.walker & JUMPS;
        if (!jumped && row.degree == 0 && a.restart && v != root(walker)) {
          // It leaves the others of its transit, for one step.
          v = root(walker), last = NOBODY;
          row = steps.row_of(v, t.kind), edges = this->edges(row);
          jumped = a.jumps;
        }
      }
      u64 id = ~0ull;
      if (jumped) {
        last = NOBODY;
      } else if (row.degree == 0) {
        end(walker, t.step);
        going = false;
      } else {
        Step<false> s;
        u64 draw = draw_bits(from, t.step);
        auto proposed = [&](u64 proposal) { return propose(row, edges, proposal); };
        if constexpr (KIND == SECOND) s = last == NOBODY ? proposed(draw) : steps.second(row, draw, last, proposed);
        else s = proposed(draw);
        last = (u32)v, v = s.to;
        if (a.edges_at) id = steps.id_of(s);
      }
      if (going) {
        // Neighbours in the order are none in memory: each is a sector of its own.
        ((I*)(a.out + a.nodes_at))[(u64)(t.step + 1) * a.walks + walker] = (I)v;
        if (a.edges_at) write(a.out + a.edges_at, a.out_edge_bits, (u64)t.step * a.walks + walker, id);
      }
    }
    if (t.step + 1 < a.length) enter<KIND == PLAIN>(is, going, p, walker, from, v, last, t.step + 1);
  }
};

template <typename I, bool WEIGHTED, WalkKind KIND>
__device__ __forceinline__ void transit_step(const TransitArgs& t) {
  __shared__ I ids[TRANSIT_ROW];
  __shared__ u64 alias[WEIGHTED ? TRANSIT_ROW : 1];
  const Walkers<I, WEIGHTED, KIND> walkers{{t}};
  typedef typename Walkers<I, WEIGHTED, KIND>::Own Own;
  typedef typename Walkers<I, WEIGHTED, KIND>::Edges Edges;
  const Steps<I, false, WEIGHTED> steps{t.walk};
  const u32* now = walkers.counters(t.step);
  const Own* order = (const Own*)t.order;
  u32 lane = threadIdx.x & 31, few = now[TRANSIT_FEW], tasks = now[TRANSIT_TASKS];
  if (blockIdx.x == 0 && threadIdx.x < TRANSIT_COUNTERS) walkers.counters(t.step + 1)[threadIdx.x] = 0;
#pragma unroll 1
  for (u32 task = blockIdx.x; task < tasks; task += gridDim.x) {
    uint4 what = t.tasks[task];
    Row<false> row = steps.row_of(what.x, t.kind);
    Edges edges = walkers.edges(row);
    bool kept = row.degree <= t.row_most && row.degree * (sizeof(I) + (WEIGHTED ? 8 : 0)) <= 32 * (u64)what.z;
    if (kept) {
      for (u32 i = threadIdx.x; i < row.degree; i += TRANSIT_THREADS) {
        ids[i] = edges.ids[i];
        if (WEIGHTED) alias[i] = edges.alias[i];
      }
      edges = Edges{ids, alias};
      __syncthreads();
    }
#pragma unroll 1
    for (u32 i = threadIdx.x; i - lane < what.z; i += TRANSIT_THREADS) {
      bool is = i < what.z;
      Own own{};
      if (is) own = order[what.y + i];
      walkers.go(is, what.y + i, own, row, edges);
    }
    if (kept) __syncthreads();  // the next row takes this one's place
  }
  // Blocks that had a task more than others begin last.
#pragma unroll 1
  for (u64 p = (u64)(gridDim.x - 1 - blockIdx.x) * TRANSIT_THREADS + threadIdx.x; p - lane < few; p += (u64)gridDim.x * TRANSIT_THREADS) {
    bool is = p < few;
    Own own{};
    own.at = NOBODY;
    if (is) own = order[p];
    // The first lane of those at a transit asks for its row.
    u32 left = __shfl_up_sync(~0u, own.at, 1);
    bool leads = lane == 0 || left != own.at;
    u32 heads = __ballot_sync(~0u, leads);
    int head = 31 - __clz((int)(heads & (~0u >> (31 - lane))));
    Row<false> row;
    row.start = row.degree = 0;
    if (is && leads) row = steps.row_of(own.at, t.kind);
    row.start = __shfl_sync(~0u, row.start, head), row.degree = __shfl_sync(~0u, row.degree, head);
    walkers.go(is, p, own, row, walkers.edges(row));
  }
}

// With bounds they take 40 registers: without, 58 held the keys of all rounds of a state, and a third of the warps had no room.
#define STEP(NAME, BLOCKS, I, WEIGHTED, KIND)                                                                                     \
  extern "C" __global__ void __launch_bounds__(TRANSIT_THREADS, BLOCKS) transit_step##NAME(const __grid_constant__ TransitArgs t) { \
    transit_step<I, WEIGHTED, KIND>(t);                                                                                           \
  }
#define STEPS(SUFFIX, I)                           \
  STEP(SUFFIX, 5, I, false, PLAIN)                 \
  STEP(_first##SUFFIX, 5, I, false, FIRST)         \
  STEP(_second##SUFFIX, 4, I, false, SECOND)       \
  STEP(_alias##SUFFIX, 5, I, true, PLAIN)          \
  STEP(_alias_first##SUFFIX, 5, I, true, FIRST)    \
  STEP(_alias_second##SUFFIX, 4, I, true, SECOND)
STEPS(32, int)
STEPS(64, long long)

extern "C" __global__ void __launch_bounds__(32) transit_finish(const __grid_constant__ TransitArgs t) {
  if (threadIdx.x == 0) walks_report(t.walk);
}
