// The contexts of a session by the numbers that its guest knows them by (ring/wire/record.h): each device's primary
// context, and those that the program has created.
//
// Thread-safety: find(), device_of() and make_current() from any thread; what begins and ends a context is called by one
// at a time (Session holds its mutex).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "host/driver/driver.h"
#include "ring/wire/record.h"

namespace host {

class Contexts {
 public:
  // `asleep`: a thread that waits for the GPU in one of them sleeps. A guest does not see that; it keeps its own flags.
  Contexts(const Driver& driver, bool asleep) : driver_(driver), asleep_(asleep) {}

  // The driver's context; null: the session has none of this number.
  CUcontext find(unsigned number) const;
  // The device that it is on, as the host counts; a primary context's also before it is made.
  CUdevice device_of(unsigned number) const;
  // Makes it the calling thread's current one; a primary context is made where there is none.
  // CUDA_ERROR_CONTEXT_IS_DESTROYED: a created one that is gone.
  CUresult make_current(unsigned number);

  // Another context of a device, with these flags but for how a thread waits; `sm_count`: how many multiprocessors it
  // asks for. It is current nowhere. Preconditions: `number` is that of a created context, and free.
  CUresult create(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count);
  // Ends a created one.
  CUresult destroy(unsigned number);
  // Ends what lives in a device's primary context and makes it anew. After a fault there is no new one: the reset has
  // succeeded all the same, and a call that wants the context gets the error.
  CUresult reset(unsigned device);

 private:
  CUresult retain(unsigned device, CUcontext& context);

  const Driver& driver_;
  const bool asleep_;
  std::array<std::atomic<CUcontext>, ring::max_contexts> contexts_{};
  std::array<std::atomic<CUdevice>, ring::max_contexts> devices_{};  // of created ones
  std::atomic<std::uint64_t> ended_{0};  // how often one has ended: no thread takes its current one for granted then
};

// Makes a device's primary context, or counts one user more.
CUresult retain_primary(const Driver& driver, CUdevice device, bool asleep, CUcontext& context);

}  // namespace host
