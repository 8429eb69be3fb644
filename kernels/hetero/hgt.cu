// HGT's subgraphs of heterogeneous graphs in one cooperative launch, for any number of types and
// relations.
//
// Source: Z. Hu, Y. Dong, K. Wang, Y. Sun, "Heterogeneous Graph Transformer", WWW 2020, algorithms 1
// and 2.
//
// An iteration is a hop of hetero_batch.cuh, whose rows are the nodes that the previous iteration
// chose. Their edges remain in working memory, with the numbers of their source nodes: rows are
// drawn once, and only the end shows which of their neighbors were chosen. Between two iterations:
//   spend    rows distribute budgets, integers, so that sums do not depend on the order   barrier
//   sort     nodes with a number and no place, in tiles: by their keys in the race, of which a tile
//            retains as many as the iteration takes                                       barrier
//   merge    FAN runs of a type to one, of the same maximal length: the place of an element is the
//            number of elements of each run before it                            barrier, each time
// The last merge assigns the places, or the sort if a type has one tile. All types are sorted and
// merged at the same time. At the end:
//   count    edges of each row that come from chosen nodes, which get their places        sums
//   write    the same rows
// A selection by digits of the keys before the sort would need as many barriers as the merges do,
// plus a sort.
//
// Go caller: internal/engine/cuda/hgt.go. Go twin: internal/engine/cpu/hgt.go.
#include "hetero/hetero_batch.cuh"

// Mirrors hgtArgs in internal/engine/cuda/hgt.go.
struct HgtArgs : HeteroArgs {
  static constexpr bool CHOOSES = true;
  const u64* salts;           // of each type of vertices
  const long long* samples;   // of each type those of the iterations; -1: all
  void* chosen;               // the vertices of each type that were chosen, as nodes has those that have numbers
  int* places;                // of those that have numbers: where they are among the chosen ones; -1: nowhere
  u64* budgets;               // of the same
  u64* keys_of[2];            // elements of runs, by turns: keys,
  u32* numbers_of[2];         // and the numbers of vertices
  u32* lengths[2];            // of runs, where their first tile is
  u64* taken;                 // how many of each type an iteration chose
  u64* words;                 // what describes the hops in working memory, which `out` is
  char* batch;                // the batch; words of batch.Layout
  u64 batch_capacity;         // bytes
  u32 iterations, unused1;
};

// What is not in the race.
#define NO_KEY (~0ull)
// Runs that are merged to one.
#define FAN 8

template <typename I>
struct Hgt : Hetero<I, false, HgtArgs> {
  using T = Hetero<I, false, HgtArgs>;
  using T::a, T::s, T::n, T::chosen, T::row_at, T::edge_at, T::ids_at, T::rows, T::scratch, T::used, T::WIDTH;
  using T::find, T::lower, T::upper, T::sums_to, T::list, T::places, T::budgets, T::chosen_list;

  __device__ Hgt(const HgtArgs& a, HeteroShared& s, u64* shared) : T(a, s, shared) {
    chosen = (u64*)scratch;
    scratch = (u32*)(chosen + a.types);
  }

  __device__ long long samples(u32 type, u32 iteration) const { return a.samples[(u64)type * a.iterations + iteration]; }
  // How many of a run or of several are kept.
  __device__ static u64 kept(long long samples, u64 elements) { return samples < 0 ? elements : min((u64)samples, elements); }

  // One of each of a block's rows: a warp a row, and the block one of a hub, where rows have so many edges.
  template <class Edges, class Warp, class Block>
  __device__ static void by_rows(u64 lo, u64 hi, Edges edges, Warp warp, Block block) {
    int hubs = 0;
    for (u64 i = lo + (threadIdx.x >> 5); i < hi; i += HETERO_WARPS) {
      if (edges(i) < HETERO_HUB) warp(i);
      else hubs = 1;
    }
    if (!__syncthreads_or(hubs)) return;
    for (u64 i = lo; i < hi; i++)
      if (edges(i) >= HETERO_HUB) block(i);
    __syncthreads();
  }

  // ---- budgets -------------------------------------------------------------------------------

  // An addition that stays at the largest number.
  __device__ static void add(u64* budget, u64 share) {
    // Whoever wraps around puts that right, also those that add meanwhile.
    if (atomicAdd(budget, share) + share < share) atomicMax(budget, ~0ull);
  }
  // Row i of a hop shares out, by so many threads of which this is one.
  __device__ void spend(u64 i, u32 thread, u32 threads) const {
    u32 r = find(row_at, a.num_relations, i), src = a.relations[r].src;
    const I *indptr = (const I*)(a.out + T::indptr_at(r)) + (i - row_at[r]), *ids = (const I*)(a.out + ids_at[r]);
    u64 begin = (u64)indptr[0], end = (u64)indptr[1];
    if (begin == end) return;
    u64 share = max(BUDGET_UNIT / (end - begin), (u64)1);
    for (u64 e = begin + thread; e < end; e += threads)
      if (places(src)[ids[e]] < 0) add(budgets(src) + ids[e], share);
  }
  // How many edges row i of a hop has.
  __device__ u64 width(u64 i) const {
    u32 r = find(row_at, a.num_relations, i);
    const I* indptr = (const I*)(a.out + T::indptr_at(r)) + (i - row_at[r]);
    return (u64)(indptr[1] - indptr[0]);
  }
  // All rows of a hop do.
  __device__ void spend() const {
    u64 items = row_at[a.num_relations], lo = lower(items), hi = upper(items);
    by_rows(lo, hi, [&](u64 i) { return width(i); }, [&](u64 i) { spend(i, threadIdx.x & 31, 32); },
            [&](u64 i) { spend(i, threadIdx.x, THREADS); });
  }

  // ---- the race ------------------------------------------------------------------------------

  struct Element {
    u64 key;
    u32 number;
  };
  // Whether x comes before y: by key, then by vertex.
  __device__ static bool before(const I* nodes, const Element& x, const Element& y) {
    if (x.key != y.key) return x.key < y.key;
    if (x.key == NO_KEY) return x.number < y.number;
    return nodes[x.number] < nodes[y.number];
  }
  // The key of a vertex by its number: the bits of a positive double, an exponential variate whose rate is the square of its budget.
  __device__ u64 key(const Stream& stream, u32 type, u64 number) const {
    if (number >= n[type] || places(type)[number] >= 0) return NO_KEY;
    u64 state = state_of_type(row_state(stream, (u64)list(type)[number]), a.salts[type]);
    double budget = __ull2double_rn(__ldcg(budgets(type) + number));
    return (u64)__double_as_longlong(__ddiv_rn(exponential(draw_bits(state, 0)), __dmul_rn(budget, budget)));
  }
  // Sorts the elements that a block's threads have.
  __device__ void sort(const I* nodes, Element& own) const {
    u32 i = threadIdx.x;
    for (u32 size = 2; size <= THREADS; size <<= 1) {
      for (u32 by = size >> 1; by; by >>= 1) {
        Element other;
        if (by < 32) {
          other.key = __shfl_xor_sync(~0u, own.key, by), other.number = __shfl_xor_sync(~0u, own.number, by);
        } else {
          __syncthreads();
          s.starts[i] = own.key, s.offsets[i] = own.number;
          __syncthreads();
          other.key = s.starts[i ^ by], other.number = (u32)s.offsets[i ^ by];
        }
        // The lower of two takes the smaller one, in every second part the larger one.
        bool smaller = ((i & by) == 0) == ((i & size) == 0);
        if (before(nodes, other, own) == smaller) own = other;
      }
    }
  }
  // A vertex is the place-th that an iteration chooses.
  __device__ void choose(u32 type, u64 place, u32 number) const {
    places(type)[number] = (int)(chosen[type] + place);
    chosen_list(type)[chosen[type] + place] = list(type)[number];
  }

  // Sorts the tiles of all types, which begin where row_at says.
  __device__ void sort_tiles(u32 iteration, u64 tiles) const {
    Stream stream = stream_of(a.key0, a.key1, iteration, a.batch0, a.batch1, PURPOSE_CANDIDATES);
    for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      u32 type = find(row_at, a.types, tile);
      u64 number = (tile - row_at[type]) * THREADS + threadIdx.x;
      Element own{key(stream, type, number), (u32)number};
      u64 there = (u64)__syncthreads_count(own.key != NO_KEY), take = kept(samples(type, iteration), there);
      sort(list(type), own);
      bool alone = row_at[type + 1] - row_at[type] == 1;
      if (threadIdx.x < take) {
        if (alone) choose(type, threadIdx.x, own.number);
        else a.keys_of[0][tile * THREADS + threadIdx.x] = own.key, a.numbers_of[0][tile * THREADS + threadIdx.x] = own.number;
      }
      if (threadIdx.x == 0) {
        if (alone) a.taken[type] = take;
        else a.lengths[0][tile] = (u32)take;
      }
    }
  }
  // Merges runs of so many tiles each; in the turn that they are in now.
  __device__ void merge(u32 iteration, u64 width, u32 turn) {
    auto tiles = [&](u32 t) { return row_at[t + 1] - row_at[t]; };
    auto runs = [&](u32 t) { return (tiles(t) + width - 1) / width; };
    // Parts of the runs, which are not all full.
    auto parts = [&](u32 t) { return (kept(samples(t, iteration), width * THREADS) + THREADS - 1) / THREADS; };
    u64 all = sums_to(edge_at, a.types, 0, [&](u32 t) { return runs(t) > 1 ? runs(t) * parts(t) : 0; });
    for (u64 part = blockIdx.x; part < all; part += gridDim.x) {
      u32 type = find(edge_at, a.types, part);
      u64 own = part - edge_at[type], each = parts(type), run = own / each, i = own % each * THREADS + threadIdx.x;
      u64 first = run / FAN * FAN, count = min((u64)FAN, runs(type) - first), tile = row_at[type] + first * width;
      long long want = samples(type, iteration);
      const u64* keys = a.keys_of[turn] + tile * THREADS;
      const u32 *numbers = a.numbers_of[turn] + tile * THREADS, *lengths = a.lengths[turn] + tile;
      u64 step = width * THREADS, together = 0;
      u32 length[FAN], at[FAN];
#pragma unroll
      for (u32 b = 0; b < FAN; b++) {
        length[b] = b < count ? __ldcg(lengths + b * width) : 0, at[b] = 0;
        together += length[b];
      }
      u64 take = kept(want, together);
      if (run == first && i == 0) {
        if (runs(type) <= FAN) a.taken[type] = take;
        else a.lengths[turn ^ 1][tile] = (u32)take;
      }
      u32 mine = (u32)(run - first), most = 0, length_of_mine = 0;
#pragma unroll
      for (u32 b = 0; b < FAN; b++) {
        most = max(most, length[b]);
        if (b == mine) length_of_mine = length[b];
      }
      if (i >= length_of_mine) continue;
      Element element{__ldcg(keys + mine * step + i), __ldcg(numbers + mine * step + i)};
      // How many of each run are before the element, bit by bit and side by side.
      for (u32 bit = most ? 1u << (31 - __clz((int)most)) : 0; bit; bit >>= 1) {
#pragma unroll
        for (u32 b = 0; b < FAN; b++) {
          u32 to = at[b] + bit;
          if (b == mine || to > length[b]) continue;
          Element other{__ldcg(keys + b * step + to - 1), 0};
          if (other.key == element.key) other.number = __ldcg(numbers + b * step + to - 1);
          if (before(list(type), other, element)) at[b] = to;
        }
      }
      u64 rank = i;
#pragma unroll
      for (u32 b = 0; b < FAN; b++) rank += at[b];
      if (rank >= take) continue;
      if (runs(type) <= FAN) {
        choose(type, rank, element.number);
      } else {
        a.keys_of[turn ^ 1][tile * THREADS + rank] = element.key;
        a.numbers_of[turn ^ 1][tile * THREADS + rank] = element.number;
      }
    }
  }
  // Chooses vertices of all types.
  __device__ void race(u32 iteration) {
    u64 tiles = sums_to(row_at, a.types, 0, [&](u32 t) { return samples(t, iteration) ? (n[t] + THREADS - 1) / THREADS : 0; });
    sort_tiles(iteration, tiles);
    grid_barrier(s.meeting);
    u64 most = 0;
    for (u32 t = 0; t < a.types; t++) most = max(most, row_at[t + 1] - row_at[t]);
    u32 turn = 0;
    for (u64 width = 1; width < most; width *= FAN, turn ^= 1) {
      merge(iteration, width, turn);
      grid_barrier(s.meeting);
    }
    for (u32 t = threadIdx.x; t < a.types; t += THREADS)
      if (row_at[t + 1] > row_at[t]) chosen[t] += __ldcg(a.taken + t);
    __syncthreads();
  }

  // ---- the batch -----------------------------------------------------------------------------

  // The rows of a relation in working memory: where those of each hop begin, their indptr, ids and edge ids. There are
  // more places than hops, of which rng.MaxHops is the limit.
  __device__ void open_rows(u32 relation) const {
    __syncthreads();
    for (u32 hop = threadIdx.x; hop < a.hops; hop += THREADS) {
      // Hops in their order are blocks from the last on.
      const u64* words = a.words + T::layout().block(a.hops - 1 - hop, relation);
      s.starts[hop] = words[BLOCK_FIRST_DST], s.degrees[hop] = words[BLOCK_INDPTR];
      s.states[hop] = words[BLOCK_INDICES], s.takes[hop] = words[BLOCK_EDGE_IDS];
    }
    __syncthreads();
  }
  // That of a chosen vertex by its place.
  struct Row {
    I* ids;
    const void* edge_ids;
    u64 count;
    bool last;  // its edges have vertices, not their numbers
  };
  __device__ Row row(u32 edge_id_bits, u64 place) const {
    u32 hop = find(s.starts, a.hops, place);
    const I* indptr = (const I*)(a.out + s.degrees[hop]) + (place - s.starts[hop]);
    u64 begin = (u64)indptr[0], end = (u64)indptr[1];
    return Row{(I*)(a.out + s.states[hop]) + begin, a.out + s.takes[hop] + begin * (edge_id_bits / 8), end - begin, hop + 1 == a.hops};
  }
  // The place of the vertex that an edge leads from; -1: it was not chosen.
  __device__ I place(u32 src, I of, bool last) const {
    if (last) {
      u64 word = T::map_of(src)[of];
      if (word >> 32 != a.tag) return -1;
      of = (I)(u32)word;
    }
    return (I)places(src)[of];
  }

  // Counts the edges of the rows of the block's slice that stay, which get the places of their vertices. How many
  // there are, in thread 0.
  __device__ u64 keep(u64 items, u64* counters) const {
    u64 mine = 0;
    u32 r, lane = threadIdx.x & 31;
    for (u64 i0 = lower(items), hi = upper(items), next; i0 < hi; i0 = next) {
      next = this->tile(i0, hi, r);
      u32 src = a.relations[r].src, bits = a.relations[r].out_edge_bits;
      auto kept = [&](const Row& own, u64 e) {
        I to = -1;
        if (e < own.count) own.ids[e] = to = place(src, own.ids[e], own.last);
        return to >= 0;
      };
      auto count = [&](u64 i, u64 stay) { s.offsets[i - i0] = stay, a.rows[i].x = stay; };
      open_rows(r);
      by_rows(
          i0, next, [&](u64 i) { return row(bits, i - row_at[r]).count; },
          [&](u64 i) {
            Row own = row(bits, i - row_at[r]);
            u64 stay = 0;
            for (u64 e = lane; e - lane < own.count; e += 32) stay += __popc(__ballot_sync(~0u, kept(own, e)));
            if (lane == 0) count(i, stay);
          },
          [&](u64 i) {
            Row own = row(bits, i - row_at[r]);
            u64 stay = 0;
            for (u64 e = threadIdx.x; e - threadIdx.x < own.count; e += THREADS) stay += __syncthreads_count(kept(own, e));
            if (threadIdx.x == 0) count(i, stay);
          });
      u64 all;
      rows_before(threadIdx.x < next - i0 ? s.offsets[threadIdx.x] : 0, all, s.parts);
      if (threadIdx.x == 0 && all) atomicAdd(counters + r, all);
      mine += all;
    }
    return threadIdx.x == 0 ? mine : 0;
  }
  // Writes the same rows. at: where the edges of the slice begin in the list of all.
  __device__ void write_rows(u64 items, u64 at) const {
    u32 r, lane = threadIdx.x & 31;
    for (u64 i0 = lower(items), hi = upper(items), next; i0 < hi; i0 = next) {
      next = this->tile(i0, hi, r);
      u64 i = i0 + threadIdx.x, all, offset = rows_before(i < next ? a.rows[i].x : 0, all, s.parts) + at - edge_at[r];
      if (i < next) ((I*)(a.batch + T::indptr_at(r)))[i - row_at[r]] = (I)offset;
      s.offsets[threadIdx.x] = offset;
      open_rows(r);
      I* ids = (I*)(a.batch + ids_at[r]);
      void* edge_ids = a.batch + T::edge_ids_at(r);
      u32 bits = a.relations[r].out_edge_bits;
      auto put = [&](const Row& own, u64 e, u64 to, I id) { ids[to] = id, write(edge_ids, bits, to, read(own.edge_ids, bits, e)); };
      by_rows(
          i0, next, [&](u64 i) { return row(bits, i - row_at[r]).count; },
          [&](u64 i) {
            Row own = row(bits, i - row_at[r]);
            u64 to = s.offsets[i - i0];
            for (u64 e = lane; e - lane < own.count; e += 32) {
              I id = e < own.count ? own.ids[e] : -1;
              u32 stay = __ballot_sync(~0u, id >= 0);
              if (id >= 0) put(own, e, to + __popc(stay & ((1u << lane) - 1)), id);
              to += __popc(stay);
            }
          },
          [&](u64 i) {
            Row own = row(bits, i - row_at[r]);
            u64 to = s.offsets[i - i0];
            for (u64 e = threadIdx.x; e - threadIdx.x < own.count; e += THREADS) {
              I id = e < own.count ? own.ids[e] : -1;
              u64 stay, before = rows_before(id >= 0, stay, s.parts);
              if (id >= 0) put(own, e, to + before, id);
              to += stay;
            }
          });
      at += all;
    }
  }
  // Copies a list, all blocks together.
  __device__ static void copy(char* to, const void* from, u64 count) {
    for (u64 i = lower(count) + threadIdx.x, hi = upper(count); i < hi; i += THREADS) ((I*)to)[i] = ((const I*)from)[i];
  }

  // Writes the batch.
  __device__ void finish() {
    u64 work = used, at, edges, most = 0;
    u32 relations = a.num_relations;
    for (u32 t = 0; t < a.types; t++) most = max(most, n[t]);
    for (u32 t = threadIdx.x; t < a.types; t += THREADS) rows[t] = chosen[t];
    __syncthreads();
    u64 items = sums_to(row_at, relations, 0, [&](u32 r) { return rows[a.relations[r].dst]; });
    if (items > a.row_capacity) return T::end(STATUS_TOO_SMALL, work);
    // The last hop has no first occurrences, so their counters are free, and zero.
    u64* counters = T::counts(a.hops) + max(a.types, relations);
    T::exchange(keep(items, counters), at, edges);
    sums_to(edge_at, relations, 0, [&](u32 r) { return load_relaxed(counters + r); });
    // The lists of seeds come first.
    const Layout l{1, a.types, relations};  // of a subgraph that was chosen
    u64 seeds_at = align64((u64)l.words() * 8), seed_bytes = 0;
    for (u32 t = 0; t < a.types; t++) seed_bytes += 2 * align64(a.kinds[t].seeds * WIDTH);
    used = sums_to(ids_at, relations, seeds_at + seed_bytes, [&](u32 r) {
      u64 own = edge_at[r + 1] - edge_at[r];
      return align64((rows[a.relations[r].dst] + 1) * WIDTH) + align64(own * WIDTH) + align64(own * (a.relations[r].out_edge_bits / 8));
    });
    for (u32 r = threadIdx.x; r < relations; r += THREADS) ids_at[r] += align64((rows[a.relations[r].dst] + 1) * WIDTH);
    __syncthreads();
    u64 lists = align64(used);
    used = lists;
    for (u32 t = 0; t < a.types; t++) used = (t ? align64(used) : used) + rows[t] * WIDTH;
    if (used > a.batch_capacity) return T::report(STATUS_TOO_SMALL, used);
    write_rows(items, at);
    u64* header = a.report + REPORT_HEADER;
    bool reporter = blockIdx.x == 0 && threadIdx.x == 0;
    for (u32 t = 0; t < a.types; t++) {
      const u64* about = a.words + l.type(t);
      u64 seeds = a.kinds[t].seeds, given_at = seeds_at + align64(seeds * WIDTH);
      copy(a.batch + seeds_at, a.out + about[TYPE_OUTPUT_INDEX], seeds);
      copy(a.batch + given_at, a.out + about[TYPE_OUTPUT_NODES], seeds);
      copy(a.batch + lists, chosen_list(t), rows[t]);
      if (reporter) {
        u64* words = header + l.type(t);
        for (u32 i = 0; i < TYPE_WORDS; i++) words[i] = 0;
        words[TYPE_NUM_OUTPUT] = seeds, words[TYPE_OUTPUT_INDEX] = seeds_at, words[TYPE_OUTPUT_NODES] = given_at;
        words[TYPE_NUM_NODES] = rows[t], words[TYPE_NODES] = lists;
        header[l.count(t, 0)] = a.words[T::layout().count(t, 0)], header[l.count(t, 1)] = rows[t];
      }
      seeds_at = given_at + align64(seeds * WIDTH), lists = align64(lists + rows[t] * WIDTH);
    }
    if (blockIdx.x == 0) {
      for (u32 r = threadIdx.x; r < relations; r += THREADS) {
        u32 dst = a.relations[r].dst;
        u64 *words = header + l.block(0, r), own = edge_at[r + 1] - edge_at[r];
        words[BLOCK_NUM_SRC] = rows[a.relations[r].src], words[BLOCK_NUM_DST] = rows[dst], words[BLOCK_NUM_EDGES] = own;
        words[BLOCK_INDPTR] = T::indptr_at(r), words[BLOCK_INDICES] = ids_at[r], words[BLOCK_EDGE_IDS] = T::edge_ids_at(r);
        words[BLOCK_FIRST_DST] = words[BLOCK_EDGE_WEIGHTS] = 0;
        ((I*)(a.batch + T::indptr_at(r)))[rows[dst]] = (I)own;
      }
      // Behind the words of the batch: the most vertices of a type that have numbers.
      if (threadIdx.x == 0) header[l.words()] = max(most, items);
      T::sign(header, l);
    }
    T::report(STATUS_OK, work);
  }

  __device__ void run() {
    for (u32 t = threadIdx.x; t < a.types; t += THREADS) n[t] = T::expanded[t] = chosen[t] = 0;
    __syncthreads();
    if (!T::plant(a.words)) return;
    for (u32 t = threadIdx.x; t < a.types; t += THREADS) chosen[t] = n[t];
    __syncthreads();
    for (u32 i = 0;; i++) {
      if (!T::sample(i, a.words)) return;
      if (i == a.iterations) return finish();
      grid_barrier(s.meeting);
      spend();
      grid_barrier(s.meeting);
      race(i);
    }
  }
};

template <typename I>
__device__ __forceinline__ void hgt(const HgtArgs& a) {
  extern __shared__ u64 tables[];
  __shared__ HeteroShared s;
  Hgt<I>(a, s, tables).run();
}

#define HGT(name, I) \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ HgtArgs a) { hgt<I>(a); }

HGT(hgt32, int)
HGT(hgt64, long long)
