// One guest process as its worker sees it: objects, memory ranges, arena and contexts.
//
// Thread-safety: one thread per channel uses a Session; the parts that they share are safe by themselves (Objects,
// Addresses, atomics) or under `mutex_`. An object that a call makes is known here before another channel can end it
// unseen: making() and ending().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "host/driver/driver.h"
#include "host/session/addresses.h"
#include "host/session/budget.h"
#include "host/session/contexts.h"
#include "host/session/long_waits.h"
#include "host/session/objects.h"
#include "host/session/telemetry.h"
#include "ring/mutants.h"
#include "ring/view.h"

namespace host {

class Lanes;  // host/untrusted/lanes.h
class Session;

inline constexpr std::uint32_t all_windows = (1u << ring::window_count) - 1;

struct ServeOptions {
  std::uint32_t spin_us = 50;        // how long a channel polls before it parks; 0: park at once
  std::uint32_t chaos_delay_us = 0;  // test switch: up to this many microseconds of random delay before each record
  bool waits_asleep = false;         // in the driver, too: a thread behind a long kernel would spin there
  std::uint32_t wait_spin_ms = 20;   // how long others than one of the channels may spin there; 0: without bound
  std::uint32_t channels = ring::max_channels;
  std::uint64_t image_bytes = std::uint64_t{2} << 30;  // of images at most, those that are being loaded included
  std::uint64_t objects = 262144;                      // at most: things with an id or a range of memory
  std::byte* telemetry = nullptr;                      // mapped, of ring::telemetry_bytes; null: it is not read
  std::uint32_t windows = 0;                           // a bit for each arena window that the process has reserved
  bool join_at_end = false;             // tests: wait for the channels' threads instead of ending the process
  void (*serving)(Session&) = nullptr;  // tests: called before the first record; the session lasts as long as serve()
};

class Session {
 public:
  Session(ring::SlotView slot, const Driver& driver, const ServeOptions& options);

  // Maps the arena at a window's address, where the guest has it, too. False when that place is not to be had: not
  // reserved, or tried before.
  bool bind_arena(std::uint64_t window);
  // Registers [offset, offset + bytes) of the arena with the GPU. Preconditions: the range lies in the arena.
  CUresult pin(std::uint64_t offset, std::uint64_t bytes);
  // The same in place of all registrations inside of the range; where this fails, none of them is left. One that
  // reaches out of the range: CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, and nothing has changed.
  CUresult join_pins(std::uint64_t offset, std::uint64_t bytes);
  // Held from before a call looks up the object that it makes something of, until the driver's new object is known
  // here. Otherwise a reset or an unload of another channel may pass between the two: the driver's object ends with it,
  // and the session then comes to know an object that is gone, or forgets one for which a later call has got the same
  // handle. A library does not need it: nothing ends it but its own name.
  [[nodiscard]] std::shared_lock<std::shared_mutex> making() {
    if (ring::wrong(ring::Mutant::making_unlocked)) return {};
    return std::shared_lock(lives_);
  }
  // Held while an object ends and takes along others that it does not name.
  [[nodiscard]] std::unique_lock<std::shared_mutex> ending() {
    if (ring::wrong(ring::Mutant::ending_unlocked)) return {};
    return std::unique_lock(lives_);
  }
  // cuDevicePrimaryCtxReset: everything in the context is gone, libraries and kernels stay, the arena is registered
  // again.
  CUresult reset(unsigned device);
  // A context that the program has created, and its end, which takes along what lived in it. Two of one number at once
  // break the protocol.
  CUresult create_context(unsigned number, CUdevice device, unsigned flags, std::optional<unsigned> sm_count);
  CUresult destroy_context(unsigned number);

  // The arena's bytes [offset, offset + bytes); not there() when they are not all inside.
  ring::SharedBytes arena(std::uint64_t offset, std::uint64_t bytes) const {
    if (offset > arena_bytes_ || bytes > arena_bytes_ - offset) return {};
    return {arena_.load(std::memory_order_relaxed) + offset, bytes};
  }
  bool in_arena(std::uint64_t address) const { return address - arena_address() < arena_bytes_; }
  std::uint64_t arena_address() const {
    return reinterpret_cast<std::uint64_t>(arena_.load(std::memory_order_relaxed));
  }
  // hello: one channel greets, once. From then on the arena lies still; before, nothing else is served, or a channel
  // could use the arena's place while another moves it. G, greeting -> use: a channel that sees greeted() knows the
  // place.
  bool greeted() const { return greeting_.load(std::memory_order_acquire) == Greeting::Done; }  // G
  bool begin_greeting() {
    Greeting none = Greeting::None;
    return greeting_.compare_exchange_strong(none, Greeting::Begun, std::memory_order_relaxed);
  }
  void end_greeting(bool done) {
    greeting_.store(done ? Greeting::Done : Greeting::None, std::memory_order_release);  // G
  }

  // Asked before the driver makes something that is remembered here. Each channel asks for itself, so together they may
  // pass the bound by as many as they are.
  bool may_make_another() const { return objects.count() + addresses.count() < options.objects; }
  // Forgets the ids that unloading or a reset has taken along: memory ranges and shares of `images` go with them.
  void forget(const std::vector<std::uint64_t>& gone);

  // Remembers the result of a driver call: a fault of the context is returned by every later call of the guest.
  void note(CUresult result);
  // Has the guest fetch printed text and reports of errors, if there are any. Call it before the guest can see the
  // result that they belong to.
  void offer_output() const;

  const ring::SlotView slot;
  const Driver& driver;
  const ServeOptions options;
  const Telemetry telemetry;
  Objects objects;
  Addresses addresses;
  Contexts contexts;
  LongWaits long_waits;
  Budget image_budget;
  Shares images;
  std::atomic<bool> broken{false};  // the guest broke the protocol: every channel stops
  Lanes* lanes = nullptr;           // of serve(), which sets it before the first record

 private:
  CUresult register_arena(std::uint64_t offset, std::uint64_t bytes);
  CUresult unregister_arena(std::uint64_t offset, std::uint64_t bytes);

  std::atomic<std::byte*> arena_;
  std::size_t arena_bytes_;
  std::uint32_t windows_;  // the reserved ones that were not tried yet; only the channel that greets uses it
  enum class Greeting : std::uint8_t { None, Begun, Done };
  std::atomic<Greeting> greeting_{Greeting::None};
  std::shared_mutex lives_;  // taken before mutex_
  std::mutex mutex_;         // contexts, and which pieces of the arena are registered
};

// True for a result that the context never recovers from.
bool is_fault(CUresult result);

}  // namespace host
