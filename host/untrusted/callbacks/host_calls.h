// The program's functions that the driver will call in a stream's order. The driver calls run() on one of the driver's
// threads, and run() makes the guest call the function through a callback slot.
//
// Lifetime: the driver may call run() after the session has ended. Each HostCall therefore keeps the HostCalls alive,
// and close() disconnects them from the callback slots. Thread-safety: any thread. Lock order: mutex_, then a mutex of
// the callback slots.
#pragma once

#include <cstdint>
#include <memory>

#include "ring/api/cuda.h"
#include "ring/base/mutex.h"
#include "ring/layout/layout.h"

namespace host {

class CallbackSlots;

class HostCalls {
 public:
  // `callback_slots` must live until close() has returned.
  explicit HostCalls(CallbackSlots& callback_slots) : callback_slots_(&callback_slots) {}
  // Waits for calls in progress. Precondition: CallbackSlots::end() was called, so that these calls return.
  void close();

  // Makes the guest call the function, and waits for the answer. Returns at once if the session has ended.
  void call(ring::CallbackKind kind, std::uint64_t token, CUresult status);
  // Called when the driver has ended a user object. Drops the object's id, and makes the guest call the destructor,
  // without waiting.
  void destroyed(std::uint64_t object, std::uint64_t token);
  // Reports to the guest that the driver will not call this function.
  void forget(std::uint64_t token);

 private:
  ring::SharedMutex mutex_;                           // shared while a call is in progress
  CallbackSlots* callback_slots_ GUARDED_BY(mutex_);  // null: closed
};

// The argument that the driver passes to the function. run(), run_with_status() and end() delete it.
struct HostCall {
  std::shared_ptr<HostCalls> calls;  // null: no function is called
  std::uint64_t token = 0;
  std::uint64_t object = 0;  // for a destructor: the id of its user object
  bool copies = false;       // the function moves the bytes of a copy of the program's own memory

  // For a graph's node, which may run again.
  static void run_again(void* call) noexcept;
  // Called when no graph and no executable graph has the node any more. Releases the guest's token.
  static void end(void* call) noexcept;
  // For a user object's destructor.
  static void destroy(void* call) noexcept;
  static void run(void* call) noexcept;
  static void run_with_status(CUstream stream, CUresult status, void* call) noexcept;
};

}  // namespace host
