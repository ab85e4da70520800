// The GPUs that a VM's workers find. A GPU may disappear and come back (host/broker/alloc/gpu_presence.h), and a worker
// knows those that existed when it started. A spare worker is therefore ended when later workers find other GPUs. A
// worker that lacks a GPU is restarted until the GPU is back, at growing intervals.
//
// Callers: the other parts of the same Vm, in the broker's event loop. The context outlives it.
//
// Trust: a worker's report counts only for GPUs of this host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/broker/alloc/gpu_presence.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/vm/vm_context.h"

namespace host::broker {

class WorkerGpus {
 public:
  // Ends the unclaimed workers of the slots for which the function is true.
  using EndWhere = std::function<void(const std::function<bool(std::uint32_t)>&)>;

  WorkerGpus(const VmContext& context, std::size_t slots, EndWhere end_unclaimed_where)
      : context_(context), end_unclaimed_where_(std::move(end_unclaimed_where)), lacks_(slots) {}
  ~WorkerGpus() { stop(); }
  WorkerGpus(const WorkerGpus&) = delete;
  WorkerGpus& operator=(const WorkerGpus&) = delete;

  // A worker is ready.
  void learn(const worker::ReadyMessage& reported);
  // The new worker of slot k is Ready, so that earlier ones may be ended.
  void compare(std::uint32_t k, const worker::ReadyMessage& reported);
  // The VM's GPUs may have changed.
  void forget();
  // Restarts no further worker.
  void stop() { context_.loop.forget(timer_); }

  // By their ordinals in guests. If the file names none, the environment may hide GPUs from workers; that is unknown
  // until a worker has started.
  const std::vector<Gpu>& of_guests() const;
  // GPUs that the last worker did not find.
  const std::vector<std::string>& missing() const { return presence_.missing(); }
  // Bytes of all GPUs, as the last ready worker reported; 0: unknown.
  std::uint64_t memory() const { return memory_; }

 private:
  void report(const worker::ReadyMessage& reported) const;

  const VmContext& context_;
  const EndWhere end_unclaimed_where_;
  GpuPresence presence_;
  std::vector<Gpu> found_;              // from the last ready worker
  std::uint64_t memory_ = 0;            // from the last ready worker
  std::vector<bool> lacks_;             // the worker of each slot lacked GPUs when it started
  Clock::duration between_restarts_{};  // of workers that lack a GPU
  EventLoop::Id timer_ = 0;
};

}  // namespace host::broker
