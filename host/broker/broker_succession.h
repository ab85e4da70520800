// Owns what one broker hands to the next: the service manager, the descriptors that the manager holds, and the pipe by
// which workers see that their broker has gone (docs/design/034-restart.md). Only the thread of the event loop uses it.
#pragma once

#include <cstdint>
#include <string>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/process/fd_store.h"
#include "host/base/process/service_manager.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"

namespace host::broker {

class BrokerSuccession {
 public:
  explicit BrokerSuccession(EventLoop& loop) : manager_(loop) {}

  ServiceManager& manager() { return manager_; }
  // Prepares for a next broker, if the configuration has sessions outlive this one and a service manager can hold their
  // descriptors. The error is one sentence.
  Result<void> prepare(const BrokerOptions& broker);
  // True if sessions outlive this broker.
  bool is_prepared() const { return static_cast<bool>(life_); }
  // Keeps state for the next broker; null if sessions end with this one.
  FdStore* store() { return is_prepared() ? &store_ : nullptr; }
  // The read end of the pipe, for workers that may outlive this broker; -1 if none may.
  int life_fd() const { return life_of_workers_.get(); }
  // How long such workers may go on without a broker.
  std::uint32_t outlive_ms() const { return outlive_ms_; }
  // Releases descriptors of VMs that are not served any more, or whose sessions are not kept any more.
  void forget_left();

 private:
  ServiceManager manager_;
  FdStore store_{manager_};
  Fd life_, life_of_workers_;  // the ends of a pipe (host/base/process/liveness_pipe.h)
  std::uint32_t outlive_ms_ = 0;
};

}  // namespace host::broker
