// Green contexts: a part of a device's multiprocessors, with streams of its own. Behind all of a device's there is its
// primary context, so its memory and modules are theirs. Kernels run wherever there is room; their %smid is the part's.
//
// A green context's name as a CUcontext is a pointer to the primary context whose owner is the green one. So the owner
// of a thread's current context says by which name it was made current.
#pragma once

#include "host/simgpu/api/objects.h"

#include <memory>
#include <vector>

namespace simgpu {

class Driver;

// Multiprocessors. `split`: of which call to cuDevSmResourceSplitByCount they came; 0: all that a context has.
struct Multiprocessors {
  int device = 0;  // index among the driver's
  unsigned first = 0, count = 0;
  unsigned granularity = 0;
  std::uint64_t split = 0;
};

struct ResourceDescription {
  std::vector<Multiprocessors> parts;
};

struct GreenContext {
  std::shared_ptr<Context> primary;
  CUgreenCtx handle = nullptr;
  CUcontext name = nullptr;  // as a CUcontext; constant once made
  std::uint64_t id = 0;
  Multiprocessors has;
  std::atomic<bool> ended{false};
  Ticket gate;  // all later work in its streams comes after it; under Schedule::order()
};

// The green context by which a context was named; null for a plain one.
std::shared_ptr<GreenContext> green_of(Driver& driver, const std::shared_ptr<Context>& context);

// The green context of a stream; the special streams are the current context's.
std::shared_ptr<GreenContext> green_of(Driver& driver, const Stream& stream);

// Those on which a stream's kernels say that they run.
Multiprocessors multiprocessors_of(Driver& driver, const Stream& stream);

// The name under which a context was found.
CUcontext name_of(Driver& driver, const std::shared_ptr<Context>& context);

}  // namespace simgpu
