// Hops of Poisson sampling: an edge is selected if the number of its source is at most the edge's
// chance, as in LABOR on a graph without weights. For LABOR-0 the chance belongs to the destination,
// k over the degree; for LABOR-i it is min(1, c pi), with pi of the source. The general steps of a
// program sample the same batch; this file needs one or two scans over all edges of a hop, and three
// over the selected ones.
//
// Source: M. F. Balin, U. V. Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion
// in GNNs", NeurIPS 2023. Go: source.Poisson, passes.Poisson. Go twin: internal/program/run.
//
// The columns of a hop are the nodes numbered so far. All of their in-edges, one column after
// another, are distributed to warps in equal parts, across columns. The number of selected edges of
// a part varies much: all of a short column, a few of a hub's million. So a warp writes them into
// pieces of one stage, and the pieces are distributed again.
//
// Phases of a hop:
//   raise    LABOR-i, edges: pi of the source is at least the factor of the destination    barrier
//   search   LABOR-i, columns: the factor c, and a bit for each selected edge              barrier;
//            more for long columns (both phases again for each round)
//   look     edges: the number of the source; a bit, a position in a piece, and counts     sum
//   place    parts: the number of selected edges before each 32 edges                      barrier
//   emit     pieces: ids, positions, claims                                                barrier
//   check    selected edges: a first occurrence if the map still holds its rank; the
//            degrees of new nodes                                                          sum
//   number   first occurrences get their numbers, in order, and their columns are read     barrier
//   settle   (while the next hop looks) edges that refer to another edge get its number
// The seeds are numbered as the edges of a hop before the first.
#pragma once
#include "program/labor.cuh"
#include "program/result.cuh"

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

// Edges that stay, in pieces: those of a warp, in their order, fill one after another.
struct Pieces {
  static constexpr u32 SIZE = 128;
  struct Piece {
    u32 warp, first, n, unused[13];  // the rank of its first edge among those of its warp; how many there are
    u32 edge[SIZE], column[SIZE];
    Id source[SIZE];
  };
  Piece* all;
  u64 room;
  u32* taken;  // how many there are beside the first one of each warp
};

template <PoissonValues VALUES, bool IMPORTANCE>
struct Poisson {
  Machine& m;
  Batching b;

  // The columns of a hop.
  u32 n = 0, edges = 0;  // and how many edges they have
  Id* vertices = nullptr;
  u32* begins = nullptr;   // of each its first edge, and all
  ulonglong2* looks = nullptr;  // its first place, less that; and what the numbers of sources that stay are at most; ALL: any. Of
                                // LABOR-i its factor before the search
  // The edges that stay.
  u32 base = 0, kept = 0;  // the rank of the first; how many
  Id* ids = nullptr;       // their sources' ids, then numbers
  uint2* words = nullptr;  // of 32 edges: those that stay, and how many do before them
  float* values = nullptr; // of each column what its edges have, of chances
  u32* earlier = nullptr;  // of each warp how many stay before its edges
  Pieces pieces;
  // Of LABOR-i.
  u64 *pi = nullptr, *most = nullptr;  // by vertex: pi, and the largest factor of a round
  const double* factors = nullptr;     // of each column

  static constexpr u64 ALL = ~0ull;
  static constexpr u32 AHEAD = 4;  // words of edges that a warp has on their way

  __device__ __forceinline__ Poisson(Machine& m) : m(m), b(m, m.a().hops, 0) { m.set(m.now().numberings, 1u); }

  __device__ __forceinline__ static double chance(long long k, u32 degree) {
    return k < 0 ? 1 : op_min(op_div((double)k, (double)degree), 1.0);
  }
  // A number (2 x + 1) / 2^53 is at most the chance where 2 x + 1 is at most this.
  __device__ __forceinline__ static u64 bound(double p) {
    return p >= 1 ? ALL : (u64)__dmul_rn(p, 0x1p53);
  }
  // What stands for the number of a source that is not new with its edge: the number, or -1 - e where edge e has it.
  __device__ __forceinline__ Id ask(u32 rank) const { return rank < base ? (Id)rank : (Id)(-1 - (long long)(rank - base)); }
  __device__ __forceinline__ void claim(u32 rank, Id v) { atomicMin(m.a().map + (u64)v, m.numbering() | rank); }
  __device__ __forceinline__ void give(Id v, u32 number) { m.a().map[(u64)v] = m.numbering() | number; }
  // How many edges stay before edge i.
  __device__ __forceinline__ u32 rank(u32 i) const { return i == edges ? kept : words[i / 32].y + __popc(words[i / 32].x & ((1u << (i & 31)) - 1)); }

  // ---- seeds -----------------------------------------------------------------------------------

  __device__ __forceinline__ bool seeds(Id*& given) {
    kept = (u32)m.a().num_seeds;
    ids = (Id*)b.put(WORD_OUTPUT_INDEX, kept, sizeof(Id));
    given = m.take<Id>(kept);
    if (!b.fits()) return m.fail(STATUS_TOO_SMALL, b.size);
    if (!m.well()) return false;
    m.each(m.a().num_cells, [&](u32 i) { m.a().cells[i] = 0; });
    m.each(kept, [&](u32 i) {
      u64 v = read(m.a().seeds, m.a().seed_bits, i);
      if (v >= m.a().num_nodes) {
        atomicMin(m.a().bad_seed, (u64)i);
        v = 0;  // any vertex: the batch will be refused
      }
      ids[i] = given[i] = (Id)v;
      claim(i, (Id)v);
    });
    m.barrier();
    u64 bad = load_relaxed(m.a().bad_seed);
    return bad == ~0ull || m.fail(STATUS_SEED_OUT_OF_RANGE, bad);
  }

  // ---- LABOR-i ---------------------------------------------------------------------------------

  __device__ __forceinline__ static double capped(double x) { return op_min(x, LABOR_LARGE); }
  __device__ __forceinline__ static double chance_of(double pi, double c) { return op_min(op_mul(pi, capped(c)), 1.0); }
  __device__ __forceinline__ double chance_of(u32 column, Id v) const { return chance_of(of_bits(pi[(u64)v]), factors[column]); }

  // What vertices have becomes at least what the columns of their edges have.
  template <class Of>
  __device__ __forceinline__ void raise(u64* to, Of of) {
    const Id* indices = (const Id*)m.a().indices;
    Machine::Span mine = m.span(edges);
    if (mine.lo < mine.hi) {
      Cursor cursor(begins, n, mine.lo);
#pragma unroll 1
      for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 32 * AHEAD) {
        u64 own[AHEAD], seen[AHEAD];
        Id v[AHEAD];
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          u32 i = i0 + 32 * j + (threadIdx.x & 31), c = i0 + 32 * j < mine.hi ? cursor.at(i0 + 32 * j) : 0;
          own[j] = i < mine.hi ? of(c) : 0;
          v[j] = i < mine.hi ? indices[looks[c].x + i] : 0;
        }
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) seen[j] = own[j] ? load_relaxed(to + (u64)v[j]) : ~0ull;
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++)
          if (seen[j] < own[j]) atomicMax(to + (u64)v[j], own[j]);
      }
    }
    m.barrier();
  }
  // Notes which edges stay, once all factors are known.
  struct Stays {
    static const bool USES = true;
    const ulonglong2* looks;
    uint2* words;
    Stream stream;
    bool last;
    __device__ __forceinline__ void operator()(u32 i0, bool is, u32 column, double q, double c) const {
      if (!last) return;
      u32 lane = threadIdx.x & 31;
      u64 to = is ? bound(chance_of(q, c)) : 0;
      bool stays = to == ALL;
      if (__any_sync(~0u, !stays && to))
        stays = stays || (to && number_of(stream, ((const Id*)Machine::a().indices)[looks[column].x + i0 + lane]) <= to);
      u32 word = __ballot_sync(~0u, stays), by = i0 & 31;
      if (lane || !word) return;
      atomicOr(&words[i0 / 32].x, word << by);
      if (by && word >> (32 - by)) atomicOr(&words[i0 / 32 + 1].x, word >> (32 - by));
    }
  };
  // In rounds: pi, the factors, and a bit for each edge that stays.
  __device__ __forceinline__ bool search(u32 site, long long k) {
    raise(pi, [&](u32 c) { return looks[c].y; });
    u64 used = m.now().used;
    u32 *counters = m.counters(SEARCH_CELLS), cells = m.now().cells - SEARCH_CELLS, rounds = m.a().rounds;
    Edges all{edges, List{n, nullptr}, begins};
#pragma unroll 1
    for (u32 round = 1;; round++) {
      double2* notes = m.take<double2>(edges);
      if (!m.well()) return false;
      auto q = [pi = pi, looks = looks](u32 i, u32 column) {
        return of_bits(load_relaxed(pi + (u64)((const Id*)Machine::a().indices)[looks[column].x + i]));
      };
      m.set(m.now().cells, cells);
      Stays stays{looks, words, m.stream(site, PURPOSE_CANDIDATES), round == rounds};
      if (!factors_of(m, factors, all, LaborSearch<Ones, decltype(q)>{k, Ones(), q, notes}, stays)) return false;
      m.sync();
      if (round == rounds) return true;
      raise(most, [&](u32 c) { return bits_of(capped(factors[c])); });
      m.each((u32)m.a().num_nodes, [&](u32 v) { pi[v] = bits_of(capped(op_mul(of_bits(pi[v]), of_bits(most[v])))), most[v] = 0; });
      m.each(SEARCH_CELLS, [&](u32 i) { counters[i] = 0; });
      m.barrier();
      // What a round takes the next one has.
      m.set(m.now().used, used);
    }
  }

  // ---- edges -----------------------------------------------------------------------------------

  // The columns of a warp's edges, 32 at a time: a lane has where one of the next 32 columns begins.
  struct Cursor {
    const u32* begins;
    u32 n, column, next;

    __device__ __forceinline__ Cursor(const u32* begins, u32 n, u32 edge) : begins(begins), n(n) { stand(column_of(begins, n, edge)); }
    __device__ __forceinline__ void stand(u32 at) {
      column = at;
      next = begins[min(at + 1 + (threadIdx.x & 31), n)];
    }
    // The column of the lane's edge, i0 + lane; edges beyond the last one have any.
    __device__ __forceinline__ u32 at(u32 i0) {
      u32 lane = threadIdx.x & 31, end = i0 + 32;
      u32 begun = __ballot_sync(~0u, next < end), past = __popc(__ballot_sync(~0u, next < i0));
      if (begun == ~0u) {
        stand(column + past);
        begun = __ballot_sync(~0u, next < end), past = __popc(__ballot_sync(~0u, next < i0));
      }
      u32 here = __popc(begun) - past;
      if (!here && begun != ~0u) return column + past;
      u32 starts = warp_or(next >= i0 && next < end ? 1u << (next - i0) : 0);
      // Columns without edges begin where the next one does.
      if (__popc(starts) != here || begun == ~0u) {
        u32 c = column_from(begins, n, column, min(i0 + lane, begins[n] - 1));
        stand(__shfl_sync(~0u, c, 31));
        return c;
      }
      return column + past + __popc(starts & ~0u >> (31 - lane));
    }
  };

  // 2 x + 1 of a vertex.
  __device__ __forceinline__ static u64 number_of(const Stream& stream, Id v) {
    u64 of = sizeof(Id) == 4 ? (u32)v : (u64)v;
    return draw_bits(row_state(stream, of), 0) >> 12 << 1 | 1;
  }
  // A bit for each edge, and the sum of those of all warps.
  __device__ __forceinline__ bool look(u32 site, Machine::Scan& scan) {
    u32 warps = gridDim.x * PROGRAM_WARPS, warp = blockIdx.x * PROGRAM_WARPS + (threadIdx.x >> 5), lane = threadIdx.x & 31, own = 0;
    if (!IMPORTANCE) words = m.take<uint2>((u64)edges / 32 + 1);
    earlier = m.take<u32>(warps);
    if (!m.well()) return false;
    // How many pieces there will be nobody knows: they have all that is left.
    pieces.all = (Pieces::Piece*)(m.a().work + m.now().used), pieces.room = (m.a().work_bytes - m.now().used) / sizeof(Pieces::Piece);
    const Id* indices = (const Id*)m.a().indices;
    pieces.taken = m.counters(4);
    Stream stream = m.stream(site, PURPOSE_CANDIDATES);
    Machine::Span mine = m.span(edges);
    u32 piece = warp, filled = 0;
    if (mine.lo < mine.hi) {
      Cursor cursor(begins, n, mine.lo);
#pragma unroll 1
      for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 32 * AHEAD) {
        u32 c[AHEAD];
        u64 to[AHEAD];
        Id v[AHEAD];
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) c[j] = i0 + 32 * j < mine.hi ? cursor.at(i0 + 32 * j) : 0;
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          u32 i = i0 + 32 * j + lane;
          bool is = i < mine.hi;
          if (IMPORTANCE) is = is && words[i / 32].x >> (i & 31) & 1;
          ulonglong2 column = is ? looks[c[j]] : make_ulonglong2(0, 0);
          to[j] = IMPORTANCE && is ? ALL : column.y;
          v[j] = is ? indices[column.x + i] : 0;
        }
#pragma unroll
        for (u32 j = 0; j < AHEAD; j++) {
          if (i0 + 32 * j >= mine.hi) break;
          bool stays = to[j] == ALL;
          if (!IMPORTANCE && __any_sync(~0u, !stays && to[j])) stays = stays || number_of(stream, v[j]) <= to[j];
          u32 word = __ballot_sync(~0u, stays), count = __popc(word);
          if (lane == 0) words[i0 / 32 + j] = make_uint2(word, own);
          own += count;
          if (!count) continue;
          u32 slot = filled + __popc(word & ((1u << lane) - 1)), into = piece;
          filled += count;
          if (filled > Pieces::SIZE) {
            close(piece, own - filled, Pieces::SIZE);
            u32 fresh = lane == 0 ? warps + atomicAdd(pieces.taken, 1u) : 0;
            piece = __shfl_sync(~0u, fresh, 0), filled -= Pieces::SIZE;
            if (slot >= Pieces::SIZE) into = piece, slot -= Pieces::SIZE;
          }
          if (!stays || into >= pieces.room) continue;
          Pieces::Piece& of = pieces.all[into];
          of.edge[slot] = i0 + 32 * j + lane, of.column[slot] = c[j], of.source[slot] = v[j];
        }
      }
    }
    close(piece, own - filled, filled);
    if (!m.scanned(scan, m.sum(own))) return false;
    kept = scan.total;
    if ((u64)base + kept >= TOO_MUCH) return m.fail(STATUS_TOO_MANY_EDGES, (u64)base + kept);
    m.take<Pieces::Piece>((u64)warps + load_relaxed(pieces.taken));
    return m.well();
  }
  __device__ __forceinline__ void close(u32 piece, u32 first, u32 n) {
    if ((threadIdx.x & 31) || piece >= pieces.room) return;
    Pieces::Piece& of = pieces.all[piece];
    of.warp = blockIdx.x * PROGRAM_WARPS + (threadIdx.x >> 5), of.first = first, of.n = n;
  }
  // How many edges stay before a warp's, and before each 32 of them.
  __device__ __forceinline__ void place(const Machine::Scan& scan) {
    Machine::Span mine = m.span(edges);
    u32 lane = threadIdx.x & 31;
    if (lane == 0) earlier[blockIdx.x * PROGRAM_WARPS + (threadIdx.x >> 5)] = scan.before;
    u32 end = (mine.hi + 31) / 32;
    if (mine.lo < mine.hi)
      for (u32 w = mine.lo / 32 + lane; w < end; w += 32) words[w].y += scan.before;
    m.barrier();
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
    float* value = last || IMPORTANCE || VALUES != OF_CHANCES ? nullptr : m.take<float>(total);
    if (IMPORTANCE && !last) words = m.take<uint2>((u64)(before + grown.total) / 32 + 1);
    auto about = [&](u32 c, u64 from, u32 degree) {
      if (IMPORTANCE) {
        look[c] = make_ulonglong2(from, bits_of(capped(factor_of_ones(k, degree))));
        return;
      }
      double p = chance(k, degree);
      look[c] = make_ulonglong2(from, bound(p));
      if (VALUES == OF_CHANCES) value[c] = single(op_div(1.0, p));
    };
    if (!b.fits()) return m.fail(STATUS_TOO_SMALL, b.size);
    if (!m.well()) return false;
    m.each(old, [&](u32 c) {
      list[c] = seen[c];
      if (last) return;
      u32 begin = was[c], end = c + 1 < old ? was[c + 1] : before;
      to[c] = begin, about(c, looked[c].x, end - begin);
    });
    if (IMPORTANCE && !last) {
      m.each((before + grown.total) / 32 + 1, [&](u32 w) { words[w] = make_uint2(0, 0); });
      m.each((u32)m.a().num_nodes, [&](u32 v) { pi[v] = 0; });
    }
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
        to[id] = begin, about(id, start[j] - begin, degree[j]);
      }
    }
    if (!last && m.reporter()) to[total] = before + grown.total;
    n = total, edges = before + grown.total, vertices = list, begins = to, looks = look, values = value;
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
    const u32 hops = m.a().hops;
    const long long* fanouts = m.a().fanouts;
    Id *given, *asked;
    if (IMPORTANCE) {
      u64 nodes = m.a().num_nodes;
      pi = m.take<u64>(nodes), most = m.take<u64>(m.a().rounds > 1 ? nodes : 0);
      if (!m.well()) return;
      if (m.a().rounds > 1) m.each((u32)nodes, [&](u32 v) { most[v] = 0; });
    }
    if (!seeds(given) || !number(false, fanouts[0])) return;
    u32 distinct = n, num_asked = kept;
    asked = ids, base = kept;
#pragma unroll 1
    for (u32 hop = 0; hop < hops; hop++) {
      const long long k = fanouts[hop];
      u32 about = b.layout.block(hops - 1 - hop, 0), columns = n;
      settle(asked, num_asked);
      Id* indptr = (Id*)b.put(about + BLOCK_INDPTR, (u64)n + 1, sizeof(Id));
      Machine::Scan scan;
      if (IMPORTANCE && !search(m.a().sites[hop], k)) return;
      if (!look(m.a().sites[hop], scan)) return;
      ids = (Id*)b.put(about + BLOCK_INDICES, kept, sizeof(Id));
      void* edge_ids = b.put(about + BLOCK_EDGE_IDS, kept, PROGRAM_OUT_EDGE_BITS / 8);
      float* weights = VALUES ? (float*)b.put(about + BLOCK_EDGE_WEIGHTS, kept, 4) : nullptr;
      b.set(about + BLOCK_NUM_DST, n), b.set(about + BLOCK_NUM_EDGES, kept), b.set(b.layout.count(0, hop), n);
      if (!b.fits()) return (void)m.fail(STATUS_TOO_SMALL, b.size);
      place(scan);
      m.each_warp(gridDim.x * PROGRAM_WARPS + load_relaxed(pieces.taken), [&](u32 piece) {
        const Pieces::Piece& of = pieces.all[piece];
        u32 count = of.n, e0 = earlier[of.warp] + of.first, lane = threadIdx.x & 31;
#pragma unroll
        for (u32 j = 0; j < Pieces::SIZE / 32; j++) {
          u32 t = 32 * j + lane, e = e0 + t;
          if (t >= count) continue;
          u32 c = of.column[t];
          Id v = of.source[t];
          ulonglong2 own = looks[c];
          ids[e] = v;
          write(edge_ids, PROGRAM_OUT_EDGE_BITS, e, m.edge_id((Place)(own.x + of.edge[t])));
          claim(base + e, v);
          if (VALUES == OF_CHANCES) weights[e] = IMPORTANCE ? single(op_div(1.0, chance_of(c, v))) : values[c];
          else if (VALUES && !IMPORTANCE && own.y == ALL) weights[e] = 1;
        }
      });
      m.barrier();
      m.each(columns + 1, [&](u32 c) { indptr[c] = (Id)rank(begins[c]); });
      if (VALUES == OF_MEANS) {
        m.each_warp(columns, [&](u32 c) {
          u32 lo = rank(begins[c]), hi = rank(begins[c + 1]);
          if ((!IMPORTANCE && looks[c].y == ALL) || lo == hi) return;
          double alike = IMPORTANCE ? 0 : op_div(1.0, chance(k, begins[c + 1] - begins[c]));
          auto value = [&](u32 e) { return IMPORTANCE ? op_div(1.0, chance_of(c, ids[e])) : alike; };
          double sum = warp_sum_of(lo, hi, value);
          for (u32 e = lo + (threadIdx.x & 31); e < hi; e += 32) weights[e] = single(op_mul(value(e), op_div((double)(hi - lo), sum)));
        });
        // Numbers take the place of the sources.
        if (IMPORTANCE) m.barrier();
      }
      bool last = hop + 1 == hops;
      if (!number(last, last ? 0 : fanouts[hop + 1])) return;
      b.set(about + BLOCK_NUM_SRC, n);
      asked = ids, num_asked = kept, base += kept;
    }
    settle(asked, num_asked);
    b.set(WORD_NUM_NODES, n), b.set(b.layout.count(0, hops), n);
    u32 count = (u32)m.a().num_seeds;
    if (distinct != count) {
      Id* to = (Id*)b.put(WORD_OUTPUT_NODES, count, sizeof(Id));
      if (b.fits()) m.each(count, [&](u32 i) { to[i] = given[i]; });
    } else {
      b.set(WORD_OUTPUT_NODES, (u64)((char*)vertices - m.a().out));
    }
    b.end();
  }
};
