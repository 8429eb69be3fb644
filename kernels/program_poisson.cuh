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

__device__ __forceinline__ u32 warp_or(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(~0u, x);
#else
  for (int d = 16; d; d >>= 1) x |= __shfl_xor_sync(~0u, x, d);
  return x;
#endif
}

template <PoissonValues VALUES>
struct Poisson {
  Machine& m;
  Batching b;

  // The columns of a hop.
  u32 n = 0, edges = 0;  // and how many edges they have
  Id* vertices = nullptr;
  u32* begins = nullptr;   // of each its first edge, and all
  ulonglong2* looks = nullptr;  // its first place, less that; and what the numbers of sources that stay are at most; ALL: any
  // The edges that stay.
  u32 base = 0, kept = 0;  // the rank of the first; how many
  Id* ids = nullptr;       // their sources' ids, then numbers
  uint2* words = nullptr;  // of 32 edges: those that stay, and the first one's column
  u32* ranks = nullptr;    // how many stay before them

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
  __device__ __forceinline__ void claim(u32 rank, Id v) { atomicMin(m.a.map + (u64)v, (u64)(m.a.tag - m.numberings) << 32 | rank); }
  __device__ __forceinline__ void give(Id v, u32 number) { m.a.map[(u64)v] = (u64)(m.a.tag - m.numberings) << 32 | number; }
  // How many edges stay before edge i.
  __device__ __forceinline__ u32 rank(u32 i) const { return i == edges ? kept : ranks[i / 32] + __popc(words[i / 32].x & ((1u << (i & 31)) - 1)); }

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
      claim(i, (Id)v);
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
      u32 lane = threadIdx.x & 31, ahead = next - i0;
      u32 begun = __ballot_sync(~0u, ahead < 32);
      if (!begun) return column;
      // Where columns begin among the warp's edges; where several do, all but the last are empty.
      u32 starts = warp_or(ahead < 32 ? 1u << ahead : 0), before = ~0u >> (31 - lane), c;
      if (__popc(starts) == __popc(begun) && begun != ~0u) {
        c = column + __popc(starts & before);
      } else {
        c = column_from(begins, n, column, min(i0 + lane, begins[n] - 1));
      }
      stand(__shfl_sync(~0u, c, 31));
      return c;
    }
  };

  // 2 x + 1 of a vertex.
  __device__ __forceinline__ u64 number_of(const Stream& stream, Id v) const {
    u64 of = sizeof(Id) == 4 ? (u32)v : (u64)v;
    return draw_bits(row_state(stream, of, [&](u32 round, int word) { return m.a.round_keys[round][word]; }), 0) >> 12 << 1 | 1;
  }
  // A bit for each edge, and the sum of those of all warps.
  __device__ __forceinline__ bool look(u32 site, Machine::Scan& scan) {
    words = m.take<uint2>((u64)edges / 32 + 1), ranks = m.take<u32>((u64)edges / 32 + 1);
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
          ulonglong2 own = i < mine.hi ? looks[c[j]] : make_ulonglong2(0, 0);
          to[j] = own.y;
          v[j] = i < mine.hi ? indices[own.x + i] : 0;
        }
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          if (i0 + 32 * j >= mine.hi) break;
          bool stays = to[j] == ALL;
          if (__any_sync(~0u, !stays && to[j])) stays = stays || number_of(stream, v[j]) <= to[j];
          u32 word = __ballot_sync(~0u, stays);
          if (lane == 0) words[i0 / 32 + j] = make_uint2(word, c[j]);
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

  // f(is, e, i, c) of edges that stay: their places among them, those among all, and their columns. A warp takes 32 words at a time,
  // and a lane AHEAD of their edges.
  template <class F>
  __device__ __forceinline__ void each_kept(u32 before, F f) {
    Machine::Span mine = m.span(edges);
    u32 lane = threadIdx.x & 31, at = before, end = mine.lo < mine.hi ? (mine.hi + 31) / 32 : 0;
#pragma unroll 1
    for (u32 w0 = mine.lo / 32; w0 < end; w0 += 32) {
      u32 w = w0 + lane, all;
      uint2 word = w < end ? words[w] : make_uint2(0, 0);
      u32 first = lanes_before(__popc(word.x), all);
      if (w < end) ranks[w] = at + first;
#pragma unroll 1
      for (u32 t0 = lane; t0 - lane < all; t0 += 32 * AHEAD) {
        bool is[AHEAD];
        u32 e[AHEAD], i[AHEAD], c[AHEAD];
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          u32 t = t0 + 32 * j, of = 0;
          is[j] = t < all, e[j] = at + t;
#pragma unroll
          for (u32 step = 16; step; step /= 2)
            if (__shfl_sync(~0u, first, of + step) <= t) of += step;
          u32 r = t - __shfl_sync(~0u, first, of), own = __shfl_sync(~0u, word.x, of);
          c[j] = __shfl_sync(~0u, word.y, of), i[j] = 32 * (w0 + of) + select(own, r);
        }
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++)
          if (is[j]) c[j] = column_from(begins, n, c[j], i[j]);
        f(is, e, i, c);
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
#pragma unroll 1
    for (u32 e0 = mine.lo; e0 < mine.hi; e0 += 32 * AHEAD) {
      Id v[AHEAD];
      u32 rank[AHEAD];
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++) v[j] = e0 + 32 * j + lane < mine.hi ? ids[e0 + 32 * j + lane] : 0;
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++) rank[j] = e0 + 32 * j + lane < mine.hi ? m.first(v[j]) : ~0u;
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++) {
        u32 e = e0 + 32 * j + lane;
        bool first = rank[j] == base + e;
        if (e < mine.hi && !first) ids[e] = ask(rank[j]);
        if (first && !last) degrees += degree(v[j]);
        u32 word = __ballot_sync(~0u, first);
        if (lane == 0 && e < mine.hi) marks[e / 32] = word;
        found += __popc(word);
      }
    }
    Sums all = m.sums(found, at_most(warp_sum(at_most(degrees))));
    Machine::Scan fresh, grown;
    if (!m.scanned(fresh, all, 0) || !m.scanned(grown, all, 1)) return false;
    u32 old = n, before = edges;
    if ((u64)before + grown.total >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, (u64)before + grown.total);
    u32 total = old + fresh.total;
    Id *list = last ? (Id*)b.put(WORD_NODES, total, sizeof(Id)) : m.take<Id>(total), *seen = vertices;
    u32 *to = last ? nullptr : m.take<u32>((u64)total + 1), *was = begins;
    ulonglong2 *look = last ? nullptr : m.take<ulonglong2>(total), *looked = looks;
    if (!b.fits()) return m.fail(STATUS_TOO_SMALL, b.size);
    if (!m.well()) return false;
    m.each(old, [&](u32 c) {
      list[c] = seen[c];
      if (last) return;
      u32 begin = was[c], end = c + 1 < old ? was[c + 1] : before;
      to[c] = begin, look[c] = make_ulonglong2(looked[c].x, bound(k, end - begin));
    });
    u32 number = old + fresh.before, at = before + grown.before;
#pragma unroll 1
    for (u32 e0 = mine.lo; e0 < mine.hi; e0 += 32 * AHEAD) {
      u32 word[AHEAD], degree[AHEAD];
      Id v[AHEAD];
      u64 start[AHEAD];
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++) word[j] = e0 + 32 * j < mine.hi ? marks[e0 / 32 + j] : 0;
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++)
        if (word[j] >> lane & 1) v[j] = ids[e0 + 32 * j + lane];
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++) {
        degree[j] = 0;
        if (!last && word[j] >> lane & 1) start[j] = m.start((u64)v[j]), degree[j] = (u32)(m.start((u64)v[j] + 1) - start[j]);
      }
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++) {
        u32 id = number + __popc(word[j] & ((1u << lane) - 1)), begin = at, sum = 0;
        if (!last) begin += lanes_before(degree[j], sum);
        number += __popc(word[j]), at += sum;
        if (!(word[j] >> lane & 1)) continue;
        list[id] = v[j], ids[e0 + 32 * j + lane] = (Id)id;
        if (last) continue;
        give(v[j], id);
        to[id] = begin, look[id] = make_ulonglong2(start[j] - begin, bound(k, degree[j]));
      }
    }
    if (!last && m.reporter()) to[total] = before + grown.total;
    n = total, edges = before + grown.total, vertices = list, begins = to, looks = look;
    m.barrier();
    return true;
  }
  // Gives the edges that ask another edge its number.
  __device__ __forceinline__ void settle(Id* ids, u32 kept) {
    Machine::Span mine = m.span(kept);
#pragma unroll 1
    for (u32 e0 = mine.lo + (threadIdx.x & 31); e0 < mine.hi; e0 += 32 * AHEAD) {
      Id id[AHEAD];
      bool is[AHEAD];
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++) id[j] = e0 + 32 * j < mine.hi ? ids[e0 + 32 * j] : 0;
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++) {
        is[j] = id[j] < 0;
        if (is[j]) id[j] = ids[-1 - (long long)id[j]];
      }
#pragma unroll
      for (u32 j = 0; j < AHEAD; j++)
        if (is[j]) ids[e0 + 32 * j] = id[j];
    }
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
      u32 about = HEADER_WORDS + BLOCK_WORDS * (hops - 1 - hop), columns = n;
      settle(asked, num_asked);
      Id* indptr = (Id*)b.put(about + BLOCK_INDPTR, (u64)n + 1, sizeof(Id));
      Machine::Scan scan;
      if (!look(m.a.sites[hop], scan)) return;
      ids = (Id*)b.put(about + BLOCK_INDICES, kept, sizeof(Id));
      void* edge_ids = b.put(about + BLOCK_EDGE_IDS, kept, PROGRAM_OUT_EDGE_BITS / 8);
      float* values = VALUES ? (float*)b.put(about + BLOCK_EDGE_WEIGHTS, kept, 4) : nullptr;
      b.set(about + BLOCK_NUM_DST, n), b.set(about + BLOCK_NUM_EDGES, kept);
      if (!b.fits()) return (void)m.fail(STATUS_TOO_SMALL, b.size);
      const Id* indices = (const Id*)m.a.indices;
      each_kept(scan.before, [&](const bool(&is)[AHEAD], const u32(&e)[AHEAD], const u32(&i)[AHEAD], const u32(&c)[AHEAD]) {
        ulonglong2 own[AHEAD];
        Id v[AHEAD];
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++)
          if (is[j]) own[j] = looks[c[j]];
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++)
          if (is[j]) v[j] = indices[own[j].x + i[j]];
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          if (!is[j]) continue;
          ids[e[j]] = v[j];
          write(edge_ids, PROGRAM_OUT_EDGE_BITS, e[j], m.edge_id((Place)(own[j].x + i[j])));
          claim(base + e[j], v[j]);
          if (VALUES && own[j].y == ALL) values[e[j]] = 1;
          else if (VALUES == OF_CHANCES) values[e[j]] = single(op_div(1.0, chance(k, begins[c[j] + 1] - begins[c[j]])));
        }
      });
      m.barrier();
      m.each(columns + 1, [&](u32 c) { indptr[c] = (Id)rank(begins[c]); });
      if (VALUES == OF_MEANS) {
        m.each_warp(columns, [&](u32 c) {
          u32 lo = rank(begins[c]), hi = rank(begins[c + 1]);
          if (looks[c].y == ALL || lo == hi) return;
          double x = op_div(1.0, chance(k, begins[c + 1] - begins[c]));
          double sum = warp_sum_of(lo, hi, [&](u32) { return x; });
          for (u32 e = lo + (threadIdx.x & 31); e < hi; e += 32) values[e] = single(op_mul(x, op_div((double)(hi - lo), sum)));
        });
      }
      bool last = hop + 1 == hops;
      if (!number(last, last ? 0 : fanouts[hop + 1])) return;
      b.set(about + BLOCK_NUM_SRC, n);
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
