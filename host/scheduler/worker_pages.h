// A worker's pages of ring/ops/gpu_use.h on the broker's side, and the doorbell by which the worker wakes the
// scheduler. The broker makes the pages and the doorbell, passes their descriptors to the worker, and keeps the pages
// mapped as long as a WorkerPages exists.
//
// Trust: no page can later be mapped for writing, except the orders page of a worker that the next broker may adopt. A
// worker can neither write its orders nor resize a page, so accesses never fault. A worker can change, fill and empty
// its own doorbell, and has no other worker's doorbell.
#pragma once

#include <memory>
#include <string>

#include "host/base/fd.h"
#include "host/base/result.h"
#include "host/base/shared_fd.h"
#include "ring/ops/gpu_use.h"

namespace host::scheduler {

class WorkerPages {
 public:
  // Makes the pages. The error is one sentence. `name` is shown in /proc. `kept`: the next broker must be able to write
  // the orders (orders_to_keep()). Then only the file's mode protects the orders, and the fact that the worker closes
  // its descriptor.
  static Result<std::shared_ptr<WorkerPages>> create(const std::string& name, bool kept);
  // Takes over pages that an earlier broker made with `kept`. Returns null on failure.
  [[nodiscard]] static std::shared_ptr<WorkerPages> adopt(broker::Fd orders, broker::Fd use, broker::Fd doorbell);
  ~WorkerPages();
  WorkerPages(const WorkerPages&) = delete;
  WorkerPages& operator=(const WorkerPages&) = delete;

  // Return the descriptors for the worker: the orders, read-only; the worker's use; and the doorbell.
  int orders_fd() const { return orders_fd_.get(); }
  int use_fd() const { return use_fd_.get(); }
  int scheduler_doorbell_fd() const { return doorbell_.get(); }
  // Returns -1 unless the pages were made with `kept`.
  int orders_to_keep() const { return writable_orders_.get(); }

  ring::DeviceOrders& orders(std::uint32_t device) const { return orders_->device[device]; }
  // Reports to the worker whether its channels on this GPU are enabled, or about to be enabled. Wakes the worker if the
  // channels were disabled.
  void publish_whether_on(std::uint32_t device, bool on) const;
  const ring::UsePage& use() const { return *use_; }
  // Resets the worker's doorbell.
  void drain_doorbell() const { doorbell_.drain(); }

 private:
  WorkerPages() = default;
  bool open(const std::string& name, bool kept);

  broker::Fd orders_fd_, use_fd_, writable_orders_;
  broker::SharedFd doorbell_;
  ring::OrdersPage* orders_ = nullptr;
  ring::UsePage* use_ = nullptr;
};

}  // namespace host::scheduler
