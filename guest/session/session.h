// This process's session with a worker. cuInit makes it and never destroys it, since programs call this library until
// their end. It owns the claim on a slot, the slot, liveness, channels, the arena's binding, and the program's objects;
// each has its own file. Any thread may call an open session.
//
// Invariant: a session from open() has claimed its slot, and the worker has answered its hello. leave() gives the slot
// back once, when no thread is writing a record. Trust: each member's file states its own; this file reads nothing that
// the host writes.
//
// Ordering: set_session() releases a complete session, session() acquires it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "guest/objects/accepted_nodes.h"
#include "guest/objects/captures.h"
#include "guest/objects/memory/addresses.h"
#include "guest/objects/memory/arena.h"
#include "guest/objects/memory/managed_ranges.h"
#include "guest/objects/memory/occupied.h"
#include "guest/objects/memory/registered.h"
#include "guest/objects/memory/virtual_ranges.h"
#include "guest/objects/objects.h"
#include "guest/objects/textures.h"
#include "guest/objects/variables.h"
#include "guest/region/region.h"
#include "guest/session/arena_binding.h"
#include "guest/session/callbacks.h"
#include "guest/session/channel.h"
#include "guest/session/channels.h"
#include "guest/session/sleeper.h"
#include "guest/session/slot/claim.h"
#include "guest/session/slot/heartbeat.h"
#include "guest/session/slot/liveness.h"
#include "guest/session/slot/slot.h"
#include "guest/session/worker_bell.h"

namespace guest {

class Session {
 public:
  // Claims a slot of the region and sends hello to its worker. If another program has overwritten the slot, it tries
  // the next. Null and a log line: no slot became free in time, or the worker refuses. `reserve_device`: keep device
  // addresses free of this process's own mappings; tests with the simulated GPU in their process switch it off.
  static std::unique_ptr<Session> open(std::unique_ptr<Region> region, bool reserve_device = true);
  ~Session();

  const ring::DevicePage& devices() const { return slot_.devices(); }
  // The fault of the context, which every later call returns. CUDA_SUCCESS if there is none.
  CUresult fault() const { return slot_.fault(); }
  // Whether the worker has text to fetch: output of kernels, or the report of an error. Every call asks after it was
  // served. Of a lost slot nothing may be read.
  bool output_waiting() const { return usable() && slot_.output_waiting(); }

  // Whether the worker knows this call.
  bool serves(int call) const { return slot_.serves(call); }

  // The session's channels (guest/session/channels.h).
  Channel& acquire_channel() { return channels_.acquire(); }
  void release_channel(Channel& channel) { channels_.release(channel); }
  std::uint32_t open_channels() const { return channels_.open(); }
  Channel& channel(std::uint32_t index) { return channels_.at(index); }

  // Whether calls can be made (guest/session/slot/liveness.h).
  bool usable() const { return liveness_.usable(); }
  bool lost() const { return liveness_.lost(); }
  bool attached() { return liveness_.attached(); }
  bool host_alive() { return liveness_.host_alive(); }
  void lose(const char* why) { liveness_.lose(why); }

  // The functions that the worker may call (guest/session/callbacks.h).
  Callbacks& callbacks() { return callbacks_; }

  std::uint64_t spin_nanoseconds() const { return slot_.spin_nanoseconds(); }

  // Gives the slot back to the broker. Called when the process ends, or no longer needs the session.
  void leave();
  // Whether the kernel frees the slot when the process ends. The exit handlers then leave the slot alone, since other
  // threads still run and may use pinned memory to the last.
  bool ends_with_process() const { return region_->module() != nullptr; }
  // Called in a forked child: the session stays the parent's.
  void forget() {
    callbacks_.forget();
    region_->forget();
  }

  // The host's address of [at, at + bytes), if the GPU may touch all of it (guest/objects/memory/addresses.h).
  std::optional<std::uint64_t> device_view(std::uint64_t at, std::uint64_t bytes) const {
    return addresses.device_view(at, bytes);
  }
  // Whether the address lies in GPU memory, or in a range that the program has reserved.
  bool knows_address(std::uint64_t at) const {
    return addresses.find(at).kind != Place::Kind::Unknown || reserved.find(at).has_value();
  }
  // Whether this address lies in the arena's own mapping. Addresses of managed variables do not.
  bool in_arena(std::uint64_t at) const { return at - reinterpret_cast<std::uint64_t>(arena->at(0)) < arena->bytes(); }
  // The address of an arena offset in the worker and on the GPU.
  std::uint64_t device_address(std::uint64_t arena_offset) const { return binding_.device_address() + arena_offset; }

  // The handle of the pool from which cuMemAllocAsync allocates on a device; 0: the default pool.
  std::uint64_t pool_of(std::uint32_t device) const { return pools_[device].load(std::memory_order_relaxed); }
  void set_pool(std::uint32_t device, std::uint64_t pool) { pools_[device].store(pool, std::memory_order_relaxed); }
  void forget_pool(std::uint64_t pool) {
    for (auto& p : pools_) {
      std::uint64_t expected = pool;
      p.compare_exchange_strong(expected, 0, std::memory_order_relaxed);
    }
  }

  Objects objects;
  Captures captures;
  AcceptedNodes accepted_nodes;
  std::atomic<bool> graphs_use_events{false};  // a graph records an event or waits for one
  Textures textures;
  Addresses addresses;
  Occupied occupied;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Registered> registered;
  std::unique_ptr<Variables> variables;
  std::mutex long_names;  // one long name at a time is sent (guest/calls/module/long_name.h); locked before `lookups`
  std::mutex lookups;     // of functions, kernels, modules and managed variables; locked before any channel
  std::atomic<std::uint64_t> next_buffer_id{1};
  ManagedRanges managed;
  VirtualRanges reserved{addresses, next_buffer_id};
  std::atomic<std::uint64_t> staged_bytes{0};  // bulk data through the arena, for statistics

 private:
  Session(std::unique_ptr<Region> region, const CheckedRegion& checked, bool reserve_device);
  Entered enter_slot();
  void unmap_slot();

  std::array<std::atomic<std::uint64_t>, ring::max_devices> pools_{};
  std::unique_ptr<Region> region_;
  const CheckedRegion checked_;
  Heartbeat heartbeat_;
  SlotClaim claim_;
  alignas(64) Liveness liveness_;  // each call reads it and the start of slot_: one cache line
  Slot slot_;
  WorkerBell bell_;
  Sleeper sleeper_;
  Channels channels_;
  ArenaBinding binding_;
  Callbacks callbacks_;
};

// The process's session, or null before cuInit has succeeded.
Session* session();
void set_session(Session* session);

}  // namespace guest
