// A session in the worker: the objects, memory ranges, arena and contexts of one guest process.
//
// Thread-safety: one thread per channel uses a Session; the parts that they share are safe by themselves (Objects,
// Addresses, atomics) or under `mutex_`. making() and ending() see to it that the session knows an object before
// another channel can end it.
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
#include "ring/verify/mutants.h"
#include "ring/view.h"

namespace host {

class HostCalls;  // host/untrusted/lanes/host_calls.h
class Lanes;      // host/untrusted/lanes/lanes.h

// How the worker has the guest call a function of the program's.
struct SessionCallbacks {
  Lanes* lanes = nullptr;            // serve() owns it and sets it before the first record
  std::shared_ptr<HostCalls> calls;  // the lanes make it; without them no function is called
};
class Session {
 public:
  Session(ring::SlotView slot, const Driver& driver, const ServeOptions& options);

  // A call that makes an object of another holds this from before it looks up the other, until the session knows the
  // new object. Without it a reset or an unload on another channel could come in between and end the driver's new
  // object. The session would then note an object that has ended, or forget one that has got the same handle since. A
  // library does not need it, since only a call that names the library ends it.
  [[nodiscard]] std::shared_lock<std::shared_mutex> making() {
    if (ring::wrong(ring::Mutant::making_unlocked)) return {};
    return std::shared_lock(lives_);
  }
  // A call holds this while it ends an object that takes others along.
  [[nodiscard]] std::unique_lock<std::shared_mutex> ending() {
    if (ring::wrong(ring::Mutant::ending_unlocked)) return {};
    return std::unique_lock(lives_);
  }
  // cuDevicePrimaryCtxReset: ends everything in the context but libraries and kernels, and registers the arena again.
  CUresult reset(unsigned device);
  // Create and end a context of the program's. The end takes along everything in the context. Creating a second context
  // with a living one's number breaks the protocol.
  CUresult create_context(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count);
  CUresult destroy_context(unsigned number);
  // The same for a green context, which is destroyed as the others.
  CUresult create_green_context(unsigned number, CUdevice device, CUdevResourceDesc resources, unsigned flags);

  // Whether the session may have one more object or range. Ask before the driver makes it. The channels ask
  // independently, so they may exceed the bound by their number.
  bool may_make_another() const {
    return objects.count() + memory.addresses.count() + memory.reserved.count() < options.objects;
  }
  // A call has closed an object: its memory and what it owns go with it, unless the driver has given its handle more often.
  // Preconditions: of a kind that owns others, ending() is held.
  void close(std::uint64_t id) {
    if (api::has_family(api::Id::of(id).kind)) return forget(objects.drop_with_owned(id));
    if (objects.close(id)) memory.charges.drop(id);
  }
  // An allocation that the driver is about to be asked to free. The session has forgotten it: as soon as it is free, the driver may
  // give its address to another channel's call.
  struct Freed {
    Range range;
    std::uint64_t contexts_ended;
  };
  std::optional<Freed> free(std::uint64_t start) {
    const std::uint64_t ended = contexts.ended();
    const auto range = memory.addresses.free(start);
    return range ? std::optional(Freed{*range, ended}) : std::nullopt;
  }
  // The driver has been asked. An allocation whose end a capture prohibits is the session's as before. Any other is not, even if
  // the driver still holds it.
  void asked_to_free(const Freed& freed, CUresult result);
  // Ends the capture that was begun in a stream, if there is one, and its graph. The driver would end this process at the end of a
  // capture whose stream it has destroyed. Preconditions: ending() is held.
  void end_capture(CUstream stream);
  // Forgets the graph of a capture that has ended without one. `graph`: as Captures::over() tells it. Preconditions: ending() is held.
  void drop_captured(CUgraph graph);
  // Forgets the memory ranges, the charges, the shares of `images` and the links that belonged to these ids, which an unload or a reset has
  // ended.
  void forget(const std::vector<std::uint64_t>& gone);

  // Notes the result of a driver call. If it is a fault of the context, every later call of the guest returns it.
  void note(CUresult result);
  // Has the guest fetch printed text and reports of errors, if there are any. Call it before the guest can see the
  // result to which they belong.
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
  // Under contexts.beginning() and ending().
  CUresult end_context(unsigned number);
  void end_captures(unsigned context);
  void end_capture(CUstream stream, CUgraph began);
  void keep_of_libraries(Mirrors::Variables variables, unsigned device);

  std::shared_mutex lives_;  // taken before contexts.beginning(), which is taken before arena.registering()
};

// True for a result that the context never recovers from.
bool is_fault(CUresult result);

}  // namespace host
