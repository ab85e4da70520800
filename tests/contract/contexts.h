// What the groups about a program's own contexts share.
#pragma once

#include "tests/contract/suite.h"

namespace contract {

// Makes a context, which is current then.
CUcontext make_context(unsigned flags = 0);

// An object of each kind, made in the current context.
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

CUresult launch(CUfunction function, CUstream stream, CUdeviceptr out = 0, unsigned value = 1);

// The low 32 bits there, or 0 when it cannot be read.
unsigned word_at(CUdeviceptr address);

}  // namespace contract
