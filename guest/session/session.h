// This process's session with a worker. cuInit makes the session and never destroys it, since programs call this
// library until they end. The session owns the claim on a slot, the slot, liveness, channels, the arena's binding, and
// the program's objects; each of these parts has its own file. Any thread may call an open session.
//
// Invariant: a session from open() has claimed its slot, and the worker has answered its hello. leave() gives the slot
// back once, when no thread is writing a record. Trust: each member's file states its own trust; this file reads
// nothing that the host writes.
//
// Lock order: a context's mutex (guest/process/context.h); code.long_names; code.lookups; those of Variables and
// Registered; the arena's, which may send a record; a channel's or the callbacks'; the rest.
//
// Ordering: set_session() releases a complete session, session() acquires it. session() is inline, since one call of the
// program uses it several times.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "guest/objects/accepted_nodes.h"
#include "guest/objects/captures.h"
#include "guest/objects/objects.h"
#include "guest/objects/textures.h"
#include "guest/objects/variables.h"
#include "guest/region/region.h"
#include "guest/session/arena_binding.h"
#include "guest/session/callbacks.h"
#include "guest/session/channel.h"
#include "guest/session/channels.h"
#include "guest/session/session_memory.h"
#include "guest/session/sleeper.h"
#include "guest/session/slot/claim.h"
#include "guest/session/slot/heartbeat.h"
#include "guest/session/slot/liveness.h"
#include "guest/session/slot/slot.h"
#include "guest/session/worker_doorbell.h"
#include "ring/base/mutex.h"

namespace guest {

// What the program has captured, and which launches the worker's driver certainly accepts
// (docs/design/049-capture-and-graphs.md).
struct SessionGraphs {
  Captures captures;
  AcceptedNodes accepted;
  std::atomic<bool> use_events{false};  // a graph records an event or waits for one
};

// The lookups of functions and variables, and the managed variables that they found.
struct SessionCode {
  // Locked while a long name is sent (guest/calls/module/long_name.h).
  ring::Mutex long_names ACQUIRED_BEFORE(lookups);
  // Locked while a function, kernel, module or managed variable is looked up, and before any channel.
  ring::Mutex lookups;
  std::unique_ptr<Variables> variables;
};

class Session {
 public:
  // Claims a slot of the region and sends hello to the slot's worker. If another program has overwritten the slot,
  // tries the next slot. Returns null and writes a log line if no slot became free in time, or if the worker refuses.
  // `reserve_device`: keep device addresses free of this process's own mappings. Tests with the simulated GPU in their
  // own process pass false.
  static std::unique_ptr<Session> open(std::unique_ptr<Region> region, bool reserve_device = true);
  ~Session();

  // Returns the slot's pages, the context's fault and the calls that the worker serves (guest/session/slot/slot.h).
  const Slot& slot() const { return slot_; }
  // Returns the object that knows whether calls can be made (guest/session/slot/liveness.h).
  Liveness& liveness() { return liveness_; }
  const Liveness& liveness() const { return liveness_; }
  // Returns the channels through which threads send (guest/session/channels.h).
  Channels& channels() { return channels_; }
  // Returns the functions that the worker may call (guest/session/callbacks.h).
  Callbacks& callbacks() { return callbacks_; }

  // Returns whether the worker has text to fetch: output of kernels, or the report of an error. Every call checks this
  // after it was served. Reads nothing of a lost slot.
  bool output_waiting() const { return liveness_.usable() && slot_.output_waiting(); }
  // Returns the address of an arena offset in the worker and on the GPU.
  std::uint64_t device_address(std::uint64_t arena_offset) const { return binding_.device_address() + arena_offset; }

  // Gives the slot back to the broker. Called when the process ends, or no longer needs the session.
  void leave();
  // Returns whether the kernel frees the slot when the process ends. The exit handlers then leave the slot alone, since
  // other threads still run and may use pinned memory until the end.
  bool ends_with_process() const { return place_.region->module() != nullptr; }
  // Called in a forked child. The session remains the parent's.
  void forget() {
    callbacks_.forget();
    place_.region->forget();
  }

  Objects objects;
  SessionMemory memory;
  SessionGraphs graphs;
  SessionCode code;
  Textures textures;

 private:
  Session(std::unique_ptr<Region> region, const CheckedRegion& checked, bool reserve_device);
  Entered enter_slot();
  void unmap_slot();

  struct Place {
    std::unique_ptr<Region> region;
    CheckedRegion checked;
  };
  Place place_;
  Heartbeat heartbeat_;
  SlotClaim claim_;
  alignas(64) Liveness liveness_;  // in one cache line with the start of slot_, because each call reads both
  Slot slot_;
  WorkerDoorbell doorbell_;
  Sleeper sleeper_;
  Channels channels_;
  ArenaBinding binding_;
  Callbacks callbacks_;
};

extern std::atomic<Session*> the_session;  // only for the two functions below
// Returns the process's session, or null before cuInit has succeeded.
inline Session* session() { return the_session.load(std::memory_order_acquire); }
inline void set_session(Session* session) { the_session.store(session, std::memory_order_release); }

}  // namespace guest
