// Samples batches of heterogeneous graphs into memory with fixed addresses, for launches that a CUDA
// graph repeats, like static.cu for homogeneous graphs. A batch takes three launches:
//
//   static_hetero*        samples it, as hetero/hetero.cu does, from a HeteroArgs in device memory
//   static_hetero_turn    forwards the report to the host, and writes the HeteroArgs of the next one
//   static_hetero_spread  copies the batch to arrays of fixed sizes, and pads them
//
// Slots alternate, and padding is harmless, as in static.cu. A graph has up to a hundred relations,
// each of which has arrays for every hop: so the copies are a list of pieces in device memory, and
// blocks process equal parts of all of them.
//
// Go caller: internal/engine/cuda/static_hetero.go. Go twin: none; the CPU engine's batches have the
// same content.
#include "static/static.cuh"
#include "hetero/hetero_batch.cuh"

// Mirrors heteroState. The host writes what is of a pass before it begins.
struct HeteroState {
  const char* seeds;       // of the pass; those of a batch type by type
  const StaticStep* steps;  // [num_steps + 1], the last without seeds
  const u64* counts;       // of each step its seeds of each type
  const long long* times;  // a key for each of seeds; null: they have none
  const u64* excluded;     // CSC positions to sample around, of each step those of each relation, ascending
  const u64* excluded_at;  // where those begin, and the end: [(num_steps + 1) * relations + 1]; null: there are none
  u64 num_steps;
  u64 sampled, spread;     // batches of the pass so far
  u64 launches;            // of static_hetero*, ever
  u32 turned, spreading;   // blocks that are done
  HeteroArgs batch;         // of the next launch
};

// Mirrors staticHeteroArgs.
struct StaticHeteroArgs {
  const HeteroArgs* batch;
};

template <typename I, bool ALL>
__device__ __forceinline__ void static_hetero(const StaticHeteroArgs& from) {
  __shared__ HeteroArgs a;
  for (u32 i = threadIdx.x; i < sizeof(HeteroArgs) / 8; i += THREADS) ((u64*)&a)[i] = ((const u64*)from.batch)[i];
  __syncthreads();
  hetero<I, ALL>(a);
}

#define STATIC_HETERO(name, I, ALL) \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ StaticHeteroArgs a) { static_hetero<I, ALL>(a); }

STATIC_HETERO(static_hetero32, int, false)
STATIC_HETERO(static_hetero64, long long, false)
STATIC_HETERO(static_hetero32_all, int, true)
STATIC_HETERO(static_hetero64_all, long long, true)

// A word of a batch's header, and the most that may stand there. Mirrors heteroLimit.
struct HeteroLimit {
  u64 word, most;
};

// Mirrors heteroTurnArgs.
struct HeteroTurnArgs {
  HeteroState* state;
  HeteroNodeType* kinds;
  HeteroRelation* relations;
  const HeteroLimit* limits;
  u64* reports;        // of the device, a slot's behind the other
  u64* told;           // likewise, memory of the host
  u64 map_words;       // of 32 bits
  u64 out_bytes;       // of a slot
  u64 seed_bytes;
  u32 words;           // of a report
  u32 num_limits;
  u32 first;           // no batch is to be told of
  u32 tags;            // that the map has
  HeteroArgs batch;     // what all batches have in common; out and report are those of slot 0
};

extern "C" __global__ void __launch_bounds__(STATIC_THREADS) static_hetero_turn(const __grid_constant__ HeteroTurnArgs a) {
  __shared__ u64 launches, turn;
  __shared__ bool last;
  HeteroState& s = *a.state;
  if (threadIdx.x == 0) launches = s.launches, turn = a.first ? 0 : s.sampled + 1;
  __syncthreads();
  u64 threads = (u64)gridDim.x * STATIC_THREADS, thread = (u64)blockIdx.x * STATIC_THREADS + threadIdx.x;
  // Tags fall from launch to launch; an empty word is larger than any.
  if (launches % a.tags == 0)
    for (u64 i = thread; i < a.map_words; i += threads) ((u32*)a.batch.map)[i] = ~0u;
  if (a.batch.keys)
    for (u64 i = thread; i < 1ull << a.batch.table_bits; i += threads) a.batch.keys[i] = ~0ull;
  if (blockIdx.x == 0 && !a.first) {
    u64 slot = (turn - 1) % STATIC_SLOTS;
    u64 *report = a.reports + slot * a.words, *told = a.told + slot * a.words;
    // Of a failed launch the header is not all written.
    u64 status = report[REPORT_STATUS];
    for (u32 i = REPORT_HEADER + threadIdx.x; i < a.words; i += STATIC_THREADS) told[i] = report[i];
    bool fits = true;
    for (u32 i = threadIdx.x; status == STATUS_OK && i < a.num_limits; i += STATIC_THREADS)
      fits &= report[REPORT_HEADER + a.limits[i].word] <= a.limits[i].most;
    __threadfence_system();
    fits = __syncthreads_and(fits);
    if (threadIdx.x == 0) {
      if (status == STATUS_OK && !fits) report[REPORT_STATUS] = status = STATUS_TOO_SMALL;
      told[REPORT_DETAIL] = turn - 1;
      __threadfence_system();
      *(volatile u64*)(told + REPORT_STATUS) = status;
    }
  }
  __syncthreads();
  // The last block moves on, once all have read where things stand.
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(&s.turned, gridDim.x - 1) + 1 == gridDim.x;
  }
  __syncthreads();
  if (!last) return;
  u64 at = min(turn, s.num_steps);
  for (u32 t = threadIdx.x; t < a.batch.types; t += STATIC_THREADS) a.kinds[t].seeds = s.counts[at * a.batch.types + t];
  if (s.excluded_at) {
    const u64* from = s.excluded_at + at * a.batch.num_relations;
    for (u32 r = threadIdx.x; r < a.batch.num_relations; r += STATIC_THREADS)
      a.relations[r].excluded_at = from[r], a.relations[r].num_excluded = from[r + 1] - from[r];
  }
  if (threadIdx.x) return;
  StaticStep step = s.steps[at];
  u64 slot = turn % STATIC_SLOTS;
  HeteroArgs b = a.batch;
  b.seeds = s.seeds + step.first * a.seed_bytes;
  if (s.times) b.seed_times = s.times + step.first;
  if (s.excluded_at) b.excluded = s.excluded;
  b.num_seeds = step.num_seeds;
  b.out += slot * a.out_bytes;
  b.report += slot * a.words;
  b.tag = a.tags - 1 - (u32)(launches % a.tags);
  b.key0 = step.key0, b.key1 = step.key1, b.batch0 = step.batch0, b.batch1 = step.batch1;
  s.batch = b;
  s.sampled = turn;
  s.launches = launches + 1;
}

// What fills an array up.
enum {
  FILL_PLACE = 0,   // the place, modulo `modulus`: a vertex or an edge that exists
  FILL_WORD = 1,    // what `value` of the header says, and `modulus` more
  FILL_BEHIND = 2,  // numbers from what it says on, up to `modulus`, in turns
};

// An array of fixed size. Mirrors heteroPiece. from, count, value and skip are words of a batch's header.
struct HeteroPiece {
  void* to;
  u64 room, modulus;
  u64 chunk;             // the first of its parts of CHUNK vectors, among those of all pieces
  u32 from, count;       // where its first byte stands, and how many values the batch has
  u32 more;              // beside those
  u32 fill, value, bits; // bits of a value
  u32 skip, unused;      // how many values from there on it leaves out; 0: none, since that word is none's number
};

#define CHUNK (4 * STATIC_THREADS)  // of 16 bytes

// Mirrors heteroSpreadArgs.
struct HeteroSpreadArgs {
  HeteroState* state;
  const u64* reports;
  const char* out;
  u64 out_bytes;
  const HeteroPiece* pieces;
  const u64* count_words;  // of the header, which counts gets the values of
  long long* counts;
  u64 chunks;              // of all pieces
  u32 words, num_pieces, num_counts, unused;
};

// A part of a piece, of which the batch has `used` values; value is what that word of the header says.
template <typename T>
__device__ __forceinline__ void spread_chunk(const HeteroPiece& p, u64 chunk, const char* from, u64 used, u64 value) {
  const u64 each = 16 / sizeof(T);
  u32 rows = (u32)(p.modulus - value);
  // What is behind values that are left out may begin anywhere.
  bool whole = (u64)from % 16 == 0;
#pragma unroll 4
  for (u32 k = threadIdx.x; k < CHUNK; k += STATIC_THREADS) {
    u64 v = chunk * CHUNK + k, i = v * each;
    if (i >= p.room) return;
    if (whole && i + each <= used) {
      ((uint4*)p.to)[v] = ((const uint4*)from)[v];
      continue;
    }
    for (u64 j = i; j < i + each && j < p.room; j++) {
      u64 x = 0;
      if (j < used) x = (u64)((const T*)from)[j];
      else if (p.fill == FILL_PLACE) x = j % p.modulus;
      else if (p.fill == FILL_WORD) x = value + p.modulus;
      else if (p.fill == FILL_BEHIND) x = value + (u32)(j - used) % rows;
      ((T*)p.to)[j] = (T)x;
    }
  }
}

extern "C" __global__ void __launch_bounds__(STATIC_THREADS) static_hetero_spread(const __grid_constant__ HeteroSpreadArgs a) {
  __shared__ u64 turn;
  if (threadIdx.x == 0) turn = a.state->spread;
  __syncthreads();
  const u64* report = a.reports + turn % STATIC_SLOTS * a.words;
  const u64* header = report + REPORT_HEADER;
  const char* out = a.out + turn % STATIC_SLOTS * a.out_bytes;
  // static_hetero_turn has seen to it that the batch has room.
  bool good = report[REPORT_STATUS] == STATUS_OK;
  u64 threads = (u64)gridDim.x * STATIC_THREADS;
  for (u64 i = (u64)blockIdx.x * STATIC_THREADS + threadIdx.x; i < a.num_counts; i += threads)
    a.counts[i] = good ? (long long)header[a.count_words[i]] : 0;
  for (u64 c = blockIdx.x; c < a.chunks; c += gridDim.x) {
    u32 lo = 0, hi = a.num_pieces;
    while (hi - lo > 1) {
      u32 middle = (lo + hi) / 2;
      if (a.pieces[middle].chunk <= c) lo = middle;
      else hi = middle;
    }
    HeteroPiece p = a.pieces[lo];
    u64 used = good ? header[p.count] + p.more : 0, value = good ? header[p.value] : 0;
    const char* from = out + (good ? header[p.from] : 0) + (good && p.skip ? header[p.skip] * (p.bits / 8) : 0);
    if (p.bits == 32) spread_chunk<u32>(p, c - p.chunk, from, used, value);
    else spread_chunk<u64>(p, c - p.chunk, from, used, value);
  }
  __syncthreads();
  if (threadIdx.x) return;
  __threadfence();
  if (atomicInc(&a.state->spreading, gridDim.x - 1) + 1 == gridDim.x) a.state->spread = turn + 1;
}
