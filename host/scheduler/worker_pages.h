// The pages of ring/ops/gpu_use.h for one worker, as the broker has them, and the bell by which the worker wakes the scheduler.
// The broker makes them, passes the worker descriptors of all, and keeps the pages mapped for the scheduler's thread for
// as long as a WorkerPages lives.
//
// Trust: but for the orders of a worker that the next broker takes over, nothing can be mapped to be written later. A worker
// can neither write the orders, nor resize either page, so reading and writing never fault. It can change, fill and empty
// its own bell, and has no other worker's.
#pragma once

#include <memory>
#include <string>

#include "host/base/fd.h"
#include "host/base/shared_fd.h"
#include "ring/ops/gpu_use.h"

namespace host::scheduler {

class WorkerPages {
 public:
  // Null on failure, and `error` is one sentence. `name` is shown in /proc.
  // `kept`: the next broker is to write its orders, too, by orders_to_keep(); what keeps others from that is the file's
  // mode, and that the worker closes its descriptor.
  static std::shared_ptr<WorkerPages> create(const std::string& name, bool kept, std::string& error);
  // The pages of one that an earlier broker has made to be kept. Null on failure.
  static std::shared_ptr<WorkerPages> adopt(broker::Fd orders, broker::Fd use, broker::Fd bell);
  ~WorkerPages();
  WorkerPages(const WorkerPages&) = delete;
  WorkerPages& operator=(const WorkerPages&) = delete;

  // What the worker gets: a descriptor of the orders that cannot write, one of the use, and the bell.
  int orders_fd() const { return orders_fd_.get(); }
  int use_fd() const { return use_fd_.get(); }
  int bell_fd() const { return bell_.get(); }
  // -1 unless it was made to be kept.
  int orders_to_keep() const { return writable_orders_.get(); }

  ring::DeviceOrders& orders(std::uint32_t device) const { return orders_->device[device]; }
  // Whether the worker's channels on this GPU are on, or will be in a moment; it is woken where they were off.
  void tell_whether_on(std::uint32_t device, bool on) const;
  const ring::UsePage& use() const { return *use_; }
  // Takes the worker's rings.
  void drain_bell() const { bell_.drain(); }

 private:
  WorkerPages() = default;
  bool open(const std::string& name, bool kept);

  broker::Fd orders_fd_, use_fd_, writable_orders_;
  broker::SharedFd bell_;
  ring::OrdersPage* orders_ = nullptr;
  ring::UsePage* use_ = nullptr;
};

}  // namespace host::scheduler
