// Loads the driver from a given path, for test programs that are linked to no CUDA library. CU(cuInit)(0) calls the
// driver's entry point; the program exits if the entry point is missing.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "ring/api/cuda.h"

inline void* library = nullptr;

// Sets and returns `library`; null if the library cannot be opened.
inline void* open_library(const char* path) { return library = dlopen(path, RTLD_NOW | RTLD_LOCAL); }

// Exits if the library lacks the entry point.
template <class F>
F find(const char* name) {
  void* const at = dlsym(library, name);
  if (at == nullptr) std::printf("no %s\n", name), std::exit(9);
  return reinterpret_cast<F>(at);
}
#define CU(fn) find<decltype(&::fn)>(#fn)
