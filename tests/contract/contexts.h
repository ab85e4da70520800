// Helpers that cases for created contexts share.
#pragma once

#include <optional>

#include "tests/contract/suite.h"

namespace contract {

// Creates a context and leaves it current.
CUcontext make_context(unsigned flags = 0);

// One object of each kind, created in the current context.
struct Objects {
  Objects();

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction store = nullptr, empty = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr, timed = nullptr;  // both events are recorded
  CUdeviceptr memory = 0, global = 0;        // 64 bytes of value 7; the address of the module's variable `answer`
  void* pinned = nullptr;
};

// Two contexts with objects. Context b is current.
struct Two {
  Two();

  CUcontext a = nullptr, b = nullptr;
  std::optional<Objects> in_a, in_b;
};

CUresult launch(CUfunction function, CUstream stream, CUdeviceptr out = 0, unsigned value = 1);

// Returns the 32 bits at the address, or 0 if they cannot be read.
unsigned word_at(CUdeviceptr address);
// Returns the 32 bits at a pinned address, or 0 if the address is null.
long long word_of(const void* pinned);

}  // namespace contract
