// Helpers for the groups about contexts that a program creates.
#pragma once

#include <optional>

#include "tests/contract/suite.h"

namespace contract {

// Makes a context and leaves it current.
CUcontext make_context(unsigned flags = 0);

// One object of each kind, made in the current context.
struct Objects {
  Objects();

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction store = nullptr, empty = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr, timed = nullptr;  // both are recorded
  CUdeviceptr memory = 0, global = 0;        // 64 bytes of value 7; the module's `answer`
  void* pinned = nullptr;
};

// Two contexts with objects; b is current.
struct Two {
  Two();

  CUcontext a = nullptr, b = nullptr;
  std::optional<Objects> in_a, in_b;
};

CUresult launch(CUfunction function, CUstream stream, CUdeviceptr out = 0, unsigned value = 1);

// The 32 bits at the address, or 0 if they cannot be read.
unsigned word_at(CUdeviceptr address);
// The same for pinned memory; 0 if it is null.
long long word_of(const void* pinned);

}  // namespace contract
