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
#include "ring/wire/record.h"

namespace host {

class Contexts {
 public:
  // `asleep`: a thread that waits for the GPU in one of these contexts sleeps and does not spin. The guest does not see
  // that, since it keeps its own flags.
  Contexts(const Driver& driver, bool asleep) : driver_(driver), asleep_(asleep) {}

  // One thread at a time begins or ends a context.
  [[nodiscard]] std::unique_lock<std::mutex> beginning() { return std::unique_lock(beginning_); }

  // Each context but the first device's primary one, which is there before the session, counts as so many bytes of its
  // device. Call it before the first record.
  void count_in(DeviceMemory* memory, std::uint64_t bytes) {
    memory_ = memory;
    bytes_ = bytes;
  }

  // The memory that a context has for a limit, if that is more than it began with: until the context ends.
  std::uint64_t grown_to(unsigned number, int limit);
  void grow(unsigned number, int limit, std::uint64_t bytes, Charge charge);

  // The driver's context. Null: the session has no context with this number.
  CUcontext find(unsigned number) const;
  // The same for a green context.
  CUgreenCtx find_green(unsigned number) const;
  // The number of the context whose memory and objects it shares: a green context's device's primary one, else itself.
  unsigned home_of(unsigned number) const;
  // The context's device, as the host counts. A primary context has one also before it is made.
  CUdevice device_of(unsigned number) const;
  // Makes the context current in the calling thread, and a primary context first if it does not exist.
  // CUDA_ERROR_CONTEXT_IS_DESTROYED: a created context that has ended.
  CUresult make_current(unsigned number);

  // A green context can be current in one thread at a time. So no thread of the worker keeps one behind a record.
  void let_go_of_green();

  // Creates a context, which is current in no thread. It gets `flags`, except for the way in which threads wait.
  // `sm_count`: the number of multiprocessors it asks for. Preconditions: `number` is a free number for created
  // contexts.
  CUresult create(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count);
  // The same for a green context. `resources` may be null.
  CUresult create_green(unsigned number, CUdevice device, CUdevResourceDesc resources, unsigned flags);
  // Ends a created context.
  CUresult destroy(unsigned number);
  // The numbers of the green contexts of a device.
  std::vector<unsigned> greens_of(unsigned device) const;
  // Ends everything in a device's primary context, and makes a new one. After a fault the driver makes no new one. The
  // reset succeeds all the same, and a call that needs the context gets the error.
  CUresult reset(unsigned device);

  // How many contexts have ended, resets included.
  std::uint64_t ended() const { return ended_.load(std::memory_order_relaxed); }

  Resources resources;  // of which green contexts are made

 private:
  CUresult retain(unsigned device, CUcontext& context);
  bool may_begin(unsigned number, CUdevice device);
  void end_count(unsigned number, CUdevice device);
  void shrink(unsigned number);

  const Driver& driver_;
  const bool asleep_;
  std::mutex beginning_;
  std::array<std::atomic<CUcontext>, ring::max_contexts> contexts_{};
  std::array<std::atomic<CUgreenCtx>, ring::max_contexts> greens_{};
  std::array<std::atomic<CUdevice>, ring::max_contexts> devices_{};  // of created ones
  DeviceMemory* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::array<std::atomic<bool>, ring::max_contexts> counted_{};
  std::mutex grown_mutex_;
  struct Grown {
    std::map<int, std::uint64_t> bytes;  // by limit
    std::vector<Charge> charges;
  };
  std::array<Grown, ring::max_contexts> grown_;
  std::atomic<std::uint64_t> ended_{0};  // how many contexts have ended: each thread then sets its current one again
};

// Retains a device's primary context, which the first retain makes.
CUresult retain_primary(const Driver& driver, CUdevice device, bool asleep, CUcontext& context);

}  // namespace host
