// Fibers: stacks that a thread of the host changes between by itself.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__) && !defined(EMULATOR_UCONTEXT)

// The registers that a call leaves alone lie on the stack of a fiber that waits; swapcontext would make
// two system calls for the signal mask.
struct Fiber {
  void* sp;
};

extern "C" void emulator_switch(Fiber* from, Fiber* to);
asm(R"(
.text
.globl emulator_switch
.hidden emulator_switch
.type emulator_switch, @function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulator_switch, . - emulator_switch
)");

// entry must not return.
inline void fiber_make(Fiber* fiber, char* stack, size_t bytes, void (*entry)()) {
  uintptr_t top = ((uintptr_t)stack + bytes) & ~(uintptr_t)63;
  uint64_t* sp = (uint64_t*)top;
  *--sp = 0;  // where a caller would have its return address: ends a debugger's walk
  *--sp = (uint64_t)entry;
  for (int i = 0; i < 6; i++) *--sp = 0;
  fiber->sp = sp;
}

#else
#include <ucontext.h>

struct Fiber {
  ucontext_t context;
};

inline void emulator_switch(Fiber* from, Fiber* to) { swapcontext(&from->context, &to->context); }

inline void fiber_make(Fiber* fiber, char* stack, size_t bytes, void (*entry)()) {
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = stack;
  fiber->context.uc_stack.ss_size = bytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, entry, 0);
}
#endif
