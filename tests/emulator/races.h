// What the scheduler tells of a launch whose hazards are looked for (races.cpp).
#pragma once
#include <cstddef>
#include <cstdlib>

namespace emulator {
// The thread of its block that runs.
unsigned thread_number();

void races_begin(const void* block, size_t bytes);           // a block begins, of so much static shared memory
void races_enter(const void* block, const char* shared);     // its memory is in place
void races_met();                                            // all threads of the block that runs have met
void races_warp_met(unsigned warp);                          // all lanes of a warp of it
void races_report(const char* kernel);                       // the launch has ended: appends to the file $EMULATOR_RACES
}  // namespace emulator
