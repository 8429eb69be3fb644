// The code that a module has: what this library was built with, whatever the image, or the kernels of
// an image that nvrtc.c made.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "scheduler.h"

struct Image {
  Kernel* kernels;
  void* library;
  int file;  // stays open as long as the library: the dynamic linker knows it by its number
};

namespace {

// As nvrtc.c writes it, with the length of the shared object that follows.
const char MAGIC[] = "\x7f" "ELFpgs!";

Image own;
Image* loading = &own;
std::mutex one;

bool fill(int file, const char* from, uint64_t bytes) {
  while (bytes) {
    ssize_t n = write(file, from, bytes);
    if (n <= 0) return false;
    from += n, bytes -= (uint64_t)n;
  }
  return true;
}

}  // namespace

void emulator_register(Kernel* kernel) {
  kernel->next = loading->kernels;
  loading->kernels = kernel;
}

Image* emulator_load(const char* code) {
  if (strncmp(code, MAGIC, sizeof MAGIC - 1)) return &own;
  std::lock_guard<std::mutex> lock(one);
  uint64_t bytes;
  memcpy(&bytes, code + 8, sizeof bytes);
  Image* image = new Image{nullptr, nullptr, memfd_create("image", MFD_CLOEXEC)};
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", image->file);
  loading = image;
  if (fill(image->file, code + 16, bytes)) image->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  loading = &own;
  if (image->library) return image;
  const char* why = dlerror();
  fprintf(stderr, "emulator: an image cannot be loaded: %s\n", why ? why : "no room for it");
  if (image->file >= 0) close(image->file);
  delete image;
  return nullptr;
}

void emulator_unload(Image* image) {
  if (image == &own) return;
  dlclose(image->library);
  close(image->file);
  delete image;
}

Kernel* emulator_find(const Image* image, const char* name) {
  Kernel* kernel = image->kernels;
  while (kernel && strcmp(kernel->name, name)) kernel = kernel->next;
  return kernel;
}
