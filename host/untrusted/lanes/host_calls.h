// The functions of the program's that a session's driver has been given to call in a stream's order, until it has called
// them. The driver calls run(), on a thread of its own, and that has the guest make the call by its lanes.
//
// Lifetime: the driver may call after the session has ended, so each call keeps the HostCalls alive, and close() cuts these
// from the lanes. Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <shared_mutex>

#include "ring/api/cuda.h"
#include "ring/layout/layout.h"

namespace host {

class Lanes;

class HostCalls {
 public:
  // `lanes` live until close() has returned.
  explicit HostCalls(Lanes& lanes) : lanes_(&lanes) {}
  // Waits for the calls under way. Precondition: the lanes have ended, so that these return.
  void close();

  // Has the guest make the call, and waits for it. Returns at once where the session has ended.
  void call(ring::LaneKind kind, std::uint64_t token, CUresult status);
  // A user object has ended: so does its id, and the guest calls the destructor. Waits for nothing.
  void destroyed(std::uint64_t object, std::uint64_t token);
  // Tells the guest that the driver will not call it.
  void forget(std::uint64_t token);

 private:
  std::shared_mutex mutex_;  // shared while a call is under way
  Lanes* lanes_;             // null: closed
};

// What the driver gets as a function's argument. run(), run_with_status() and end() end it.
struct HostCall {
  std::shared_ptr<HostCalls> calls;  // null: nothing is called
  std::uint64_t token = 0;
  std::uint64_t object = 0;  // the id of the user object whose destructor it is
  bool copies = false;       // it moves the bytes of a copy of the program's own memory

  // Of a graph's node, which may be run again.
  static void run_again(void* call) noexcept;
  // When no graph and no executable has the node any more: the guest's token ends.
  static void end(void* call) noexcept;
  // A user object's destructor.
  static void destroy(void* call) noexcept;
  static void run(void* call) noexcept;
  static void run_with_status(CUstream stream, CUresult status, void* call) noexcept;
};

}  // namespace host
