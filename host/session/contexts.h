// The contexts of a session, by the numbers in its guest's records (ring/wire/record.h): each device's primary context,
// and the contexts that the program has created, green contexts included.
//
// Thread-safety: any thread may call find(), device_of() and make_current(). A thread that begins or ends a context
// must hold the lock beginning().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "host/driver/driver.h"
#include "host/session/memory/device_memory.h"
#include "host/session/resources.h"
#include "ring/base/mutex.h"
#include "ring/wire/record.h"

namespace host {

class Contexts {
 public:
  // `asleep`: threads that wait for the GPU in these contexts sleep instead of spinning. The guest does not notice,
  // since it stores its own flags.
  Contexts(const Driver& driver, bool asleep) : driver_(driver), asleep_(asleep) {}

  // The lock that a thread holds while it begins or ends a context.
  ring::Mutex& beginning() RETURN_CAPABILITY(beginning_) { return beginning_; }

  // Counts each context as `bytes` of its device's memory, except the first device's primary context, which exists
  // before the session. Must be called before the first record.
  void count_in(DeviceMemory* memory, std::uint64_t bytes) {
    memory_ = memory;
    bytes_ = bytes;
  }

  // Returns the additional memory that a context has taken for a limit. It is taken until the context ends.
  std::uint64_t grown_to(unsigned number, int limit);
  void grow(unsigned number, int limit, std::uint64_t bytes, Charge charge);

  // Returns the driver's context, or null if the session has no context with this number.
  CUcontext find(unsigned number) const;
  // Returns the driver's green context, or null if the session has no green context with this number.
  CUgreenCtx find_green(unsigned number) const;
  // Returns the number of the context that owns this context's memory and objects: the device's primary context for a
  // green context, else the context itself.
  unsigned home_of(unsigned number) const;
  // Returns the context's device as the host's ordinal, even for a primary context that does not exist yet.
  CUdevice device_of(unsigned number) const;
  // Makes the context current in the calling thread, and creates a primary context if needed. Returns
  // CUDA_ERROR_CONTEXT_IS_DESTROYED if a created context has ended.
  CUresult make_current(unsigned number);

  // A green context can be current in only one thread at a time. Worker threads therefore release it after each record.
  void let_go_of_green();

  // Creates a context that is current in no thread. `flags` apply, except for how threads wait. `sm_count`: the
  // requested number of multiprocessors. Precondition: `number` is a free number for created contexts.
  CUresult create(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count);
  // Creates a green context, as create() creates a context. `resources` may be null.
  CUresult create_green(unsigned number, CUdevice device, CUdevResourceDesc resources, unsigned flags);
  // Ends a created context.
  CUresult destroy(unsigned number);
  // Returns the numbers of the green contexts of a device.
  std::vector<unsigned> greens_of(unsigned device) const;
  // Ends everything in a device's primary context, and makes a new one. After a fault the driver makes no context: the
  // reset still succeeds, and a call that needs the context returns the error.
  CUresult reset(unsigned device);

  // The number of contexts that have ended, resets included.
  std::uint64_t ended() const { return ended_.load(std::memory_order_relaxed); }

  Resources resources;  // the resources from which green contexts are made

 private:
  CUresult retain(unsigned device, CUcontext& context);
  bool may_begin(unsigned number, CUdevice device);
  void end_count(unsigned number, CUdevice device);
  void shrink(unsigned number);

  const Driver& driver_;
  const bool asleep_;
  ring::Mutex beginning_;
  std::array<std::atomic<CUcontext>, ring::max_contexts> contexts_{};
  std::array<std::atomic<CUgreenCtx>, ring::max_contexts> greens_{};
  std::array<std::atomic<CUdevice>, ring::max_contexts> devices_{};  // devices of the created contexts
  DeviceMemory* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::array<std::atomic<bool>, ring::max_contexts> counted_{};
  ring::Mutex grown_mutex_;
  struct Grown {
    std::map<int, std::uint64_t> bytes;  // keyed by limit
    std::vector<Charge> charges;
  };
  std::array<Grown, ring::max_contexts> grown_ GUARDED_BY(grown_mutex_);
  // Number of ended contexts: when it changes, each thread sets its current context again.
  std::atomic<std::uint64_t> ended_{0};
};

// Retains a device's primary context. The first retain creates the context.
CUresult retain_primary(const Driver& driver, CUdevice device, bool asleep, CUcontext& context);

}  // namespace host
