// A VM's workers as clients of MPS (host/broker/mps/mps.h): owns the VM's registration, if the policy is MPS. If it is
// not, workers start at once and have no connect proxy.
//
// Callers: the other parts of the same Vm, in the broker's event loop. The context outlives it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "host/base/result.h"
#include "host/broker/mps/mps.h"
#include "host/broker/mps/mps_connect_proxy.h"
#include "host/broker/ops/status.h"
#include "host/broker/vm/vm_context.h"
#include "host/broker/worker/worker_process.h"

namespace host::broker {

class VmMps {
 public:
  explicit VmMps(const VmContext& context) : context_(context) {}

  // Registers the VM if the policy is MPS. `goes_on`: with an earlier broker's workers. The error is one sentence.
  Result<void> join(bool goes_on, MpsRegistration::Acts acts);
  bool is_client() const { return registration_ != nullptr; }
  // False if no worker may start now; Acts::ready follows.
  bool may_start() const { return !registration_ || registration_->ready(); }

  // Events in a worker's life.
  void started(pid_t worker);
  void adopted(pid_t worker);
  // `served`: a session had the worker.
  void gone(const WorkerProcess::Exit& exit, bool served);
  // A session begins.
  void watch();

  // Null if the worker is no client, or the descriptor no listener.
  std::unique_ptr<MpsConnectProxy> open_proxy(Fd listener, const std::string& worker);
  // Logs once, since the kernel stays the same, that a client with this jail has no connect proxy.
  void report_missing_proxy(const WorkerJail& jail);
  // Precondition: is_client(). Calls `then` when killing the worker harms no other client.
  void before_kill(pid_t worker, std::function<void()> then);

 private:
  const VmContext& context_;
  std::unique_ptr<MpsRegistration> registration_;  // null: its workers are no MPS clients
  bool missing_proxy_reported_ = false;
};

}  // namespace host::broker
