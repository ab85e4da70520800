// Green contexts: some multiprocessors of a device, with streams of their own. All green contexts of a device share its
// primary context, including memory and modules. The simulation does not confine kernels to these multiprocessors, but
// %smid reports only numbers of the green context.
//
// The CUcontext of a green context is represented by a shared pointer that owns the green context and points to the
// primary context. The owner of a thread's current context therefore shows whether the thread uses a green context.
#pragma once

#include "host/simgpu/api/objects.h"

#include <memory>
#include <vector>

namespace simgpu {

class Driver;

// `split` is the id of the cuDevSmResourceSplitByCount call that produced this part; 0: the whole device.
struct Multiprocessors {
  int device = 0;  // index among the driver's devices
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
  CUcontext name = nullptr;  // its handle as a CUcontext; constant after creation
  std::uint64_t id = 0;
  Multiprocessors has;
  std::atomic<bool> ended{false};
  Ticket gate;  // later work in its streams waits for this ticket; protected by Schedule::order()
};

// Returns the green context that owns the pointer `context`; null for a plain context.
std::shared_ptr<GreenContext> green_of(Driver& driver, const std::shared_ptr<Context>& context);

// Returns the green context of a stream. The special streams (NULL, legacy, per-thread) belong to the current context.
std::shared_ptr<GreenContext> green_of(Driver& driver, const Stream& stream);

// Returns the multiprocessors whose numbers the kernels of a stream report in %smid.
Multiprocessors multiprocessors_of(Driver& driver, const Stream& stream);

// Returns the handle through which the program refers to this context: the green or the primary context's.
CUcontext name_of(Driver& driver, const std::shared_ptr<Context>& context);

}  // namespace simgpu
