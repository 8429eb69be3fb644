// Hazards in shared memory, as compute-sanitizer's racecheck has them. Kernels that were compiled with -fsanitize=thread
// call what is here at each access to memory; the scheduler says where threads meet. Two accesses of a byte by two threads of a
// block, one of them a write, are a hazard unless the block has met in a barrier in between, or their warp in __syncwarp().
// Atomics are none.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "races.h"

namespace emulator {
namespace {

struct Cell {
  unsigned writer = 0, write_block = 0, write_warp = 0;  // the thread's number from 1 on, and how often it had met by then
  const void* write_at = nullptr;
  unsigned lanes = 0;  // that have read since the warp met, of one warp
  unsigned reader = 0, read_block = 0, read_warp = 0;
  const void* read_at = nullptr;
  bool others = false;  // several warps have read since the block met
};

struct Shadow {
  std::vector<Cell> cells;
  unsigned met = 1;
  unsigned warps[32];
};

std::map<const void*, Shadow> shadows;  // by block
Shadow* now;
const char *begin, *end;
std::map<std::tuple<std::string, std::string, const char*>, unsigned> found;

std::string place(const void* pc) {
  Dl_info info;
  char text[512];
  if (!dladdr(pc, &info)) return "?";
  snprintf(text, sizeof text, "%s+0x%zx", info.dli_fname, (size_t)((const char*)pc - (const char*)info.dli_fbase) - 1);
  return text;
}

void note(const void* before, const void* after, const char* kind) { found[{place(before), place(after), kind}]++; }

bool ordered(const Shadow& s, unsigned thread, unsigned other, unsigned block, unsigned warp) {
  if (block != s.met) return true;
  return (thread - 1) / 32 == (other - 1) / 32 && warp != s.warps[(thread - 1) / 32];
}

void access(const char* address, size_t bytes, bool write, const void* pc) {
  if (!now || address + bytes <= begin || address >= end) return;
  Shadow& s = *now;
  unsigned thread = thread_number() + 1, warp = (thread - 1) / 32;
  for (const char* at = address; at < address + bytes; at++) {
    if (at < begin || at >= end) continue;
    Cell& c = s.cells[(size_t)(at - begin)];
    if (c.writer && c.writer != thread && !ordered(s, thread, c.writer, c.write_block, c.write_warp))
      return note(c.write_at, pc, write ? "WAW" : "RAW");
    if (write) {
      unsigned own = c.reader && (c.reader - 1) / 32 == warp ? 1u << (thread - 1) % 32 : 0;
      bool read = c.reader && c.read_block == s.met;
      bool beside = read && (c.others || !own || (c.read_warp == s.warps[warp] && (c.lanes & ~own)));
      if (beside) return note(c.read_at, pc, "WAR");
      c.writer = thread, c.write_block = s.met, c.write_warp = s.warps[warp], c.write_at = pc;
      c.reader = 0, c.lanes = 0, c.others = false;
      continue;
    }
    if (c.reader && c.read_block == s.met && (c.reader - 1) / 32 != warp) c.others = true;
    if (!c.reader || c.read_block != s.met) c.others = false;
    if (!c.reader || c.read_block != s.met || (c.reader - 1) / 32 != warp || c.read_warp != s.warps[warp]) c.lanes = 0;
    c.reader = thread, c.read_block = s.met, c.read_warp = s.warps[warp], c.read_at = pc;
    c.lanes |= 1u << (thread - 1) % 32;
  }
}

}  // namespace

void races_begin(const void* block, size_t bytes) {
  Shadow& s = shadows[block];
  s.cells.assign(bytes, Cell());
  s.met = 1;
  for (unsigned& warp : s.warps) warp = 1;
}
void races_enter(const void* block, const char* shared) {
  now = &shadows[block];
  begin = shared, end = shared + now->cells.size();
}
void races_met() {
  if (now) now->met++;
}
void races_warp_met(unsigned warp) {
  if (now) now->warps[warp]++;
}
void races_report(const char* kernel) {
  const char* file = getenv("EMULATOR_RACES");
  now = nullptr;
  if (!found.empty() && file) {
    FILE* to = fopen(file, "a");
    for (auto& each : found)
      fprintf(to, "%s %s %s %s %u\n", std::get<2>(each.first), kernel, std::get<0>(each.first).c_str(),
              std::get<1>(each.first).c_str(), each.second);
    fclose(to);
  }
  found.clear();
}

}  // namespace emulator

#define PC __builtin_return_address(0)
#define OF(bytes)                                                                                          \
  void __tsan_read##bytes(void* p) { emulator::access((const char*)p, bytes, false, PC); }                \
  void __tsan_write##bytes(void* p) { emulator::access((const char*)p, bytes, true, PC); }                \
  void __tsan_unaligned_read##bytes(void* p) { emulator::access((const char*)p, bytes, false, PC); }      \
  void __tsan_unaligned_write##bytes(void* p) { emulator::access((const char*)p, bytes, true, PC); }      \
  void __tsan_volatile_read##bytes(void* p) { emulator::access((const char*)p, bytes, false, PC); }       \
  void __tsan_volatile_write##bytes(void* p) { emulator::access((const char*)p, bytes, true, PC); }
extern "C" {
OF(1) OF(2) OF(4) OF(8) OF(16)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_read_range(void* p, size_t bytes) { emulator::access((const char*)p, bytes, false, PC); }
void __tsan_write_range(void* p, size_t bytes) { emulator::access((const char*)p, bytes, true, PC); }
}
