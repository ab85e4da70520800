// The driver of a test's program, by the path that the program is given: CU(cuInit)(0) calls an entry point of it. The
// program opens it and ends when it is not there. For programs that no library of CUDA's is linked into.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "ring/api/cuda.h"

inline void* library = nullptr;

// Null when it cannot be opened, else `library`.
inline void* open_library(const char* path) { return library = dlopen(path, RTLD_NOW | RTLD_LOCAL); }

// Ends the program where the library has no such entry point.
template <class F>
F find(const char* name) {
  void* const at = dlsym(library, name);
  if (at == nullptr) std::printf("no %s\n", name), std::exit(9);
  return reinterpret_cast<F>(at);
}
#define CU(fn) find<decltype(&::fn)>(#fn)
