// Samples contexts of fixed length: a warp for each seed adds rows hop by hop, up to a budget.
// docs/guide/tables.md defines the rule.
//
// Parts of a hop:
//   find    looks up the rows of a context in a table with open addressing, whose slots hold their
//           positions plus one
//   take    adds 32 edges at a time, in the order of the rule: of edges from the same node only the
//           first lane continues, and of edges with new nodes as many as fit, by a sum over the
//           lanes
//   untimed concatenates the edges without times of 32 rows of a hop: a lane finds its edge by the
//           cumulative sums of the rows
//   timed   merges rows that are sorted by time: each pair of row and relation is a list, whose
//           first edge is its key. 32 lists are a group, whose best key is in memory; a lane holds
//           the best of every 32nd group. A step takes the best of the lanes, and recomputes the
//           best of its group and of its lane. 32 steps are taken at once.
//
// Warps share only the bad seed and the report, and the output of a warp is read by its own lanes
// only, after __syncwarp(). Neither the grid nor the block size changes a byte.
//
// Go caller: internal/engine/cuda/contexts.go. Go twin: internal/engine/contexts.
#include "common/grid.cuh"
#include "hetero/hetero.cuh"

// The edges that lead into nodes of a type. Mirrors contextRelation in internal/engine/cuda/contexts.go.
struct ContextRelation {
  const void *indptr, *indices;
  const long long* keys;  // of the times of its edges by position, ascending in each row; null: no times
  u64 num_rows;
  u32 indptr_bits, src;
};

// Mirrors contextArgs; loading compares the sizes.
struct ContextArgs {
  const void* seeds;
  const ContextRelation* relations;  // by the type that they lead into, of each type those without times first
  const u64* begins;                 // of types: their relations without times, and with times; and where the last end
  const u64* sizes;                  // of types: how many nodes
  const u64* ends;                   // of types: where their seeds end
  const u64* costs;                  // of types: what a row takes of the budget
  const long long* seed_times;       // a key for each seed; null: no times
  char* out;                         // the contexts; layout of contexts.Rule.Words
  u64* report;                       // in memory that the host sees; the words are there already
  u32* arrived;                      // the meetings' counter
  u64* bad_seed;                     // the lowest seed out of range; ~0 if none
  // Of each warp: the table; the keys, positions and what is left of lists; the bests of groups.
  u32* tables;
  long long* list_keys;
  u64 *list_at, *list_left;
  long long* group_keys;
  u32* group_lists;
  u64 num_seeds, places, budget, width;  // width 0: all edges
  u64 nodes_at, types_at, hops_at, parents_at, mask_at, cells_at, lengths_at;  // types_at, cells_at 0: none
  u64 lists, groups;  // room for, of a warp
  u32 types, most_timed, table_bits, seed_bits;  // most_timed: relations with times that lead into one type
  u32 before, windowed, float_times, unused;     // times.Rule
  double window;
};

#define NO_LIST (~0u)

// The best of some lists: whose edge is the latest, and of several the first list. None: list is NO_LIST.
struct Best {
  long long key;
  u32 list;

  __device__ __forceinline__ bool after(const Best& o) const {
    if (list == NO_LIST || o.list == NO_LIST) return list == NO_LIST && o.list != NO_LIST;
    return key < o.key || (key == o.key && list > o.list);
  }
  __device__ __forceinline__ void join(const Best& o) {
    if (after(o)) *this = o;
  }
};

// Of all lanes, in every lane.
__device__ __forceinline__ Best warp_best(Best own) {
  for (int d = 16; d; d >>= 1) {
    Best other;
    other.key = __shfl_xor_sync(~0u, own.key, d), other.list = __shfl_xor_sync(~0u, own.list, d);
    own.join(other);
  }
  return own;
}

// The sum over this lane and those before it.
__device__ __forceinline__ u64 up_to_lane(u64 x) {
  u32 lane = threadIdx.x & 31;
  for (int d = 1; d < 32; d <<= 1) {
    u64 y = __shfl_up_sync(~0u, x, d);
    if (lane >= (u32)d) x += y;
  }
  return x;
}

// A warp and the context that it makes. I: int or long long, of ids.
template <typename I>
struct Context {
  const ContextArgs& a;
  u32 lane;
  u32* table;
  long long* list_keys;
  u64 *list_at, *list_left;
  long long* group_keys;
  u32* group_lists;
  // Of the context.
  long long* nodes;
  int *types, *hops, *parents, *cells;  // types, cells: null where there are none
  unsigned char* mask;
  u64 count, left;
  int hop;

  __device__ Context(const ContextArgs& a, u64 warp)
      : a(a), lane(threadIdx.x & 31), table(a.tables + (warp << a.table_bits)), list_keys(a.list_keys + warp * a.lists),
        list_at(a.list_at + warp * a.lists), list_left(a.list_left + warp * a.lists),
        group_keys(a.group_keys + warp * a.groups), group_lists(a.group_lists + warp * a.groups) {}

  __device__ void begin(u64 seed) {
    u64 first = seed * a.places;
    nodes = (long long*)(a.out + a.nodes_at) + first;
    types = a.types_at ? (int*)(a.out + a.types_at) + first : nullptr;
    hops = (int*)(a.out + a.hops_at) + first;
    parents = (int*)(a.out + a.parents_at) + first;
    cells = a.cells_at ? (int*)(a.out + a.cells_at) + first : nullptr;
    mask = (unsigned char*)(a.out + a.mask_at) + first;
    count = 0, left = a.budget, hop = 0;
    for (u64 i = lane; i < 1ull << a.table_bits; i += 32) table[i] = 0;
    __syncwarp();
  }
  __device__ u32 type(u64 place) const { return types ? (u32)types[place] : 0; }
  __device__ u64 slot(u64 key) const { return (key * GOLDEN) >> (64 - a.table_bits); }
  __device__ u64 looked(u64 edges) const { return a.width ? min(edges, a.width) : edges; }

  __device__ ulonglong2 row(const ContextRelation& r, u64 v) const {
    if (v >= r.num_rows) return make_ulonglong2(0, 0);
    u64 start, end;
    if (r.indptr_bits == 32) start = (u32)((const int*)r.indptr)[v], end = (u32)((const int*)r.indptr)[v + 1];
    else start = ((const u64*)r.indptr)[v], end = ((const u64*)r.indptr)[v + 1];
    return make_ulonglong2(start, end - start);
  }
  __device__ static u64 source(const ContextRelation& r, u64 at) { return (u64)((const I*)r.indices)[at]; }

  // Takes the nodes of lanes that have one, in the order of the lanes; says whether the context goes on. All lanes.
  __device__ bool take(bool has, u32 kind, u64 node, int parent) {
    u64 key = has ? node * a.types + kind : ~0ull;
    u32 peers = __match_any_sync(~0u, key);
    bool fresh = has && (u32)__ffs((int)peers) - 1 == lane;
    if (fresh) {
      for (u64 i = slot(key); table[i]; i = (i + 1) & ((1ull << a.table_bits) - 1)) {
        u32 place = table[i] - 1;
        if ((u64)nodes[place] != node || type(place) != kind) continue;
        fresh = false;
        break;
      }
    }
    u64 cost = fresh ? a.costs[kind] : 0, sum = up_to_lane(cost);
    bool fits = fresh && sum <= left;
    u32 taken = __ballot_sync(~0u, fits), found = __ballot_sync(~0u, fresh);
    if (fits) {
      u64 place = count + __popc(taken & ((1u << lane) - 1));
      nodes[place] = (long long)node, hops[place] = hop, parents[place] = parent, mask[place] = 1;
      if (types) types[place] = (int)kind;
      if (cells) cells[place] = (int)cost;
      // Their keys differ, so that a slot that another lane has just taken is not the key's own.
      for (u64 i = slot(key); atomicCAS(table + i, 0u, (u32)place + 1); i = (i + 1) & ((1ull << a.table_bits) - 1)) {
      }
    }
    __syncwarp();
    // Costs are positive: lanes that fit come before those that do not.
    if (taken) {
      left -= __shfl_sync(~0u, sum, 31 - __clz((int)taken));
      count += __popc(taken);
    }
    return taken == found && left > 0 && count < a.places;
  }

  // The edges without times that lead into the rows from one place to another; says whether the context goes on.
  __device__ bool untimed(u64 begin, u64 end) {
    for (u64 base = begin; base < end; base += 32) {
      u64 p = base + lane, edges = 0, v = 0;
      u32 kind = 0;
      if (p < end) {
        v = (u64)nodes[p], kind = type(p);
        for (u64 r = a.begins[2 * kind]; r < a.begins[2 * kind + 1]; r++) edges += looked(row(a.relations[r], v).y);
      }
      u64 upto = up_to_lane(edges), all = __shfl_sync(~0u, upto, 31);
      for (u64 first = 0; first < all; first += 32) {
        u64 i = first + lane;
        bool has = i < all;
        // The lane whose row has it: the first one with more edges up to it.
        u32 owner = 0;
        for (u32 d = 16; d; d >>= 1) {
          u64 before = __shfl_sync(~0u, upto, (int)(owner + d - 1));
          if (has && before <= i) owner += d;
        }
        u64 last = __shfl_sync(~0u, upto, (int)owner), count_of = __shfl_sync(~0u, edges, (int)owner);
        u64 of = __shfl_sync(~0u, v, (int)owner);
        u32 of_kind = __shfl_sync(~0u, kind, (int)owner), src = 0;
        u64 node = 0;
        if (has) {
          u64 rest = i - (last - count_of);
          for (u64 r = a.begins[2 * of_kind]; r < a.begins[2 * of_kind + 1]; r++) {
            ulonglong2 edges_of = row(a.relations[r], of);
            u64 some = looked(edges_of.y);
            if (rest >= some) {
              rest -= some;
              continue;
            }
            node = source(a.relations[r], edges_of.x + edges_of.y - 1 - rest), src = a.relations[r].src;
            break;
          }
        }
        if (!take(has, src, node, (int)(base + owner))) return false;
      }
    }
    return true;
  }

  // How many of ascending keys are below one, or at it.
  __device__ static u64 below(const long long* keys, u64 n, long long key, bool or_at) {
    u64 lo = 0;
    while (lo < n) {
      u64 middle = (lo + n) / 2;
      if (keys[middle] < key || (or_at && keys[middle] == key)) lo = middle + 1;
      else n = middle;
    }
    return lo;
  }
  // Which part of a row a bound leaves. Go twin: times.SortedRows.Within.
  __device__ ulonglong2 within(const ContextRelation& r, ulonglong2 row, long long bound) const {
    const long long LEAST = (long long)(1ull << 63);
    const long long* keys = r.keys + row.x;
    u64 end = below(keys, row.y, bound, !a.before), begin = 0;
    if (a.windowed) {
      long long since = LEAST;
      if (a.float_times) since = key_of(time_of(bound) - a.window);
      else if (bound >= LEAST + (long long)a.window) since = bound - (long long)a.window;
      begin = below(keys, end, since, false);
    }
    return make_ulonglong2(row.x + begin, end - begin);
  }
  // The relation of a list, of rows from a place on, and the place of the row that its edges lead into.
  __device__ const ContextRelation& relation(u64 list, u64 begin, u64& place) const {
    place = begin + list / a.most_timed;
    return a.relations[a.begins[2 * type(place) + 1] + list % a.most_timed];
  }
  // The best list of a group, in every lane.
  __device__ Best best_of(u64 group, u64 lists) const {
    u64 list = group * 32 + lane;
    Best own = {0, NO_LIST};
    if (list < lists && list_left[list]) own.key = list_keys[list], own.list = (u32)list;
    return warp_best(own);
  }

  // The edges with times that lead into the rows from one place to another; says whether the context goes on.
  __device__ bool timed(u64 begin, u64 end, long long bound) {
    const u64 lists = (end - begin) * a.most_timed, groups = (lists + 31) / 32;
    if (!lists) return true;
    for (u64 list = lane; list < lists; list += 32) {
      u64 p = begin + list / a.most_timed, at = a.begins[2 * type(p) + 1] + list % a.most_timed;
      ulonglong2 some = make_ulonglong2(0, 0);
      if (at < a.begins[2 * type(p) + 2]) {
        some = row(a.relations[at], (u64)nodes[p]);
        if (some.y) some = within(a.relations[at], some, bound);
      }
      list_left[list] = looked(some.y);
      if (!some.y) continue;
      list_at[list] = some.x + some.y - 1;
      list_keys[list] = a.relations[at].keys[some.x + some.y - 1];
    }
    __syncwarp();
    Best own = {0, NO_LIST};
    for (u64 group = 0; group < groups; group++) {
      Best best = best_of(group, lists);
      if (lane == (group & 31)) {
        group_keys[group] = best.key, group_lists[group] = best.list;
        own.join(best);
      }
    }
    __syncwarp();
    for (bool more = true; more;) {
      bool has = false;
      u32 list = 0;
      u64 position = 0;
      for (u32 step = 0; step < 32; step++) {
        Best best = warp_best(own);
        more = best.list != NO_LIST;
        if (!more) break;
        u64 at = list_at[best.list], rest = list_left[best.list] - 1, place;
        if (lane == step) has = true, list = best.list, position = at;
        // All lanes have read before one writes.
        __syncwarp();
        if (lane == 0) {
          list_left[best.list] = rest;
          if (rest) list_at[best.list] = at - 1, list_keys[best.list] = relation(best.list, begin, place).keys[at - 1];
        }
        __syncwarp();
        u64 group = best.list / 32;
        Best again = best_of(group, lists);
        if (lane == (group & 31)) {
          group_keys[group] = again.key, group_lists[group] = again.list;
          own.list = NO_LIST;
          for (u64 g = lane; g < groups; g += 32) own.join(Best{group_keys[g], group_lists[g]});
        }
      }
      u64 place = 0, node = 0;
      u32 src = 0;
      if (has) {
        const ContextRelation& r = relation(list, begin, place);
        node = source(r, position), src = r.src;
      }
      if (!take(has, src, node, (int)place)) return false;
    }
    return true;
  }

  __device__ void make(u64 seed) {
    u64 v = a.seed_bits == 32 ? (u64)(long long)((const int*)a.seeds)[seed] : ((const u64*)a.seeds)[seed];
    u32 kind = 0;
    while (kind + 1 < a.types && seed >= a.ends[kind]) kind++;
    begin(seed);
    if (v >= a.sizes[kind]) {
      if (lane == 0) atomicMin(a.bad_seed, seed);
    } else {
      long long bound = a.seed_times ? a.seed_times[seed] : 0;
      bool more = take(lane == 0, kind, v, -1);
      for (u64 first = 0, end = count; more && first < end; first = end, end = count) {
        hop++;
        more = untimed(first, end) && timed(first, end, bound);
      }
    }
    for (u64 i = count + lane; i < a.places; i += 32) {
      nodes[i] = -1, hops[i] = -1, parents[i] = -1, mask[i] = 0;
      if (types) types[i] = -1;
      if (cells) cells[i] = 0;
    }
    if (lane == 0) ((int*)(a.out + a.lengths_at))[seed] = (int)count;
    __syncwarp();
  }
};

template <typename I>
__device__ __forceinline__ void contexts(const ContextArgs& a) {
  const u64 warps = (u64)gridDim.x * (blockDim.x / 32), warp = (u64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  Context<I> context(a, warp);
  for (u64 seed = warp; seed < a.num_seeds; seed += warps) context.make(seed);
  __syncthreads();
  if (threadIdx.x) return;
  Meeting meeting{a.arrived, 0};
  if (!meeting.come_last()) return;
  u64 bad = load_relaxed(a.bad_seed);
  a.report[REPORT_DETAIL] = bad;
  __threadfence_system();
  *(volatile u64*)(a.report + REPORT_STATUS) = bad == ~0ull ? STATUS_OK : STATUS_SEED_OUT_OF_RANGE;
}

extern "C" __global__ void __launch_bounds__(CONTEXT_THREADS) context32(const __grid_constant__ ContextArgs a) { contexts<int>(a); }
extern "C" __global__ void __launch_bounds__(CONTEXT_THREADS) context64(const __grid_constant__ ContextArgs a) { contexts<long long>(a); }
