// Runs launches of kernels: a fiber for each CUDA thread, all on the calling thread of the host.
#pragma once
#include <cstddef>

// A kernel of kernels/*/*.cu, as build.py's units register it.
struct Kernel {
  const char* name;
  size_t argument;                // bytes of its one parameter
  void (*call)(const void* args);
  int most_threads, least_blocks;  // __launch_bounds__; 1024 and 1 where not given
  char *shared, *shared_end;      // static shared memory of the kernel's file
  Kernel* next;
};

extern "C" {
struct Image;
// Of the image that is being loaded, or of the library before that.
void emulator_register(Kernel* kernel);
// nullptr where the image is of nvrtc.c and cannot be loaded; the reason is written to stderr.
Image* emulator_load(const char* code);
void emulator_unload(Image* image);
Kernel* emulator_find(const Image* image, const char* name);
// 0, or the driver's code for what went wrong; the reason is written to stderr. The driver checks the
// shape first.
int emulator_launch(Kernel* kernel, const unsigned grid[3], const unsigned block[3], unsigned dynamic_shared,
                    unsigned resident, const void* args);
}
