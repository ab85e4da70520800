// Green contexts: some multiprocessors of a device, with streams of their own. All share the device's primary context,
// including its memory and modules. Kernels run on any multiprocessor, but report the green context's in %smid.
//
// A green context as a CUcontext is a pointer to the primary context whose owner is the green context. The owner of a
// thread's current context therefore gives the name under which it was made current.
#pragma once

#include "host/simgpu/api/objects.h"

#include <memory>
#include <vector>

namespace simgpu {

class Driver;

// `split` names the call of cuDevSmResourceSplitByCount that made this part; 0: the whole device.
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
  Ticket gate;  // all later work in its streams waits for it; under Schedule::order()
};

// The green context through which a context was named; null for a plain context.
std::shared_ptr<GreenContext> green_of(Driver& driver, const std::shared_ptr<Context>& context);

// The green context of a stream; special streams belong to the current context.
std::shared_ptr<GreenContext> green_of(Driver& driver, const Stream& stream);

// The multiprocessors that a stream's kernels report.
Multiprocessors multiprocessors_of(Driver& driver, const Stream& stream);

// The handle under which a context was found.
CUcontext name_of(Driver& driver, const std::shared_ptr<Context>& context);

}  // namespace simgpu
