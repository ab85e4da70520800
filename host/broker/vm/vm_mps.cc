#include "host/broker/vm/vm_mps.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "host/jail/layer.h"

namespace host::broker {

Result<void> VmMps::join(bool goes_on, MpsRegistration::Acts acts) {
  if (context_.program.mps == nullptr) return {};
  const auto& gpus = context_.program.gpus.list;
  // The start checked the file for this, but a reload whose policy waits for a restart did not.
  if (gpus.size() != 1 || gpus.front().uuid.empty())
    return Error{"policy = \"mps\": a VM has one GPU whose UUID is known; name one by gpus"};
  const Mps::User user{static_cast<uid_t>(context_.options.worker_uid),
                       static_cast<gid_t>(context_.options.worker_gid)};
  auto joined = context_.program.mps->join({gpus.front().uuid, context_.options.name, user, goes_on}, std::move(acts));
  if (!joined) return joined.error();
  registration_ = *std::move(joined);
  return {};
}

void VmMps::started(pid_t worker) {
  if (registration_) registration_->started(worker);
}

void VmMps::adopted(pid_t worker) {
  if (registration_) registration_->adopted(worker);
}

void VmMps::gone(const WorkerProcess::Exit& exit, bool served) {
  if (!registration_) return;
  registration_->gone(exit.worker);
  // The exit status of an earlier broker's worker is unknown, so it may have been a signal.
  const bool may_be_signal =
      exit.end == WorkerProcess::End::Signal || (exit.end == WorkerProcess::End::OtherCode && !exit.is_known);
  if (may_be_signal && served && !context_.stopping) registration_->crashed(exit.how);
}

void VmMps::watch() {
  if (registration_) registration_->watch();
}

std::unique_ptr<MpsConnectProxy> VmMps::open_proxy(Fd listener, const std::string& worker) {
  return registration_ ? registration_->open_proxy(std::move(listener), worker) : nullptr;
}

void VmMps::report_missing_proxy(const WorkerJail& jail) {
  const bool is_filtered = (jail.layers & static_cast<std::uint32_t>(jail::Layer::Seccomp)) != 0;
  if (!registration_ || !is_filtered || std::exchange(missing_proxy_reported_, true)) return;
  spdlog::warn(
      "{}: a program's own context (cuCtxCreate) fails with CUDA_ERROR_MPS_CONNECTION_FAILED: this kernel does not let "
      "ivgpud answer the connect() of a jailed worker, as Linux 5.9 and later do; primary contexts work",
      context_.options.name);
}

void VmMps::before_kill(pid_t worker, std::function<void()> then) {
  registration_->before_kill(worker, std::move(then));
}

}  // namespace host::broker
