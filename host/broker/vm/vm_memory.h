// A VM's GPU memory: owns its reservations (host/broker/alloc/memory_reservations.h), if the broker counts memory. If it
// does not, workers start without a limit, and must not ask for memory.
//
// Callers: the other parts of the same Vm, in the broker's event loop. The context outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/log_limiter.h"
#include "host/broker/alloc/memory_reservations.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/vm/vm_record.h"

namespace host::broker {

class VmMemory {
 public:
  explicit VmMemory(const VmContext& context) : context_(context) {}
  ~VmMemory() { context_.loop.forget(timer_); }
  VmMemory(const VmMemory&) = delete;
  VmMemory& operator=(const VmMemory&) = delete;

  // Counts memory if the broker has accounts. `acts` need no `wake`.
  void count(std::size_t slots, MemoryReservations::Acts acts);
  // Applies the present quota and GPUs.
  void bound();

  // True if another worker may start. `waiting`: programs that wait for a worker. If there are any, the other workers
  // are asked for unused memory, and the operator is informed.
  bool has_room(std::uint32_t waiting);
  // The worker's arguments about memory.
  std::vector<std::string> arguments() const;

  // Events in the life of the worker of slot k.
  void started(std::uint32_t k, pid_t worker);
  void ready(std::uint32_t k, const worker::ReadyMessage& reported);
  // False if the message breaks the protocol.
  bool heard(std::uint32_t k, const worker::MemoryMessage& message);
  void gone(std::uint32_t k);

  // Its part of the record for the next broker (host/broker/vm/vm_persistence.h).
  void save(std::uint32_t k, SavedSlot& to) const;
  void adopt(std::uint32_t k, const SavedSlot& was);

  // Bytes of a GPU that the worker of each slot holds; empty: not counted.
  std::vector<std::uint64_t> held(const std::string& gpu) const;
  std::vector<QuotaStatus> quotas() const;

 private:
  void wake_after(Clock::duration delay);

  const VmContext& context_;
  std::unique_ptr<MemoryReservations> reservations_;  // null: memory is not counted
  EventLoop::Id timer_ = 0;                           // the end of a round of requests to workers
  LogLimiter no_room_;
  bool no_room_reported_ = false;  // since memory was last available
};

}  // namespace host::broker
