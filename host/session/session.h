// A session in the worker: the objects, memory ranges, arena and contexts of one guest process.
//
// Thread-safety: one thread per channel uses a Session; the parts that they share are safe by themselves (Objects,
// Addresses, atomics) or under `mutex_`. making() and ending() see to it that the session knows an object before
// another channel can end it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "host/driver/driver.h"
#include "host/session/captures.h"
#include "host/session/conditionals.h"
#include "host/session/contexts.h"
#include "host/session/gpu_use.h"
#include "host/session/links.h"
#include "host/session/long_waits.h"
#include "host/session/memory/addresses.h"
#include "host/session/memory/avoided.h"
#include "host/session/memory/budget.h"
#include "host/session/memory/charges.h"
#include "host/session/memory/device_memory.h"
#include "host/session/memory/mirrors.h"
#include "host/session/memory/pools.h"
#include "host/session/memory/virtual_ranges.h"
#include "host/session/objects.h"
#include "host/session/parameter_places.h"
#include "host/session/resources.h"
#include "host/session/telemetry.h"
#include "ring/verify/mutants.h"
#include "ring/view.h"

namespace host {

class HostCalls;  // host/untrusted/lanes/host_calls.h
class Lanes;      // host/untrusted/lanes/lanes.h
class Session;

inline constexpr std::uint32_t all_windows = (1u << ring::window_count) - 1;

struct ServeOptions {
  std::uint32_t spin_us = 50;        // how long a channel polls before it parks; 0: park at once
  std::uint32_t chaos_delay_us = 0;  // test switch: up to this many microseconds of random delay before each record
  bool waits_asleep = false;         // threads also sleep in the driver, where they would spin behind a long kernel
  std::uint32_t wait_spin_ms = 20;   // how long all channels but one may spin there; 0: without bound
  std::uint32_t channels = ring::max_channels;
  std::uint64_t image_bytes = std::uint64_t{2} << 30;  // bound on the bytes of images, those being loaded included
  std::uint64_t objects = 262144;                      // bound on the number of objects and memory ranges
  std::byte* telemetry = nullptr;                      // mapped, ring::telemetry_bytes long; null: nobody reads it
  GpuUsePages gpu_use{};                               // no pages: nobody schedules it
  bool borrows = false;                                // device memory, from the broker, by the control socket
  std::uint64_t context_bytes = 0;                     // what a context of a device takes of its memory
  Lender* lender = nullptr;                            // serve() sets it where it borrows; tests: their own
  std::uint32_t windows = 0;                           // a bit for each arena window that the process has reserved
  int interrupt_fd = -1;                               // an eventfd that interrupts the guest; -1: nothing does
  int life_fd = -1;                                    // with the next two: of the worker's LifeLine
  std::chrono::milliseconds outlive{0};
  bool rung_by_broker = false;
  bool join_at_end = false;             // tests: wait for the channels' threads instead of ending the process
  void (*serving)(Session&) = nullptr;  // tests: called before the first record; the session lasts as long as serve()
};

class Session {
 public:
  Session(ring::SlotView slot, const Driver& driver, const ServeOptions& options);

  // Moves the arena to a window's address, where the guest has mapped it, too. False: the window was not reserved, or
  // was tried before, or the move failed.
  bool bind_arena(std::uint64_t window);
  // Registers [offset, offset + bytes) of the arena with the GPU. Preconditions: the range lies in the arena.
  CUresult pin(std::uint64_t offset, std::uint64_t bytes);
  // The same, in place of all registrations inside the range. On failure none of these is left.
  // CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: a registration reaches out of the range, and nothing has changed.
  CUresult join_pins(std::uint64_t offset, std::uint64_t bytes);
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

  // The arena's bytes [offset, offset + bytes). If not all of them are inside, the result is not there().
  ring::SharedBytes arena(std::uint64_t offset, std::uint64_t bytes) const {
    if (offset > arena_bytes_ || bytes > arena_bytes_ - offset) return {};
    return {arena_.load(std::memory_order_relaxed) + offset, bytes};
  }
  bool in_arena(std::uint64_t address) const { return address - arena_address() < arena_bytes_; }
  std::uint64_t arena_address() const {
    return reinterpret_cast<std::uint64_t>(arena_.load(std::memory_order_relaxed));
  }
  // hello comes once, on one channel. Afterwards the arena keeps its address. Before it no other call is served, or a
  // channel could use the arena's address while another moves the arena. Edge G, greeting -> use: a channel that sees
  // greeted() sees the arena's address.
  bool greeted() const { return greeting_.load(std::memory_order_acquire) == Greeting::Done; }  // G
  bool begin_greeting() {
    Greeting none = Greeting::None;
    return greeting_.compare_exchange_strong(none, Greeting::Begun, std::memory_order_relaxed);
  }
  void end_greeting(bool done) {
    greeting_.store(done ? Greeting::Done : Greeting::None, std::memory_order_release);  // G
  }

  // Whether the address lies in memory of the session's, or in a range that it has reserved.
  bool knows_address(std::uint64_t at) const { return addresses.knows(at) || reserved.holds(at, 1); }

  // Whether the session may have one more object or range. Ask before the driver makes it. The channels ask
  // independently, so they may exceed the bound by their number.
  bool may_make_another() const { return objects.count() + addresses.count() + reserved.count() < options.objects; }
  // A call has closed an object: its memory and what it owns go with it, unless the driver has given its handle more often.
  // Preconditions: of a kind that owns others, ending() is held.
  void close(std::uint64_t id) {
    if (api::has_family(api::Id::of(id).kind)) return forget(objects.drop_with_owned(id));
    if (objects.close(id)) charges.drop(id);
  }
  // An allocation that the driver is about to be asked to free. The session has forgotten it: as soon as it is free, the driver may
  // give its address to another channel's call.
  struct Freed {
    Range range;
    std::uint64_t contexts_ended;
  };
  std::optional<Freed> free(std::uint64_t start) {
    const std::uint64_t ended = contexts.ended();
    const auto range = addresses.free(start);
    return range ? std::optional(Freed{*range, ended}) : std::nullopt;
  }
  // The driver has been asked. An allocation whose end a capture prohibits is the session's as before. Any other is not, even if
  // the driver still holds it.
  void asked_to_free(const Freed& freed, CUresult result);
  // An allocation has ended, and the driver has its memory back.
  void ended(const Range& allocation) {
    device_memory.give_back(allocation.device, allocation.charged);
    pools.ended(allocation.pool);
  }
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
  DeviceMemory device_memory;
  Pools pools;
  Charges charges;
  Objects objects;
  Captures captures;
  Conditionals conditionals;
  ParameterPlaces parameter_places;
  Addresses addresses;
  VirtualRanges reserved{addresses};
  Contexts contexts;
  LongWaits long_waits;
  Budget image_budget;
  Shares images;
  Links links;
  Mirrors mirrors;
  Avoided avoided;
  Resources resources;
  GpuUse gpu_use{*this, options.gpu_use};
  std::atomic<bool> broken{false};        // the guest broke the protocol: every channel stops
  Lanes* lanes = nullptr;                 // serve() owns it and sets it before the first record
  std::shared_ptr<HostCalls> host_calls;  // the lanes make it; without them no function is called

 private:
  // Under mutex_ and ending().
  CUresult end_context(unsigned number);
  void end_captures(unsigned context);
  void end_capture(CUstream stream, CUgraph began);
  void keep_of_libraries(Mirrors::Variables variables, unsigned device);
  CUresult register_arena(std::uint64_t offset, std::uint64_t bytes);
  CUresult unregister_arena(std::uint64_t offset, std::uint64_t bytes);

  std::atomic<std::byte*> arena_;
  std::size_t arena_bytes_;
  std::uint32_t windows_;  // reserved windows that were not tried yet; only the channel with hello uses it
  enum class Greeting : std::uint8_t { None, Begun, Done };
  std::atomic<Greeting> greeting_{Greeting::None};
  std::shared_mutex lives_;  // taken before mutex_
  std::mutex mutex_;         // contexts, and which pieces of the arena are registered
};

// True for a result that the context never recovers from.
bool is_fault(CUresult result);

}  // namespace host
