// A session in the worker: the objects, memory ranges, arena and contexts of one guest process.
//
// Thread-safety: one thread per channel uses a Session. The shared parts are safe by themselves (Objects, Addresses,
// atomics) or under `mutex_`. making() and ending() ensure that the session knows an object before another channel can
// end it. clang does not follow these two locks, since functions return them.
//
// Lock order: memory.reserved.changing(); making() or ending(); contexts.beginning(); arena.registering(); then the
// mutexes of the parts.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "host/driver/driver.h"
#include "host/session/code.h"
#include "host/session/contexts.h"
#include "host/session/gpu_use.h"
#include "host/session/graphs.h"
#include "host/session/long_waits.h"
#include "host/session/memory/arena.h"
#include "host/session/objects.h"
#include "host/session/protocol.h"
#include "host/session/serve_options.h"
#include "host/session/session_memory.h"
#include "host/session/telemetry.h"
#include "ring/base/mutex.h"
#include "ring/verify/mutants.h"
#include "ring/view.h"

namespace host {

class HostCalls;      // host/untrusted/callbacks/host_calls.h
class CallbackSlots;  // host/untrusted/callbacks/callback_slots.h

// Has the guest call the program's functions for the worker.
struct SessionCallbacks {
  CallbackSlots* callback_slots = nullptr;  // serve() owns it and sets it before the first record
  std::shared_ptr<HostCalls> calls;         // made by the lanes; without it no function of the guest is called
};
class Session {
 public:
  Session(ring::SlotView slot, const Driver& driver, const ServeOptions& options);

  // A call that makes an object from another holds this from that object's lookup until the session knows the new
  // one. Otherwise a reset or an unload on another channel could end the new object in between. The session would then
  // record an ended object, or forget an object that has got the same handle since. A library does not need it, since
  // only a call that names the library ends it.
  [[nodiscard]] std::shared_lock<ring::SharedMutex> making() {
    if (ring::wrong(ring::Mutant::making_unlocked)) return {};
    return std::shared_lock(lives_);
  }
  // A call holds this while it ends an object that ends others, too.
  [[nodiscard]] std::unique_lock<ring::SharedMutex> ending() {
    if (ring::wrong(ring::Mutant::ending_unlocked)) return {};
    return std::unique_lock(lives_);
  }
  // cuDevicePrimaryCtxReset: ends everything in the context but libraries and kernels, and registers the arena again.
  CUresult reset(unsigned device);
  // Create and end a context of the program; the end includes everything in it. Reusing a living context's number
  // breaks the protocol.
  CUresult create_context(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count);
  CUresult destroy_context(unsigned number);
  // Creates a green context; destroy_context() ends it, too.
  CUresult create_green_context(unsigned number, CUdevice device, CUdevResourceDesc resources, unsigned flags);

  // True if the session may have one more object or range. Call it before the driver makes one. Channels check
  // independently, so they may exceed the limit by their number.
  bool may_make_another() const {
    return objects.count() + memory.addresses.count() + memory.reserved.count() < options.objects;
  }
  // Commits the close of an object: its memory and the objects it owns go with it, unless the driver has given its
  // handle more often. Precondition: ending() is held if the kind owns others.
  void close(std::uint64_t id) {
    if (api::has_family(api::Id::of(id).kind)) return forget(objects.drop_with_owned(id));
    if (objects.close(id)) memory.charges.drop(id);
  }
  // An allocation that the driver is about to free. The session has forgotten it already, because the driver may give
  // its address to another channel's call as soon as it is free.
  struct Freed {
    Range range;
    std::uint64_t contexts_ended;
  };
  std::optional<Freed> free(std::uint64_t start) {
    const std::uint64_t ended = contexts.ended();
    const auto range = memory.addresses.free(start);
    return range ? std::optional(Freed{*range, ended}) : std::nullopt;
  }
  // Takes the driver's result. If a capture prohibits the free, the session has the allocation as before. In all other
  // cases it does not, even if the driver still holds the memory.
  void asked_to_free(const Freed& freed, CUresult result);
  // Ends the capture that was begun in a stream, if any, and its graph. The driver would end this process at the end of
  // a capture whose stream it has destroyed. Precondition: ending() is held.
  void end_capture(CUstream stream);
  // Forgets the graph of a capture that ended without one. `graph` as Captures::over() returns it. Precondition:
  // ending() is held.
  void drop_captured(CUgraph graph);
  // Forgets the memory ranges, charges, image shares and links of these ids, which an unload or a reset has ended.
  void forget(const std::vector<std::uint64_t>& gone);

  // Notes the result of a driver call. After a fault of the context every later call of the guest returns it.
  void note(CUresult result);
  // Makes the guest fetch printed text and error reports, if there are any. Call it before the guest can see the result
  // to which they belong.
  void offer_output() const;

  const ring::SlotView slot;
  const Driver& driver;
  const ServeOptions options;
  const Telemetry telemetry;
  SessionMemory memory;
  Arena arena;
  Objects objects;
  SessionGraphs graphs;
  LoadedCode code;
  Contexts contexts;
  LongWaits long_waits;
  GpuUse gpu_use{*this, options.gpu_use};
  Protocol protocol;
  SessionCallbacks callbacks;

 private:
  // Called under ending().
  CUresult end_context(unsigned number) REQUIRES(contexts.beginning());
  void end_captures(unsigned context);
  void end_capture(CUstream stream, CUgraph began);
  void keep_of_libraries(ShadowCopies::Variables variables, unsigned device);

  ring::SharedMutex lives_;
};

// True for a result from which the context never recovers.
bool is_fault(CUresult result);

}  // namespace host
