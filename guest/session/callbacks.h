// Calls from the worker to the program: tokens for functions of the program's, and the thread that makes the calls which
// the worker asks for on the slot's lanes (docs/design/020-lanes.md). Any thread gives out tokens and ends them.
//
// The thread begins with the first token, looks at the lanes only while a token is out, and ends with the session. It
// makes one call at a time. A function that is called so makes no CUDA calls, as with the driver itself.
//
// Invariant: the slot's words are touched under the mutex only, and not once the session is lost or stop() was called.
// The program's function is called without the mutex.
// Trust: the worker's number of a lane's use is held against a private count (ring/queue/lane.h), and a token against
// those that are out: the worker can have nothing called that the program has not handed over.
//
// After a fork the parent's thread goes on, and the child has none. There nothing here is touched but `forgotten_`: the
// mutex may be held by a thread that the child does not have.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "guest/session/liveness.h"
#include "guest/session/slot.h"
#include "guest/session/tokens.h"
#include "guest/session/worker_bell.h"
#include "ring/layout.h"
#include "ring/queue/lane.h"
#include "ring/queue/parking.h"

namespace guest {

class Callbacks {
 public:
  Callbacks(Liveness& liveness, const Slot& slot, WorkerBell& bell) : liveness_(liveness), slot_(slot), bell_(bell) {}
  ~Callbacks();
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  // A token by which the worker may have this called from now on. 0: the session is lost or another process's, or no
  // thread can be made. Preconditions: the slot is mapped and checked.
  std::uint64_t issue(const Callback& callback);
  // The worker's calls of it are refused from now on; one that is being made goes on. False: it is not out.
  bool end(std::uint64_t token);
  // The slot is soon another process's: nothing of it is touched from now on.
  void stop();
  // In a forked child.
  void forget() { forgotten_.store(true, std::memory_order_relaxed); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  bool start();
  static void* run(void* self);
  void serve(Lock& lock);
  ring::LaneCallee* find_call(ring::LaneCall& call);
  void make(const ring::LaneCall& call, ring::LaneCallee& lane, Lock& lock);
  void answer(ring::LaneCallee& lane, CUresult result);
  void sleep(Lock& lock);
  void park(Lock& lock);
  bool anything() const;
  bool over() const { return stopped_ || liveness_.lost(); }
  bool forgotten() const { return forgotten_.load(std::memory_order_relaxed); }
  ring::Parking self() const { return ring::Parking(slot_.view().header()[&ring::SlotHeader::callbacks_asleep]); }

  Liveness& liveness_;
  const Slot& slot_;
  WorkerBell& bell_;
  std::atomic<bool> forgotten_{false};
  std::mutex mutex_;
  std::condition_variable issued_, ended_;
  Tokens tokens_;
  std::array<ring::LaneCallee, ring::max_lanes> lanes_;
  std::size_t last_lane_ = 0;  // the lanes have turns
  std::uint64_t nap_ns_ = 0;
  bool running_ = false, stopped_ = false;
};

}  // namespace guest
