// A session in the worker: the objects, memory ranges, arena and contexts of one guest process.
//
// Thread-safety: one thread for each channel uses a Session. Shared members are thread-safe (Objects, Addresses,
// atomics), or `mutex_` guards them. making() and ending() ensure that the session knows an object before another
// channel can end it. clang does not follow the locks of making() and ending(), since functions return them.
//
// Lock order: memory.reserved.changing(); making() or ending(); contexts.beginning(); arena.registering(); then the
// mutexes of the members.
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
#include "host/session/graphs/session_graphs.h"
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

class HostCalls;      // defined in host/untrusted/callbacks/host_calls.h
class CallbackSlots;  // defined in host/untrusted/callbacks/callback_slots.h

// Makes the guest call the program's functions for the worker.
struct SessionCallbacks {
  CallbackSlots* callback_slots = nullptr;  // owned by serve(), which sets this pointer before the first record
  std::shared_ptr<HostCalls> calls;         // made by the callback slots; without it no function of the guest is called
};
class Session {
 public:
  Session(ring::SlotView slot, const Driver& driver, const ServeOptions& options);

  // A call that makes an object from another object holds this lock from the lookup of the older object until the
  // session knows the new one. Otherwise a reset or an unload on another channel could end the new object in between.
  // The session would then record an ended object, or forget a newer object with the same handle. A call that makes an
  // object from a library does not need the lock, since only a call on the library ends it.
  [[nodiscard]] std::shared_lock<ring::SharedMutex> making() {
    if (ring::wrong(ring::Mutant::making_unlocked)) return {};
    return std::shared_lock(lives_);
  }
  // A call holds this lock while it ends an object whose end also ends other objects.
  [[nodiscard]] std::unique_lock<ring::SharedMutex> ending() {
    if (ring::wrong(ring::Mutant::ending_unlocked)) return {};
    return std::unique_lock(lives_);
  }
  // For cuDevicePrimaryCtxReset. Ends everything in the context except libraries and kernels, and registers the arena
  // again.
  CUresult reset(unsigned device);
  // Create and end a context of the program. The end includes everything in the context. Reusing the number of a living
  // context breaks the protocol.
  CUresult create_context(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count);
  CUresult destroy_context(unsigned number);
  // Creates a green context. destroy_context() ends green contexts, too.
  CUresult create_green_context(unsigned number, CUdevice device, CUdevResourceDesc resources, unsigned flags);

  // Returns whether the session may have one more object or range. Must be called before the driver makes one. Channels
  // check independently, so the limit may be exceeded by the number of channels.
  bool may_make_another() const {
    return objects.count() + memory.addresses.count() + memory.reserved.count() < options.objects;
  }
  // Commits the close of an object. The object's memory and the objects it owns end with it, unless the driver has
  // returned the object's handle more often. Precondition: ending() is held if the kind owns other objects.
  void close(std::uint64_t id) {
    if (api::has_family(api::Id::of(id).kind)) return forget(objects.drop_with_owned(id));
    if (objects.close(id)) memory.charges.drop(id);
  }
  // An allocation that the driver is about to free. The session has already forgotten the allocation, because the
  // driver may return its address to another channel's call as soon as it is free.
  struct Freed {
    Range range;
    std::uint64_t contexts_ended;
  };
  std::optional<Freed> free(std::uint64_t start) {
    const std::uint64_t ended = contexts.ended();
    const auto range = memory.addresses.free(start);
    return range ? std::optional(Freed{*range, ended}) : std::nullopt;
  }
  // Called with the driver's result of a free. If a capture prohibits the free, the session records the allocation
  // again. In all other cases the allocation stays forgotten, even if the driver still has the memory.
  void asked_to_free(const Freed& freed, CUresult result);
  // Ends the capture that was begun in a stream, if any, and the capture's graph. Must be called before the stream is
  // destroyed: the driver would end this process at the end of a capture whose stream it has destroyed. Precondition:
  // ending() is held.
  void end_capture(CUstream stream);
  // Forgets the graph of a capture that ended without producing one. `graph`: the result of Captures::over().
  // Precondition: ending() is held.
  void drop_captured(CUgraph graph);
  // Forgets the memory ranges, charges, image shares and links of these ids, which an unload or a reset has ended.
  void forget(const std::vector<std::uint64_t>& gone);

  // Records the result of a driver call. After a fault of the context, every later call of the guest returns the fault.
  void note(CUresult result);
  // Makes the guest fetch printed text and error reports, if there are any. Must be called before the guest can see the
  // result to which the text belongs.
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
  // Ends a context. Called under ending().
  CUresult end_context(unsigned number) REQUIRES(contexts.beginning());
  void end_captures(unsigned context);
  void end_capture(CUstream stream, CUgraph began);
  void keep_of_libraries(ShadowCopies::Variables variables, unsigned device);

  ring::SharedMutex lives_;
};

// True for a result from which the context never recovers.
bool is_fault(CUresult result);

}  // namespace host
