// Owns the VMs: those that are served, and the removed ones whose workers or memory still exist. Adds and removes VMs,
// and ends them with the broker. Only the thread of the event loop uses it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/gpu/gpus.h"
#include "host/broker/ops/reload_report.h"
#include "host/broker/ops/status.h"
#include "host/broker/vm/vm.h"
#include "host/broker/vms/vm_services.h"

namespace host::broker {

class ServedVms {
 public:
  // Removals are reported to `report`. Calls `all_gone` each time the last removed VM has gone with its workers and its
  // memory, unless the broker ends.
  ServedVms(EventLoop& loop, VmServices& services, ReloadReport& report, std::function<void()> all_gone)
      : loop_(loop), services_(services), report_(report), all_gone_(std::move(all_gone)) {}
  ~ServedVms();
  ServedVms(const ServedVms&) = delete;
  ServedVms& operator=(const ServedVms&) = delete;

  // Serves a VM. The error is one sentence. Precondition: no VM has its name, and none is_removing().
  Result<void> add(const VmOptions& options, const VmGpus& gpus, const BrokerOptions& broker);
  void remove_if(const std::function<bool(const Vm&)>& goes);
  // Removes from now on each VM whose region memory another process truncates (host/broker/region/guarded_memory.h).
  // The other VMs are still served.
  void watch_losses();

  std::size_t size() const { return vms_.size(); }
  const std::vector<std::unique_ptr<Vm>>& all() const { return vms_; }
  Vm* find(const std::string& name) const;  // null: it is not served
  std::vector<VmOptions> options() const;
  std::size_t sessions() const;
  // One line for the service manager.
  std::string in_words() const;
  // Adds the VMs and their GPU time.
  void add_to(BrokerStatus& status) const;
  // True while removed VMs have not gone; a new VM might need their names, files and users.
  bool is_removing() const { return !leaving_.empty(); }
  std::vector<std::string> removed_names() const;

  // Calls `ready` once every VM has its first worker.
  void when_warm(const std::function<void()>& ready);
  // Ends all VMs; calls `done` when the last worker has gone. No `all_gone` follows.
  void stop(std::function<void()> done);
  // Ends only what the next broker cannot take over.
  void leave();

 private:
  // How long workers may take to exit by themselves.
  static constexpr auto end_patience = std::chrono::seconds(2);

  void remove(std::unique_ptr<Vm> vm);
  void remove_lost();
  void forget_removed();
  void on_stopped();

  EventLoop& loop_;
  VmServices& services_;
  ReloadReport& report_;
  const std::function<void()> all_gone_;
  std::vector<std::unique_ptr<Vm>> vms_;
  std::vector<std::unique_ptr<Vm>> leaving_;  // removed; their workers or memory still exist
  std::vector<const Vm*> gone_;               // from `leaving_`, to be destroyed in the loop's next iteration
  EventLoop::Id forget_timer_ = 0, lost_watch_ = 0;
  std::size_t cold_ = 0;  // VMs without a first worker
  std::size_t running_ = 0;
  bool stopping_ = false;
  std::function<void()> stopped_;
};

// For the log: why a VM is not served.
std::string not_served(const std::string& vm, const std::string& why);

}  // namespace host::broker
