// The runtime of generated programs: one cooperative launch, whose blocks execute the program's
// steps together. Sizes are computed on the device: every thread of the grid knows them, since a
// step that produces data ends in a sum over all blocks. So all threads allocate the same memory of
// one working region, fail together, and the host waits once.
//
// A step is a template, and its program-specific parts (values, edges) are functors that the
// generator prints (Go: internal/program/source).
//
// Parts: numbers.cuh has the values, edges.cuh matrices and lists, submatrix.cuh edges by their rows,
// filter.cuh filtered columns, choose.cuh samples, dependent.cuh dependent rounding, sums.cuh
// reductions, search.cuh factors of columns, labor.cuh chances of LABOR and with a sum, dense.cuh
// dense rows, result.cuh the batch. Go caller: internal/engine/cuda/program.go. Go twin:
// internal/program/run.
#pragma once
#include "common/choose.cuh"
#include "common/dependent_rng.cuh"
#include "common/grid.cuh"
#include "common/header.cuh"
#include "program/numbers.cuh"

// A program's text declares the lists that all of its steps may ask for.
#ifndef PGS_EMULATED
#pragma nv_diag_suppress 550
#endif

#define PROGRAM_WARPS (PROGRAM_THREADS / 32)

#if PROGRAM_ID_BITS == 64
typedef long long Id;
#else
typedef int Id;
#endif
#if PROGRAM_PLACE_BITS == 64
typedef u64 Place;
#else
typedef u32 Place;
#endif

// An array of the graph's, of one number for each edge id or vertex.
// A text has ARRAY_0, ARRAY_1, ... for their types.
typedef unsigned char Bool, UInt8;
typedef signed char Int8;
typedef short Int16;
typedef int Int32;
typedef long long Int64;
typedef float Float32;
typedef double Float64;

// Mirrors programArgs in internal/engine/cuda/program.go.
struct ProgramArgs {
  const void *seeds, *indptr, *indices, *edge_ids;
  u64* map;           // a word for every vertex: a tag above a rank
  u32* arrived;       // the meetings' counter
  ulonglong2* slots;  // two rows of gridDim.x, which take turns
  char *work, *out;   // working memory; the batch
  u32* cells;         // counters
  u64 *report, *bad_seed;
  const u64* excluded;  // places in the CSC, ascending
  u64 work_bytes, out_bytes, num_seeds, num_rows, num_nodes, num_edges, num_excluded;
  const void *out_starts, *out_edges;  // of the graph, by vertices; null: they are not there
  // Nanoseconds of A[R, S] by both ways: an in-edge looked at, a bit for it, an out-edge, and what that way takes more.
  float cost_in, cost_bit, cost_out, cost_more;
  u32 seed_bits, tag, key0, key1, batch0, batch1, num_cells;  // tag: of the first numbering; those after it have lower ones
  const void* arrays[PROGRAM_ARRAYS];
  // Of hops by chances, the seeds' first: how many, the rounds of LABOR-i, whose numbers sources have, and the edges of a column in
  // the mean.
  u32 hops, rounds, sites[MOST_HOPS];
  long long fanouts[MOST_HOPS];
};

// Vertices in an order; without an array all of them.
struct List {
  u32 n;
  const Id* vertices;
  __device__ __forceinline__ Id operator()(u32 i) const { return vertices ? vertices[i] : (Id)i; }
};

// How far a program is, alike in all threads of the grid. Each warp has its own, which its first lane writes.
struct Progress {
  u64 status, detail, value, owner;
  u64 used;  // bytes of working memory
  u32 exchanges, numberings, cells;
  bool loose;  // a step has written what no meeting has shown to all yet
};

struct ProgramShared {
  Meeting meeting;
  SumSpace sums[2];
  // Read by fours.
  alignas(16) u32 digits[PROGRAM_WARPS][256];
  ProgramArgs args;
  Progress progress[PROGRAM_WARPS];
  // Of a timed program: cycles of each node, and those of the clocks at its begin and at the last mark.
  u64 *times, begin, last;
};

// A program is long, and each part of it runs once, so the time to fetch code counts: what is large and has
// no need to be seen through is a function. So that a function finds the program's state at a place that is known
// when it is compiled, that is shared memory: by its address it would be in local memory, and arguments in constant
// memory that is read as any other, which every meeting takes from the nearest cache.
__device__ __forceinline__ ProgramShared& program_shared() {
  __shared__ ProgramShared s;
  return s;
}

__device__ __forceinline__ bool first_lane() { return (threadIdx.x & 31) == 0; }
// What was, once all lanes of the warp have seen it; then it is what `next` makes of it.
template <class T, class Next>
__device__ __forceinline__ T advance(T& at, Next next) {
  T was = at;
  __syncwarp();
  if (first_lane()) at = next(was);
  __syncwarp();
  return was;
}
// Which of two that take turns; all meet next.
__device__ __forceinline__ u32 turn_of(Progress& now) {
  u32 was = now.exchanges;
  __syncwarp();
  if (first_lane()) now.exchanges = was + 1, now.loose = false;
  __syncwarp();
  return was & 1;
}
__device__ __noinline__ Sums sums_of(u32 x, u32 y, u32 z) {
  ProgramShared& s = program_shared();
  u32 turn = turn_of(s.progress[threadIdx.x >> 5]);
  return grid_sums(x, y, z, s.args.slots + turn * gridDim.x, s.meeting, s.sums[turn]);
}
struct OneSum {
  u32 before, total;
};
__device__ __noinline__ OneSum sum_of(u32 x) {
  ProgramShared& s = program_shared();
  u32 turn = turn_of(s.progress[threadIdx.x >> 5]);
  Sums all = grid_sums<1>(x, 0, 0, s.args.slots + turn * gridDim.x, s.meeting, s.sums[turn]);
  return OneSum{all.before[0], all.total[0]};
}
__device__ __noinline__ void barrier_of() {
  ProgramShared& s = program_shared();
  // All lanes have read it that are to come here.
  __syncwarp();
  if (first_lane()) s.progress[threadIdx.x >> 5].loose = false;
  grid_barrier(s.meeting);
}
__device__ __noinline__ bool failed(u64 why, u64 what) {
  Progress& now = program_shared().progress[threadIdx.x >> 5];
  __syncwarp();
  if (first_lane()) now.status = why, now.detail = what;
  __syncwarp();
  return false;
}
__device__ __noinline__ u64 state_of(Stream stream, u64 v) { return row_state(stream, v); }

struct Machine {
  static __device__ __forceinline__ ProgramShared& s() { return program_shared(); }
  static __device__ __forceinline__ const ProgramArgs& a() { return s().args; }
  static __device__ __forceinline__ Progress& now() { return s().progress[threadIdx.x >> 5]; }
  // Every vertex.
  static __device__ __forceinline__ List all() { return List{(u32)a().num_nodes, nullptr}; }

  __device__ explicit Machine(const ProgramArgs& args) {
    static_assert(sizeof(ProgramArgs) % 4 == 0, "copied by words");
    for (u32 i = threadIdx.x; i < sizeof(ProgramArgs) / 4; i += blockDim.x) ((u32*)&s().args)[i] = ((const u32*)&args)[i];
    if (threadIdx.x == 0) s().meeting.begin(args.arrived);
    if (first_lane()) now() = Progress{STATUS_OK};
    __syncthreads();
  }

  // A word of progress, by whole warps.
  template <class T>
  static __device__ __forceinline__ void set(T& at, T value) {
    advance(at, [&](T) { return value; });
  }

  // What all threads of a block know alike is in shared memory, where the first of them writes it: it is there for the others once
  // the block has met, and nobody may read there before what is written over. What is each thread's own each writes.
  template <class T, class V>
  static __device__ __forceinline__ void put(T& at, V value) {
    if (threadIdx.x == 0 || !__isShared(&at)) at = value;
  }
  static __device__ __forceinline__ void meet() { __syncthreads(); }

  // What a step returns: whether the program goes on.
  static __device__ __forceinline__ bool well() { return now().status == STATUS_OK; }
  static __device__ __forceinline__ bool fail(u64 why, u64 what) { return failed(why, what); }
  // Likewise, of a value that an operator does not take.
  static __device__ __forceinline__ bool refuse(u64 node, u64 value, u64 owner = 0) {
    if (first_lane()) now().value = value, now().owner = owner;
    return fail(STATUS_VALUE_REFUSED, node);
  }

  static __device__ __forceinline__ void loosen() { set(now().loose, true); }
  static __device__ __forceinline__ void barrier() { barrier_of(); }
  // A step that only writes leaves the barrier to the first one that reads it. The lanes have met since one of them wrote.
  static __device__ __forceinline__ void sync() {
    if (now().loose) barrier_of();
  }
  static __device__ __forceinline__ Sums sums(u32 x, u32 y, u32 z = 0) { return sums_of(x, y, z); }
  static __device__ __forceinline__ OneSum sum(u32 x) { return sum_of(x); }

  // n elements of the working memory. Beyond its end the program fails, and nothing is to be written.
  template <class T>
  static __device__ __forceinline__ T* take(u64 n) {
    return (T*)take_bytes(n * sizeof(T));
  }
  static __device__ __noinline__ char* take_bytes(u64 n) {
    u64 at = advance(now().used, [&](u64 used) { return align64(used + n); }), used = align64(at + n);
    if (used > a().work_bytes) fail(STATUS_WORK_TOO_SMALL, used);
    return a().work + at;
  }
  // Several arrays at once: `bytes` is the sum of those that they have with room().
  template <class T>
  static __device__ __forceinline__ u64 room(u64 n) { return align64(n * sizeof(T)); }
  template <class T>
  static __device__ __forceinline__ T* next(char*& at, u64 n) {
    T* found = (T*)at;
    at += room<T>(n);
    return found;
  }
  // Counters of the launch's, 0 since the seeds were read, by fours: so that some can be one word.
  static __device__ __forceinline__ u32* counters(u32 n) {
    return a().cells + advance(now().cells, [&](u32 cells) { return cells + ((n + 3) & ~3u); });
  }
  // The next numbering begins: the upper half of its words in the map.
  static __device__ __forceinline__ u64 next_numbering() {
    return (u64)(a().tag - advance(now().numberings, [](u32 n) { return n + 1; }) - 1) << 32;
  }
  // That of the one that is under way.
  static __device__ __forceinline__ u64 numbering() { return (u64)(a().tag - now().numberings) << 32; }

  // Likewise, of zeros; a barrier comes before they are used.
  template <class T>
  __device__ __forceinline__ T* zeros(u64 n) {
    T* found = take<T>(n);
    if (well()) each((u32)n, [&](u32 i) { found[i] = 0; });
    return found;
  }

  // f of each of n, by all threads.
  template <class F>
  __device__ __forceinline__ void each(u32 n, F f) {
#pragma unroll 1
    for (u64 i = blockIdx.x * PROGRAM_THREADS + threadIdx.x; i < n; i += gridDim.x * PROGRAM_THREADS) f((u32)i);
  }
  // Likewise by whole warps, each of them alone.
  template <class F>
  __device__ __forceinline__ void each_warp(u32 n, F f) {
#pragma unroll 1
    for (u64 i = blockIdx.x * PROGRAM_WARPS + (threadIdx.x >> 5); i < n; i += gridDim.x * PROGRAM_WARPS) f((u32)i);
  }

  // A warp's part of n things: those of a block, and of its warps, stand one behind another.
  struct Span {
    u32 lo, hi;
  };
  __device__ __forceinline__ Span span(u32 n) const {
    u32 step = (n / (gridDim.x * PROGRAM_WARPS) + 32) & ~31u, warp = blockIdx.x * PROGRAM_WARPS + (threadIdx.x >> 5);
    u32 lo = (u32)min((u64)step * warp, (u64)n);
    return Span{lo, (u32)min((u64)lo + step, (u64)n)};
  }

  // Where things begin that stand one behind another, count(i) of each. Two steps, since between them
  // memory is taken for `total`; then emit(i, begin, count). Up to three may be counted at one meeting.
  struct Scan {
    u32 total, before;
  };
  template <class Count>
  __device__ __forceinline__ u32 of_warp(u32 n, Count count) {
    Span mine = span(n);
    u64 sum = 0;
#pragma unroll 1
    for (u32 i = mine.lo + (threadIdx.x & 31); i < mine.hi; i += 32) sum += count(i);
    return at_most(warp_sum(at_most(sum)));
  }
  __device__ __forceinline__ bool scanned(Scan& scan, const Sums& all, u32 which) {
    return scanned(scan, OneSum{all.before[which], all.total[which]}, which);
  }
  __device__ __forceinline__ bool scanned(Scan& scan, const OneSum& all, u32 which = 0) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    scan.total = all.total;
    scan.before = all.before + (u32)warp_sum(lane < warp ? s().sums[(now().exchanges - 1) & 1].parts[which][lane] : 0);
    return scan.total < TOO_MUCH || fail(STATUS_TOO_MANY_EDGES, scan.total);
  }
  template <class Count>
  __device__ __forceinline__ bool counted(u32 n, Scan& scan, Count count) {
    return scanned(scan, sum(of_warp(n, count)));
  }
  template <class Count, class Emit>
  __device__ __forceinline__ void placed(u32 n, const Scan& scan, Count count, Emit emit) {
    Span mine = span(n);
    u32 at = scan.before;
#pragma unroll 1
    for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 32) {
      u32 i = i0 + (threadIdx.x & 31), own = i < mine.hi ? count(i) : 0, all;
      u32 begin = at + lanes_before(own, all);
      if (i < mine.hi) emit(i, begin, own);
      at += all;
    }
  }

  // Numbers vertex(i) of n places by first occurrence: claims, and meets. Then first(v) is the place of v's
  // first one, until the next numbering.
  template <class Vertex>
  __device__ __forceinline__ void claim(u32 n, Vertex vertex) {
    u64 word = next_numbering(), *map = a().map;
    u32 stride = gridDim.x * PROGRAM_THREADS;
#pragma unroll 1
    for (u64 i0 = blockIdx.x * PROGRAM_THREADS + threadIdx.x; i0 < n; i0 += 4 * stride) {
      Id v[4];
      u64 seen[4];
#pragma unroll
      for (u32 j = 0; j < 4; j++)
        if (i0 + j * stride < n) v[j] = vertex((u32)(i0 + j * stride));
#pragma unroll
      for (u32 j = 0; j < 4; j++)
        if (i0 + j * stride < n) seen[j] = load_relaxed(map + (u64)v[j]);
#pragma unroll
      for (u32 j = 0; j < 4; j++)
        if (i0 + j * stride < n && seen[j] > (word | (i0 + j * stride))) atomicMin(map + (u64)v[j], word | (i0 + j * stride));
    }
    barrier();
  }
  __device__ __forceinline__ void claim_one(u64 numbering, u32 i, Id v) {
    u64 word = numbering | i, *at = a().map + (u64)v;
    if (load_relaxed(at) > word) atomicMin(at, word);
  }
  // Likewise, of one that few others are claiming: without a look first, which would be waited for.
  __device__ __forceinline__ void claim_unseen(u64 numbering, u32 i, Id v) { atomicMin(a().map + (u64)v, numbering | i); }
  __device__ __forceinline__ u32 first(Id v) const { return (u32)load_relaxed(a().map + (u64)v); }
  __device__ __forceinline__ bool claimed(Id v) const { return (load_relaxed(a().map + (u64)v) ^ numbering()) >> 32 == 0; }

  // use(i0, v, is) of the places of a warp's span, 32 at a time from i0: the lane's vertex, and whether its place is the first
  // one. Four are on their way at a time.
  template <class Vertex, class Use>
  __device__ __forceinline__ void each_first(Span mine, Vertex vertex, Use use) {
    u32 lane = threadIdx.x & 31;
    const u64* map = a().map;
#pragma unroll 1
    for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 128) {
      Id v[4];
      u32 place[4];
#pragma unroll
      for (u32 j = 0; j < 4; j++) {
        u32 i = i0 + 32 * j + lane;
        v[j] = i < mine.hi ? vertex(i) : 0;
      }
#pragma unroll
      for (u32 j = 0; j < 4; j++) place[j] = i0 + 32 * j + lane < mine.hi ? (u32)load_relaxed(map + (u64)v[j]) : ~0u;
#pragma unroll
      for (u32 j = 0; j < 4; j++)
        if (i0 + 32 * j < mine.hi) use(i0 + 32 * j, v[j], place[j] == i0 + 32 * j + lane);
    }
  }

  // The distinct vertices of n places that have been claimed; the list that they are, where it is given and has no others.
  // `of_each` is what else is made of each of them at the same meetings: things are counted, and it is told where they begin.
  // Which places are first is noted, a bit each, so that the map is free once all have been counted.
  template <class Vertex, class OfEach>
  __device__ __forceinline__ bool distinct(u32 n, List& list, Vertex vertex, const List* whole, OfEach& made, typename OfEach::About about) {
    OfEach of_each = OfEach::of(about);
    u32 *firsts = take<u32>(n / 32 + 1), lane = threadIdx.x & 31, own = 0;
    if (!well()) return false;
    Span mine = span(n);
    u64 things = 0;
    each_first(mine, vertex, [&](u32 i0, Id v, bool is) {
      if (is) things += of_each.count(*this, v);
      u32 word = __ballot_sync(~0u, is);
      if (lane == 0) firsts[i0 / 32] = word;
      own += __popc(word);
    });
    Sums all = sums(own, at_most(warp_sum(at_most(things))));
    Scan vertices, begins;
    if (!scanned(vertices, all, 0) || !scanned(begins, all, 1)) return false;
    bool same = whole && vertices.total == n;
    if (same) put(list, *whole);
    if (same && !OfEach::MAKES) {
      meet();
      return true;
    }
    Id* of = same ? nullptr : take<Id>(vertices.total);
    if (!of_each.room(*this, vertices.total, begins.total)) return false;
    if (!same) put(list, List{vertices.total, of});
    if (OfEach::MAKES) put(made, of_each);
    u32 at = vertices.before, begin = begins.before;
#pragma unroll 1
    for (u32 i0 = mine.lo; i0 < mine.hi; i0 += 32) {
      u32 word = firsts[i0 / 32], to = at + __popc(word & ((1u << lane) - 1)), many = 0, all;
      bool is = word >> lane & 1;
      Id v = is ? vertex(i0 + lane) : 0;
      if (is) many = of_each.count(*this, v);
      u32 from = begin + lanes_before(many, all);
      if (is && !same) of[to] = v;
      if (is) of_each.put(*this, to, v, from);
      at += __popc(word), begin += all;
    }
    barrier();
    return true;
  }

  // Times n parts of the program, as the first thread sees them: each ends in a meeting of all.
  __device__ __forceinline__ bool time(u32 n) {
    u64* times = take<u64>(n);
    if (!well()) return false;
    if (reporter()) {
      for (u32 i = 0; i < n; i++) times[i] = 0;
      s().times = times, s().begin = globaltimer(), s().last = (u64)clock64();
    }
    return true;
  }
  __device__ __forceinline__ void mark(u32 i) {
    if (!reporter()) return;
    u64 now = (u64)clock64();
    s().times[i] += now - s().last, s().last = now;
  }

  // The seeds, which are claimed where that is asked for; and the counters begin.
  __device__ __forceinline__ bool seeds(List& list, bool claims) {
    Id* of = take<Id>(a().num_seeds);
    if (!well()) return false;
    u64 word = claims ? next_numbering() : 0;
    each(a().num_cells, [&](u32 i) { a().cells[i] = 0; });
    each((u32)a().num_seeds, [&](u32 i) {
      u64 v = read(a().seeds, a().seed_bits, i);
      if (v >= a().num_nodes) atomicMin(a().bad_seed, (u64)i);
      else if (claims) claim_one(word, i, (Id)v);
      of[i] = (Id)v;
    });
    list = List{(u32)a().num_seeds, of};
    if (!a().num_seeds) {
      loosen();
      return true;
    }
    barrier();
    u64 bad = load_relaxed(a().bad_seed);
    return bad == ~0ull || fail(STATUS_SEED_OUT_OF_RANGE, bad);
  }

  // The first of n chances that nothing can be drawn by is an error of the batch, of a node and of vertex(i). It
  // is found in a counter that is 0 where there is none: each is looked at, then all have met.
  __device__ __forceinline__ void look(u32* worst, u32 i, double x) {
    if (!(x >= 0 && finite(x))) atomicMax(worst, ~i);
  }
  template <class Vertex, class P>
  __device__ __forceinline__ bool chances(u32 n, u32 node, Vertex vertex, P p) {
    u32* worst = counters(2);
    each(n, [&](u32 i) { look(worst, i, p(i)); });
    barrier();
    return looked(worst, node, vertex, p);
  }
  template <class Vertex, class P>
  __device__ __forceinline__ bool looked(u32* worst, u32 node, Vertex vertex, P p) {
    u32 found = load_relaxed(worst);
    if (!found) return true;
    return refuse(node, bits_of(p(~found)), (u64)vertex(~found));
  }

  // Element i of array k.
  template <class T>
  __device__ __forceinline__ double named(u32 k, u64 i) const { return (double)((const T*)a().arrays[k])[i]; }
  __device__ __forceinline__ u64 start(u64 v) const { return read(a().indptr, PROGRAM_INDPTR_BITS, min(v, a().num_rows)); }
  __device__ __forceinline__ u64 edge_id(Place p) const { return PROGRAM_EDGE_ID_BITS ? read(a().edge_ids, PROGRAM_EDGE_ID_BITS, p) : p; }
  // 1 for an edge that the batch does not leave out.
  __device__ __noinline__ double kept(Place p) const {
    u64 lo = 0, hi = a().num_excluded;
    while (lo < hi) {
      u64 middle = (lo + hi) / 2;
      if (a().excluded[middle] < p) lo = middle + 1;
      else hi = middle;
    }
    return lo == a().num_excluded || a().excluded[lo] != p;
  }
  __device__ __forceinline__ Stream stream(u32 site, u32 purpose) const {
    return stream_of(a().key0, a().key1, site, a().batch0, a().batch1, purpose);
  }
  __device__ __forceinline__ double random(u32 site, u32 purpose, u64 of) const {
    return uniform(draw_bits(state_of(stream(site, purpose), of), 0));
  }
  // That of a batch in periods of so many.
  __device__ __noinline__ double random(u32 site, u32 purpose, u64 of, u32 batches) const {
    Dependent numbers(a().key0, a().key1, site, a().batch0, a().batch1, batches, purpose);
    return numbers([&](const Stream& stream) { return uniform(draw_bits(state_of(stream, of), 0)); });
  }
  // Whether an edge is a copy of one before it in its row, where array k says what csc.Copies does.
  __device__ __forceinline__ bool copy(u32 k, Place p) const {
    const u32* copies = (const u32*)a().arrays[k];
    return copies && copies[p] && copy_of(copies, p);
  }
  __device__ __noinline__ bool copy_of(const u32* copies, Place p) const {
    for (u32 back = copies[p]; back; back = copies[p]) {
      p -= back;
      if (kept(p)) return true;
    }
    return false;
  }
  // The number of its own that a copy has. Go twin: numberCopies.
  __device__ __noinline__ double random_of_copy(u32 site, Id row, Place p, u32 batches) const {
    Dependent numbers(a().key0, a().key1, site, a().batch0, a().batch1, batches, PURPOSE_CANDIDATES);
    u64 draw = edge_id(p) + 1;
    return numbers([&](const Stream& stream) { return uniform(draw_bits64(state_of(stream, (u64)row), draw)); });
  }
  // That of one, where it is asked for so many edges that a call would count.
  __device__ __forceinline__ double random_here(u32 site, u32 purpose, u64 of) const {
    return uniform(draw_bits(row_state(stream(site, purpose), of), 0));
  }

  __device__ __forceinline__ bool reporter() const { return blockIdx.x == 0 && threadIdx.x == 0; }
  // The block that comes last reports: then no block works on the batch any more.
  __device__ __forceinline__ void end() {
    __syncthreads();
    if (reporter()) {
      if (now().status == STATUS_VALUE_REFUSED) a().report[REPORT_HEADER] = now().value, a().report[REPORT_HEADER + 1] = now().owner;
      __threadfence_system();
    }
    if (threadIdx.x || !s().meeting.come_last()) return;
    a().report[REPORT_DETAIL] = now().detail;
    __threadfence_system();
    *(volatile u64*)a().report = now().status;
  }
};
