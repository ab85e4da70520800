// This process's session with a worker: one per process, made by cuInit, never destroyed (programs call into us until
// their last breath). It holds the parts, each of which has a file of its own: the claim on a slot, the slot, liveness,
// channels, the arena's binding, and what the program has made. Any thread may call it once it is open.
//
// Invariant: a session that open() gives has claimed its slot and is greeted by the worker; leave() gives the slot back
// once, when no thread is in the middle of a record.
// Trust: the parts say whom they trust; here nothing of the other side is read.
//
// Ordering: set_session() releases a session that is whole, session() acquires it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "guest/objects/addresses.h"
#include "guest/objects/arena.h"
#include "guest/objects/objects.h"
#include "guest/region/region.h"
#include "guest/session/arena_binding.h"
#include "guest/session/callbacks.h"
#include "guest/session/channel.h"
#include "guest/session/channels.h"
#include "guest/session/claim.h"
#include "guest/session/heartbeat.h"
#include "guest/session/liveness.h"
#include "guest/session/slot.h"
#include "guest/session/worker_bell.h"

namespace guest {

class Session {
 public:
  // Claims a slot of the region and greets its worker; another slot where somebody has spoilt that one. Null and a log
  // line when there is none to be had in time, or it refuses. `reserve_device`: keep device addresses out of this
  // process's mappings (off where the simulated GPU lives in it, in tests).
  static std::unique_ptr<Session> open(std::unique_ptr<Region> region, bool reserve_device = true);
  ~Session();

  const ring::DevicePage& devices() const { return slot_.devices(); }
  // The context's sticky error, CUDA_SUCCESS if there is none.
  CUresult fault() const { return slot_.fault(); }
  // Whether kernels have printed something that nobody has fetched, or an error has been explained.
  bool output_waiting() const { return slot_.output_waiting(); }

  // Whether the worker knows this call.
  bool serves(int call) const { return slot_.serves(call); }

  // The calling thread's channel, and how many there are (guest/session/channels.h).
  Channel& acquire_channel() { return channels_.acquire(); }
  void release_channel(Channel& channel) { channels_.release(channel); }
  std::uint32_t open_channels() const { return channels_.open(); }
  Channel& channel(std::uint32_t index) { return channels_.at(index); }

  // Whether calls can be made (guest/session/liveness.h).
  bool usable() const { return liveness_.usable(); }
  bool lost() const { return liveness_.lost(); }
  bool attached() { return liveness_.attached(); }
  bool host_alive() { return liveness_.host_alive(); }
  void lose(const char* why) { liveness_.lose(why); }

  // What the worker may call (guest/session/callbacks.h).
  Callbacks& callbacks() { return callbacks_; }

  std::uint64_t spin_nanoseconds() const { return slot_.spin_nanoseconds(); }

  // The process ends or lets go: the broker takes the slot back.
  void leave();
  // In a forked child: the session is the parent's.
  void forget() {
    callbacks_.forget();
    region_->forget();
  }

  // Where the host sees [at, at + bytes) when all of it is memory that the GPU may touch (guest/objects/addresses.h).
  std::optional<std::uint64_t> device_view(std::uint64_t at, std::uint64_t bytes) const {
    return addresses.device_view(at, bytes);
  }
  // Where the worker and the GPU see an arena offset.
  std::uint64_t device_address(std::uint64_t arena_offset) const { return binding_.device_address() + arena_offset; }

  Objects objects;
  Addresses addresses;
  std::unique_ptr<Arena> arena;
  std::mutex lookups;  // of functions, kernels and modules; taken before any channel's lock
  std::atomic<std::uint64_t> next_buffer_id{1};
  std::atomic<std::uint64_t> staged_bytes{0};  // bulk data through the arena, for the statistics

 private:
  Session(std::unique_ptr<Region> region, const CheckedRegion& checked, bool reserve_device);
  Entered enter_slot();
  void unmap_slot();

  std::unique_ptr<Region> region_;
  const CheckedRegion checked_;
  Heartbeat heartbeat_;
  SlotClaim claim_;
  Liveness liveness_;
  Slot slot_;
  WorkerBell bell_;
  Channels channels_;
  ArenaBinding binding_;
  Callbacks callbacks_;
};

// The process's session, or null before cuInit has succeeded.
Session* session();
void set_session(Session* session);

}  // namespace guest
