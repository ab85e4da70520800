// The contexts of a session, by the numbers in its guest's records (ring/wire/record.h): each device's primary context,
// and those that the program has created, green ones among them.
//
// Thread-safety: any thread may call find(), device_of() and make_current(). A thread that begins or ends a
// context holds beginning().
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
  // since it keeps its own flags.
  Contexts(const Driver& driver, bool asleep) : driver_(driver), asleep_(asleep) {}

  // Held by a thread while it begins or ends a context.
  ring::Mutex& beginning() RETURN_CAPABILITY(beginning_) { return beginning_; }

  // Counts each context as `bytes` of its device, except the first device's primary one, which exists before the
  // session. Call it before the first record.
  void count_in(DeviceMemory* memory, std::uint64_t bytes) {
    memory_ = memory;
    bytes_ = bytes;
  }

  // Additional memory that a context has taken for a limit, until the context ends.
  std::uint64_t grown_to(unsigned number, int limit);
  void grow(unsigned number, int limit, std::uint64_t bytes, Charge charge);

  // The driver's context. Null: the session has no context with this number.
  CUcontext find(unsigned number) const;
  // The same for a green context.
  CUgreenCtx find_green(unsigned number) const;
  // The number of the context that has its memory and objects: for a green context its device's primary one, else
  // itself.
  unsigned home_of(unsigned number) const;
  // The context's device by the host's ordinal, even for a primary context that is not made yet.
  CUdevice device_of(unsigned number) const;
  // Makes the context current in the calling thread, and creates a primary context if needed.
  // CUDA_ERROR_CONTEXT_IS_DESTROYED if a created context has ended.
  // CUDA_ERROR_CONTEXT_IS_DESTROYED: a created context that has ended.
  CUresult make_current(unsigned number);

  // A green context can be current in one thread at a time, so worker threads release it after each record.
  void let_go_of_green();

  // Creates a context that is current in no thread. `flags` apply, except for how threads wait. `sm_count`: requested
  // number of multiprocessors. Precondition: `number` is a free number for created contexts.
  CUresult create(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count);
  // The same for a green context. `resources` may be null.
  CUresult create_green(unsigned number, CUdevice device, CUdevResourceDesc resources, unsigned flags);
  // Ends a created context.
  CUresult destroy(unsigned number);
  // The numbers of the green contexts of a device.
  std::vector<unsigned> greens_of(unsigned device) const;
  // Ends everything in a device's primary context, and makes a new one. After a fault the driver makes none: the reset
  // still succeeds, and a call that needs the context gets the error.
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
  std::array<std::atomic<CUdevice>, ring::max_contexts> devices_{};  // of created contexts
  DeviceMemory* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::array<std::atomic<bool>, ring::max_contexts> counted_{};
  ring::Mutex grown_mutex_;
  struct Grown {
    std::map<int, std::uint64_t> bytes;  // by limit
    std::vector<Charge> charges;
  };
  std::array<Grown, ring::max_contexts> grown_ GUARDED_BY(grown_mutex_);
  std::atomic<std::uint64_t> ended_{0};  // ended contexts: when it changes, each thread sets its current context again
};

// Retains a device's primary context; the first retain creates it.
CUresult retain_primary(const Driver& driver, CUdevice device, bool asleep, CUcontext& context);

}  // namespace host
