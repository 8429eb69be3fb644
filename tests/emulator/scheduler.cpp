#include "scheduler.h"

#include <sys/mman.h>
#include <time.h>

#include <cstdarg>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "device.h"
#include "fiber.h"
#ifdef RACES
#include "races.h"
#define TELL(x) emulator::x
#else
#define TELL(x)
#endif

// ---- state ---------------------------------------------------------------------------------------

namespace {

enum { LAUNCH_TIMEOUT = 702, ILLEGAL_ADDRESS = 700, ILLEGAL_INSTRUCTION = 715, BAD_BARRIER = 717, LAUNCH_FAILED = 719 };

const size_t STACK = 64 << 10;
// Stacks lie so far apart: a power of two would put all of them into the same lines of the cache.
const size_t STRIDE = STACK + 17 * 64;
const unsigned char GARBAGE = 0xA5;
const size_t CANARY = 64;

struct Thread {
  Fiber fiber;
  uint3 index;
  unsigned lane, warp;
  // The last loads: one of them again with the same value looks like waiting.
  struct {
    const volatile void* address;
    uint64_t value;
  } seen[4];
  unsigned loads;
};

struct Warp {
  unsigned exists, ready, yielded, waiting, at_barrier, exited;
  emulator::Kind kind[32];
  unsigned mask[32];
  int argument[32], width[32];
  uint64_t value[32], result[32];
};

struct Block {
  uint3 index;
  bool live;
  unsigned threads_left, arrived;
  int count, result;
  emulator::Kind barrier;
  Warp warps[32];
  std::vector<Thread> threads;
  std::vector<char> shared;
  char* stacks = nullptr;
  char* dynamic = nullptr;
};

// The launch that runs; there is one at a time.
struct Launch {
  Kernel* kernel;
  const void* args;
  unsigned threads, warps, dynamic_bytes;
  Block* in;  // whose static shared memory is in place
  int error;
  bool progress;
  uint64_t ticks;
  double deadline;
};

std::mutex one;
std::vector<Block*> slots;
Launch launch;
Block* block;
Thread* thread;
Fiber host;
uint64_t chaos;  // state of the order's generator; 0: always the same order

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

unsigned shuffled() {
  chaos ^= chaos << 13, chaos ^= chaos >> 7, chaos ^= chaos << 17;
  return (unsigned)(chaos >> 32);
}

// One of the bits of a mask that has any, from bit `from` on.
unsigned pick(unsigned mask, unsigned from) {
  if (chaos) from = shuffled();
  from &= 31;
  unsigned turned = from ? mask >> from | mask << (32 - from) : mask;
  return (from + (unsigned)__builtin_ctz(turned)) & 31;
}

void run(Thread* next) {
  Thread* before = thread;
  if (next == before) return;
  thread = next;
  emulator::thread_index = &next->index;
  emulator_switch(before ? &before->fiber : &host, &next->fiber);
}

// Leaves the thread, which is no longer ready, to the next one of the block, or the block to the
// next block.
void leave() {
  Warp* warp = block->warps + thread->warp;
  if (warp->ready) return run(&block->threads[thread->warp * 32 + pick(warp->ready, thread->lane + 1)]);
  for (unsigned i = 1, w = thread->warp; i < launch.warps; i++) {
    w = w + 1 == launch.warps ? 0 : w + 1;
    if (block->warps[w].ready) return run(&block->threads[w * 32 + pick(block->warps[w].ready, 0)]);
  }
  Thread* before = thread;
  thread = nullptr;
  emulator_switch(&before->fiber, &host);
}

const char* name(emulator::Kind kind) {
  static const char* const names[] = {
      "__syncwarp", "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync", "a vote", "__reduce_add_sync",
      "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync",
      "__reduce_min_sync", "__reduce_max_sync", "__match_any_sync",
      "__syncthreads", "__syncthreads_or", "__syncthreads_and", "__syncthreads_count"};
  return names[kind];
}

__attribute__((format(printf, 2, 3))) void fail(int error, const char* format, ...) {
  if (launch.error) return;
  launch.error = error;
  fprintf(stderr, "emulator: kernel %s: ", launch.kernel->name);
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
}

// From a thread: its launch has failed.
[[noreturn]] void abandon() {
  Thread* before = thread;
  thread = nullptr;
  emulator_switch(&before->fiber, &host);
  abort();
}

void thread_main() {
  launch.kernel->call(launch.args);
  Warp* warp = block->warps + thread->warp;
  unsigned bit = 1u << thread->lane;
  warp->ready &= ~bit;
  warp->exited |= bit;
  block->threads_left--;
  launch.progress = true;
  leave();
  abort();
}

// ---- collectives of a warp -----------------------------------------------------------------------

void finish(Warp* w, emulator::Kind kind, unsigned mask) {
  using namespace emulator;
  uint64_t all = 0;
  auto each = [&](auto use) {
    for (unsigned m = mask; m; m &= m - 1) use((unsigned)__builtin_ctz(m));
  };
  unsigned first = (unsigned)__builtin_ctz(mask);
  switch (kind) {
  case SHUFFLE: case SHUFFLE_UP: case SHUFFLE_DOWN: case SHUFFLE_XOR:
    each([&](unsigned l) {
      int width = w->width[l], begin = (int)l & ~(width - 1), end = begin + width, by = w->argument[l], from;
      if (kind == SHUFFLE) from = begin + (by & (width - 1));
      else if (kind == SHUFFLE_UP) from = (int)l - by < begin ? (int)l : (int)l - by;
      else if (kind == SHUFFLE_DOWN) from = (int)l + by >= end ? (int)l : (int)l + by;
      else from = ((int)l ^ by) >= end ? (int)l : (int)l ^ by;
      if (mask >> from & 1) w->result[l] = w->value[from];
      else memset(&w->result[l], GARBAGE, 8);  // undefined: that lane does not take part
    });
    return;
  case MATCH:
    each([&](unsigned l) {
      unsigned equal = 0;
      each([&](unsigned m) { equal |= (unsigned)(w->value[l] == w->value[m]) << m; });
      w->result[l] = equal;
    });
    return;
  case BALLOT: each([&](unsigned l) { all |= (w->value[l] & 1) << l; }); break;
  case ADD: each([&](unsigned l) { all += w->value[l]; }); break;
  case OR: each([&](unsigned l) { all |= w->value[l]; }); break;
  case XOR: each([&](unsigned l) { all ^= w->value[l]; }); break;
  case AND: all = ~0ull; each([&](unsigned l) { all &= w->value[l]; }); break;
  case MIN: all = w->value[first]; each([&](unsigned l) { all = w->value[l] < all ? w->value[l] : all; }); break;
  case MAX: all = w->value[first]; each([&](unsigned l) { all = w->value[l] > all ? w->value[l] : all; }); break;
  case SIGNED_MIN: all = w->value[first]; each([&](unsigned l) { if ((int64_t)w->value[l] < (int64_t)all) all = w->value[l]; }); break;
  case SIGNED_MAX: all = w->value[first]; each([&](unsigned l) { if ((int64_t)w->value[l] > (int64_t)all) all = w->value[l]; }); break;
  default: break;
  }
  each([&](unsigned l) { w->result[l] = all; });
}

}  // namespace

namespace emulator {

const uint3 *thread_index, *block_index;
dim3 block_size, grid_size;

unsigned lane() { return thread->lane; }
unsigned thread_number() { return thread->warp * 32 + thread->lane; }
uint64_t clock() { return ++launch.ticks; }
void* dynamic_shared() { return block->dynamic; }
bool is_shared(const void* p) { return (const char*)p >= launch.kernel->shared && (const char*)p < launch.kernel->shared_end; }

uint64_t collective(Kind kind, unsigned mask, uint64_t value, int argument, int width) {
  Warp* w = block->warps + thread->warp;
  unsigned lane = thread->lane, bit = 1u << lane;
  mask &= w->exists;
  if (!(mask & bit)) {
    fail(LAUNCH_FAILED, "%s by lane %u, which its mask %08x does not name", name(kind), lane, mask);
    abandon();
  }
  w->kind[lane] = kind;
  w->mask[lane] = mask;
  w->value[lane] = value;
  w->argument[lane] = argument;
  w->width[lane] = width;
  w->waiting |= bit;
  if ((w->waiting & mask) != mask) {
    w->ready &= ~bit;
    leave();
    return w->result[lane];
  }
  for (unsigned m = mask; m; m &= m - 1) {
    unsigned l = (unsigned)__builtin_ctz(m);
    if (w->kind[l] == kind && w->mask[l] == mask) continue;
    fail(LAUNCH_FAILED, "lane %u waits in %s for lanes %08x, lane %u of the same warp in %s for %08x",
         lane, name(kind), mask, l, name(w->kind[l]), w->mask[l]);
    abandon();
  }
  finish(w, kind, mask);
  if (kind == SYNC && mask == w->exists) {
    TELL(races_warp_met(thread->warp));
  }
  w->waiting &= ~mask;
  w->ready |= mask;
  launch.progress = true;
  return w->result[lane];
}

int barrier(Kind kind, int predicate) {
  Block* b = block;
  Warp* w = b->warps + thread->warp;
  if (b->arrived == 0) b->barrier = kind, b->count = 0;
  if (b->barrier != kind) {
    fail(BAD_BARRIER, "thread %u of block %u waits in %s, others in %s", thread->warp * 32 + thread->lane, b->index.x,
         name(kind), name(b->barrier));
    abandon();
  }
  b->count += predicate != 0;
  if (++b->arrived < launch.threads) {
    unsigned bit = 1u << thread->lane;
    w->ready &= ~bit;
    w->at_barrier |= bit;
    leave();
    return b->result;
  }
  for (unsigned i = 0; i < launch.warps; i++) b->warps[i].ready |= b->warps[i].at_barrier, b->warps[i].at_barrier = 0;
  b->arrived = 0;
  TELL(races_met());
  b->result = kind == BARRIER_OR ? b->count > 0 : kind == BARRIER_AND ? b->count == (int)launch.threads : b->count;
  launch.progress = true;
  return b->result;
}

void yield() {
  Warp* w = block->warps + thread->warp;
  unsigned bit = 1u << thread->lane;
  w->ready &= ~bit;
  w->yielded |= bit;
  leave();
}

void loaded(const volatile void* address, uint64_t value) {
  Thread* t = thread;
  unsigned turn = t->loads++;
  for (auto& s : t->seen)
    if (s.address == address && s.value == value) return yield();
  t->seen[turn % 4] = {address, value};
  launch.progress = true;
  // A thread may also wait for one of many words.
  if (turn % 64 == 63) yield();
}

void changed() {
  launch.progress = true;
  // In a shuffled order a thread may lose its turn wherever others can see a difference.
  if (chaos && shuffled() % 8 == 0) yield();
}

void trap(const char* reason) {
  fail(LAUNCH_FAILED, "%s by thread %u of block %u", reason, thread->warp * 32 + thread->lane, block->index.x);
  abandon();
}

}  // namespace emulator

// ---- launches ------------------------------------------------------------------------------------

namespace {

Block* slot(unsigned i) {
  while (slots.size() <= i) {
    Block* b = new Block;
    // Touched pages alone take memory.
    b->stacks = (char*)mmap(nullptr, 1024 * STRIDE + (256 << 10), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->stacks == (char*)MAP_FAILED) abort();
    b->dynamic = b->stacks + 1024 * STRIDE;
    b->dynamic += -(uintptr_t)b->dynamic & 4095;
    b->threads.resize(1024);
    slots.push_back(b);
  }
  return slots[i];
}

char* stack_of(Block* b, unsigned i) { return b->stacks + i * STRIDE; }

void begin(Block* b, uint64_t number, const unsigned grid[3], const unsigned size[3]) {
  b->index = {(unsigned)(number % grid[0]), (unsigned)(number / grid[0] % grid[1]), (unsigned)(number / grid[0] / grid[1])};
  b->live = true;
  b->threads_left = launch.threads;
  b->arrived = 0;
  b->shared.assign((size_t)(launch.kernel->shared_end - launch.kernel->shared), (char)GARBAGE);
  memset(b->dynamic, GARBAGE, launch.dynamic_bytes + CANARY);
  TELL(races_begin(b, b->shared.size()));
  if (launch.in == b) launch.in = nullptr;
  for (unsigned w = 0; w < launch.warps; w++) {
    unsigned left = launch.threads - w * 32, exists = left >= 32 ? ~0u : (1u << left) - 1;
    Warp& warp = b->warps[w];
    warp.exists = warp.ready = exists;
    warp.yielded = warp.waiting = warp.at_barrier = warp.exited = 0;
  }
  for (unsigned i = 0; i < launch.threads; i++) {
    Thread& t = b->threads[i];
    t.index = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]};
    t.lane = i % 32, t.warp = i / 32, t.loads = 0;
    for (auto& s : t.seen) s = {nullptr, 0};
    *(uint64_t*)stack_of(b, i) = (uintptr_t)&t;
    fiber_make(&t.fiber, stack_of(b, i), STACK, thread_main);
  }
}

void end(Block* b) {
  for (unsigned i = 0; i < launch.threads; i++)
    if (*(uint64_t*)stack_of(b, i) != (uintptr_t)&b->threads[i])
      fail(LAUNCH_FAILED, "a thread of block %u needs more than %zu bytes of stack", b->index.x, STACK);
  for (size_t i = 0; i < CANARY; i++)
    if ((unsigned char)b->dynamic[launch.dynamic_bytes + i] != GARBAGE) {
      fail(ILLEGAL_ADDRESS, "block %u wrote beyond its %u bytes of dynamic shared memory", b->index.x, launch.dynamic_bytes);
      break;
    }
  b->live = false;
}

// memcpy for ASan's eyes, which takes what lies between two variables for a mistake.
__attribute__((no_sanitize("address"), optimize("no-tree-loop-distribute-patterns"))) void move(char* to, const char* from,
                                                                                                 size_t bytes) {
  size_t i = 0;
  for (; i + 8 <= bytes; i += 8) *(uint64_t*)(to + i) = *(const uint64_t*)(from + i);
  for (; i < bytes; i++) to[i] = from[i];
}

// Puts the block's shared memory in place.
void enter(Block* b) {
  block = b;
  emulator::block_index = &b->index;
  TELL(races_enter(b, launch.kernel->shared));
  if (launch.in == b) return;
  size_t bytes = (size_t)(launch.kernel->shared_end - launch.kernel->shared);
  if (launch.in && launch.in->live) move(launch.in->shared.data(), launch.kernel->shared, bytes);
  move(launch.kernel->shared, b->shared.data(), bytes);
  launch.in = b;
}

// Says what the threads of a block are doing.
void describe(const Block* b, char* text, size_t size) {
  unsigned exited = 0, yielded = 0, waiting = 0;
  const char* what = "";
  const volatile void* address = nullptr;
  for (unsigned i = 0; i < launch.threads; i++) {
    const Warp& w = b->warps[i / 32];
    unsigned bit = 1u << i % 32;
    if (w.exited & bit) exited++;
    else if (w.waiting & bit) waiting++, what = name(w.kind[i % 32]);
    else if (w.yielded & bit) yielded++, address = b->threads[i].seen[(b->threads[i].loads + 3) % 4].address;
  }
  int n = snprintf(text, size, "of its %u threads %u have ended", launch.threads, exited);
  auto add = [&](const char* format, auto... values) {
    if (n < (int)size) n += snprintf(text + n, size - (size_t)n, format, values...);
  };
  if (b->arrived) add(", %u wait in %s", b->arrived, name(b->barrier));
  if (waiting) add(", %u in %s for lanes that do not come", waiting, what);
  if (yielded) add(", %u for a word to change (%p)", yielded, (void*)address);
}

// Runs a block as far as it gets. Whether it ended.
bool advance(Block* b) {
  enter(b);
  Thread* first = nullptr;
  unsigned from = chaos ? shuffled() % launch.warps : 0;
  for (unsigned i = 0; i < launch.warps; i++) {
    unsigned w = (from + i) % launch.warps;
    b->warps[w].ready |= b->warps[w].yielded;
    b->warps[w].yielded = 0;
    if (!first && b->warps[w].ready) first = &b->threads[w * 32 + pick(b->warps[w].ready, 0)];
  }
  if (first) run(first);
  if (launch.error) return false;
  if (b->threads_left == 0) return end(b), true;
  for (unsigned w = 0; w < launch.warps; w++)
    if (b->warps[w].yielded) return false;
  char text[256];
  describe(b, text, sizeof text);
  fail(BAD_BARRIER, "block %u cannot go on: %s", b->index.x, text);
  return false;
}

void stalled(unsigned resident, const char* how) {
  char text[256] = "";
  unsigned blocks = 0;
  const Block* first = nullptr;
  for (unsigned i = 0; i < resident; i++)
    if (slots[i]->live && !blocks++) first = slots[i];
  if (first) describe(first, text, sizeof text);
  fail(LAUNCH_TIMEOUT, "%s: %u blocks are left; of block %u, %s", how, blocks, first ? first->index.x : 0, text);
}

// Appends the names of the kernels that ran to the file EMULATOR_LAUNCHES.
void note_launch(const char* name) {
  const char* path = getenv("EMULATOR_LAUNCHES");
  FILE* file = path && *path ? fopen(path, "a") : nullptr;
  if (!file) return;
  fprintf(file, "%s\n", name);
  fclose(file);
}

double setting(const char* variable, double otherwise) {
  const char* text = getenv(variable);
  return text && *text ? atof(text) : otherwise;
}

}  // namespace

int emulator_launch(Kernel* kernel, const unsigned grid[3], const unsigned size[3], unsigned dynamic_shared,
                    unsigned resident, const void* args) {
  std::lock_guard<std::mutex> lock(one);
  uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], next = 0, left = blocks;
  unsigned threads = size[0] * size[1] * size[2];
  double begun = now(), seconds = setting("EMULATOR_SECONDS", 120);
  launch = {kernel, args, threads, (threads + 31) / 32, dynamic_shared, nullptr, 0, false, 0, begun + seconds};
  emulator::grid_size = {grid[0], grid[1], grid[2]};
  emulator::block_size = {size[0], size[1], size[2]};
  note_launch(kernel->name);
  double order = setting("EMULATOR_ORDER", 0);
  if (order == 0) chaos = 0;
  else if (!chaos) chaos = (uint64_t)order * 0x9E3779B97F4A7C15ull | 1;
  if (resident > blocks) resident = (unsigned)blocks;
  for (unsigned i = 0; i < resident; i++) begin(slot(i), next++, grid, size);
  // Nothing that any thread saw or did was new for so many rounds of all blocks: nothing ever will be.
  const unsigned ROUNDS = 1000;
  unsigned idle = 0, turns = 0;
  while (left && !launch.error) {
    launch.progress = false;
    for (unsigned i = 0; i < resident && !launch.error; i++) {
      Block* b = slots[i];
      if (!b->live || !advance(b)) continue;
      left--;
      if (next < blocks) begin(b, next++, grid, size);
    }
    idle = launch.progress ? 0 : idle + 1;
    if (idle == ROUNDS) stalled(resident, "nothing changes any more");
    else if (++turns % 64 == 0 && now() > launch.deadline) stalled(resident, "takes longer than EMULATOR_SECONDS");
  }
  TELL(races_report(kernel->name));
  return launch.error;
}
