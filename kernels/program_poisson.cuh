// Hops whose edges stay by a chance of their destination, an edge where the number of its source is at most that: LABOR-0 of a
// graph without weights, whose chance is k over the degree. The steps of any program make the same batch; here they are one pass
// over all edges of a hop, and three over those that stay. Go: source.Poisson, passes.Poisson.
//
// The columns of a hop are the vertices numbered so far. What a hop looks at, all of their in-edges one behind another, is shared
// out in equal parts, whatever columns they are of; a bit says which stay.
//
// Phases of a hop:
//   look     edges: the number of the source, a bit; how many stay                           sum
//   emit     those that stay: ids, places, claims                                            barrier
//   check    those that stay: a first occurrence where the map still holds its rank; the
//            degrees of the vertices that are new                                            sum
//   number   first occurrences get their numbers, in order, and their columns are read       barrier
//   settle   (while the next hop looks) edges that asked another one get its number
// The seeds are numbered as the edges of a hop before the first.
#pragma once
#include "program_labor.cuh"
#include "program_result.cuh"

// What is written beside the edges that stay: nothing, one over their chance, or that over its mean in a column.
enum PoissonValues { NO_VALUES, OF_CHANCES, OF_MEANS };

template <PoissonValues VALUES>
struct Poisson {
  Machine& m;
  Batching b;

  // The columns of a hop.
  u32 n = 0, edges = 0;  // and how many edges they have
  Id* vertices = nullptr;
  u32* begins = nullptr;   // of each its first edge, and all
  Place* from = nullptr;   // its first place, less that
  u64* most = nullptr;     // what the numbers of sources that stay are at most; ALL: any
  // The edges that stay.
  u32 base = 0, kept = 0;  // the rank of the first; how many
  Id* ids = nullptr;       // their sources' ids, then numbers
  u32 *bits = nullptr, *ranks = nullptr, *of_word = nullptr;  // of 32 edges: those that stay, how many do before them, a column
  u32* firsts = nullptr;   // of 32 that stay: first occurrences

  static constexpr u64 ALL = ~0ull;
  static constexpr u32 AHEAD = 4;  // words of edges that a warp has on their way

  __device__ __forceinline__ Poisson(Machine& m) : m(m), b(m, m.a.hops, 0) { m.numberings = 1; }

  __device__ __forceinline__ static double chance(long long k, u32 degree) {
    return k < 0 ? 1 : op_min(op_div((double)k, (double)degree), 1.0);
  }
  // A number (2 x + 1) / 2^53 is at most the chance where 2 x + 1 is at most this.
  __device__ __forceinline__ static u64 bound(long long k, u32 degree) {
    double p = chance(k, degree);
    return p >= 1 ? ALL : (u64)__dmul_rn(p, 0x1p53);
  }
  // What stands for the number of a source that is not new with its edge: the number, or -1 - e where edge e has it.
  __device__ __forceinline__ Id ask(u32 rank) const { return rank < base ? (Id)rank : (Id)(-1 - (long long)(rank - base)); }
  __device__ __forceinline__ void give(Id v, u32 number) { m.a.map[(u64)v] = (u64)(m.a.tag - m.numberings) << 32 | number; }
  // How many edges stay before edge i.
  __device__ __forceinline__ u32 rank(u32 i) const { return i == edges ? kept : ranks[i / 32] + __popc(bits[i / 32] & ((1u << (i & 31)) - 1)); }

  // ---- seeds -----------------------------------------------------------------------------------

  __device__ __forceinline__ bool seeds(Id*& given) {
    kept = (u32)m.a.num_seeds;
    ids = (Id*)b.put(WORD_OUTPUT_INDEX, kept, sizeof(Id));
    given = m.take<Id>(kept);
    if (!b.fits()) return m.fail(STATUS_TOO_SMALL, b.size);
    if (!m.well()) return false;
    m.each(kept, [&](u32 i) {
      u64 v = read(m.a.seeds, m.a.seed_bits, i);
      if (v >= m.a.num_nodes) {
        atomicMin(m.a.bad_seed, (u64)i);
        v = 0;  // any vertex: the batch will be refused
      }
      ids[i] = given[i] = (Id)v;
      m.claim_one(i, (Id)v);
    });
    m.barrier();
    u64 bad = load_relaxed(m.a.bad_seed);
    return bad == ~0ull || m.fail(STATUS_SEED_OUT_OF_RANGE, bad);
  }

  // ---- edges -----------------------------------------------------------------------------------

  // The columns of a warp's edges, 32 at a time.
  struct Cursor {
    const u32* begins;
    u32 n, column, next;  // the column of the first edge; of each lane the begin of a later one

    __device__ __forceinline__ Cursor(const u32* begins, u32 n, u32 edge) : begins(begins), n(n) { stand(column_of(begins, n, edge)); }
    __device__ __forceinline__ void stand(u32 at) {
      column = at;
      next = begins[min(at + 1 + (threadIdx.x & 31), n)];
    }
    // The column of the lane's edge, i0 + lane; edges beyond the last one have any.
    __device__ __forceinline__ u32 at(u32 i0) {
      u32 lane = threadIdx.x & 31, i = i0 + lane, ahead = 0;
      if (__shfl_sync(~0u, next, 0) > i0 + 31) return column;
#pragma unroll
      for (u32 step = 16; step; step /= 2)
        if (__shfl_sync(~0u, next, ahead + step - 1) <= i) ahead += step;
      u32 c = min(column + ahead, n - 1);
      // Many columns without edges.
      if (__shfl_sync(~0u, next, 31) <= i && c + 1 < n) c = column_from(begins, n, c, i);
      stand(__shfl_sync(~0u, c, 31));
      return c;
    }
  };

  // A bit for each edge, and the sum of those of all warps.
  __device__ __forceinline__ bool look(u32 site, Machine::Scan& scan) {
    bits = m.take<u32>((u64)edges / 32 + 1), ranks = m.take<u32>((u64)edges / 32 + 1), of_word = m.take<u32>((u64)edges / 32 + 1);
    if (!m.well()) return false;
    const Id* indices = (const Id*)m.a.indices;
    Stream stream = m.stream(site, PURPOSE_CANDIDATES);
    Machine::Span mine = m.span(edges);
    u32 lane = threadIdx.x & 31, own = 0;
    if (mine.lo < mine.hi) {
      Cursor cursor(begins, n, mine.lo);
#pragma unroll 1
      for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 32 * AHEAD) {
        u32 c[AHEAD];
        u64 to[AHEAD];
        Id v[AHEAD];
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          c[j] = i0 + 32 * j < mine.hi ? cursor.at(i0 + 32 * j) : 0;
          u32 i = i0 + 32 * j + lane;
          to[j] = i < mine.hi ? most[c[j]] : 0;
          v[j] = i < mine.hi ? indices[from[c[j]] + (Place)i] : 0;
        }
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          if (i0 + 32 * j >= mine.hi) break;
          bool stays = to[j] == ALL;
          if (__any_sync(~0u, !stays && to[j])) stays = stays || (draw_bits(row_state(stream, (u64)v[j]), 0) >> 12 << 1 | 1) <= to[j];
          u32 word = __ballot_sync(~0u, stays);
          if (lane == 0) bits[i0 / 32 + j] = word, of_word[i0 / 32 + j] = c[j];
          own += __popc(word);
        }
      }
    }
    if (!m.scanned(scan, m.sum(own))) return false;
    kept = scan.total;
    return (u64)base + kept < TOO_MUCH || m.fail(STATUS_TOO_MANY_EDGES, (u64)base + kept);
  }

  // Where the r-th bit of a word is that is set.
  __device__ __forceinline__ static u32 select(u32 word, u32 r) {
    u32 at = 0;
#pragma unroll
    for (u32 width = 16; width; width /= 2) {
      u32 low = __popc(word >> at & ((1u << width) - 1));
      if (r >= low) r -= low, at += width;
    }
    return at;
  }

  // f(e, i, c) of each edge that stays: its place among them, that among all, and its column. A warp takes 32 words at a time.
  template <class F>
  __device__ __forceinline__ void each_kept(u32 before, F f) {
    Machine::Span mine = m.span(edges);
    u32 lane = threadIdx.x & 31, at = before, words = mine.lo < mine.hi ? (mine.hi + 31) / 32 : 0;
#pragma unroll 1
    for (u32 w0 = mine.lo / 32; w0 < words; w0 += 32) {
      u32 w = w0 + lane, word = w < words ? bits[w] : 0, column = w < words ? of_word[w] : 0, all;
      u32 first = lanes_before(__popc(word), all);
      if (w < words) ranks[w] = at + first;
#pragma unroll 1
      for (u32 t0 = 0; t0 < all; t0 += 32) {
        u32 t = t0 + lane, of = 0;
#pragma unroll
        for (u32 step = 16; step; step /= 2)
          if (__shfl_sync(~0u, first, of + step) <= t) of += step;
        u32 r = t - __shfl_sync(~0u, first, of), own = __shfl_sync(~0u, word, of), c = __shfl_sync(~0u, column, of);
        if (t >= all) continue;
        u32 i = 32 * (w0 + of) + select(own, r);
        f(at + t, i, column_from(begins, n, c, i));
      }
      at += all;
    }
  }

  // ---- numbers ---------------------------------------------------------------------------------

  // Numbers the first occurrences among ids[0, kept), which have been claimed; and the columns of the next hop, of which k edges
  // stay, or the list of all vertices.
  __device__ __forceinline__ bool number(bool last, long long k) {
    u32* marks = m.take<u32>((u64)kept / 32 + 1);
    if (!m.well()) return false;
    u32 lane = threadIdx.x & 31, found = 0;
    u64 degrees = 0;
    Machine::Span mine = m.span(kept);
    auto degree = [&](Id v) { return m.start((u64)v + 1) - m.start((u64)v); };
#pragma unroll 2
    for (u32 e0 = mine.lo; e0 < mine.hi; e0 += 32) {
      u32 e = e0 + lane;
      bool is = e < mine.hi, first = false;
      if (is) {
        Id v = ids[e];
        u32 rank = m.first(v);
        first = rank == base + e;
        if (!first) ids[e] = ask(rank);
        else if (!last) degrees += degree(v);
      }
      u32 word = __ballot_sync(~0u, first);
      if (lane == 0) marks[e0 / 32] = word;
      found += __popc(word);
    }
    firsts = marks;
    Sums all = m.sums(found, at_most(warp_sum(at_most(degrees))));
    Machine::Scan fresh, grown;
    if (!m.scanned(fresh, all, 0) || !m.scanned(grown, all, 1)) return false;
    u32 old = n, before = edges;
    if ((u64)before + grown.total >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, (u64)before + grown.total);
    u32 total = old + fresh.total;
    Id *list = last ? (Id*)b.put(WORD_NODES, total, sizeof(Id)) : m.take<Id>(total), *seen = vertices;
    u32 *to = last ? nullptr : m.take<u32>((u64)total + 1), *was = begins;
    Place *place = last ? nullptr : m.take<Place>(total), *places = from;
    u64* bounds = last ? nullptr : m.take<u64>(total);
    if (!b.fits()) return m.fail(STATUS_TOO_SMALL, b.size);
    if (!m.well()) return false;
    m.each(old, [&](u32 c) {
      list[c] = seen[c];
      if (last) return;
      u32 begin = was[c], end = c + 1 < old ? was[c + 1] : before;
      to[c] = begin, place[c] = places[c], bounds[c] = bound(k, end - begin);
    });
    u32 number = old + fresh.before, at = before + grown.before;
#pragma unroll 1
    for (u32 e0 = mine.lo; e0 < mine.hi; e0 += 32) {
      u32 word = marks[e0 / 32], own = 0, sum, id = number + __popc(word & ((1u << lane) - 1));
      bool first = word >> lane & 1;
      Id v = 0;
      u64 start = 0;
      if (first) {
        v = ids[e0 + lane];
        list[id] = v, ids[e0 + lane] = (Id)id;
        if (!last) give(v, id), start = m.start((u64)v), own = (u32)(m.start((u64)v + 1) - start);
      }
      number += __popc(word);
      if (last) continue;
      u32 begin = at + lanes_before(own, sum);
      if (first) to[id] = begin, place[id] = (Place)start - (Place)begin, bounds[id] = bound(k, own);
      at += sum;
    }
    if (!last && m.reporter()) to[total] = before + grown.total;
    n = total, edges = before + grown.total, vertices = list, begins = to, from = place, most = bounds;
    m.barrier();
    return true;
  }
  // Gives the edges that ask another edge its number.
  __device__ __forceinline__ void settle(Id* ids, u32 kept) {
    m.each(kept, [&](u32 e) {
      Id id = ids[e];
      if (id < 0) ids[e] = ids[-1 - (long long)id];
    });
  }

  // ---- all hops --------------------------------------------------------------------------------

  __device__ __forceinline__ void run() {
    const u32 hops = m.a.hops;
    const long long* fanouts = m.a.fanouts;
    Id *given, *asked;
    if (!seeds(given) || !number(false, fanouts[0])) return;
    u32 distinct = n, num_asked = kept;
    asked = ids, base = kept;
#pragma unroll 1
    for (u32 hop = 0; hop < hops; hop++) {
      const long long k = fanouts[hop];
      u32 words = HEADER_WORDS + BLOCK_WORDS * (hops - 1 - hop), columns = n;
      settle(asked, num_asked);
      Id* indptr = (Id*)b.put(words + BLOCK_INDPTR, (u64)n + 1, sizeof(Id));
      Machine::Scan scan;
      if (!look(m.a.sites[hop], scan)) return;
      ids = (Id*)b.put(words + BLOCK_INDICES, kept, sizeof(Id));
      void* edge_ids = b.put(words + BLOCK_EDGE_IDS, kept, PROGRAM_OUT_EDGE_BITS / 8);
      float* values = VALUES ? (float*)b.put(words + BLOCK_EDGE_WEIGHTS, kept, 4) : nullptr;
      b.set(words + BLOCK_NUM_DST, n), b.set(words + BLOCK_NUM_EDGES, kept);
      if (!b.fits()) return (void)m.fail(STATUS_TOO_SMALL, b.size);
      const Id* indices = (const Id*)m.a.indices;
      each_kept(scan.before, [&](u32 e, u32 i, u32 c) {
        Place p = from[c] + (Place)i;
        Id v = indices[p];
        ids[e] = v;
        write(edge_ids, PROGRAM_OUT_EDGE_BITS, e, m.edge_id(p));
        m.claim_one(base + e, v);
        if (VALUES && most[c] == ALL) values[e] = 1;
        else if (VALUES == OF_CHANCES) values[e] = single(op_div(1.0, chance(k, begins[c + 1] - begins[c])));
      });
      m.barrier();
      m.each(columns + 1, [&](u32 c) { indptr[c] = (Id)rank(begins[c]); });
      if (VALUES == OF_MEANS) {
        m.each_warp(columns, [&](u32 c) {
          u32 lo = rank(begins[c]), hi = rank(begins[c + 1]);
          if (most[c] == ALL || lo == hi) return;
          double x = op_div(1.0, chance(k, begins[c + 1] - begins[c]));
          double sum = warp_sum_of(lo, hi, [&](u32) { return x; });
          for (u32 e = lo + (threadIdx.x & 31); e < hi; e += 32) values[e] = single(op_mul(x, op_div((double)(hi - lo), sum)));
        });
      }
      bool last = hop + 1 == hops;
      if (!number(last, last ? 0 : fanouts[hop + 1])) return;
      b.set(words + BLOCK_NUM_SRC, n);
      asked = ids, num_asked = kept, base += kept;
    }
    settle(asked, num_asked);
    b.set(WORD_NUM_NODES, n);
    u32 count = (u32)m.a.num_seeds;
    if (distinct != count) {
      Id* to = (Id*)b.put(WORD_OUTPUT_NODES, count, sizeof(Id));
      if (b.fits()) m.each(count, [&](u32 i) { to[i] = given[i]; });
    } else {
      b.set(WORD_OUTPUT_NODES, (u64)((char*)vertices - m.a.out));
    }
    b.end();
  }
};
