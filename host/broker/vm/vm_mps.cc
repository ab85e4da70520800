// A VM's workers as clients of MPS (host/broker/mps/mps.h): when they may start, how to kill one without harm to its
// GPU's clients, and how the loss of all clients is handled.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "host/broker/vm/vm.h"
#include "host/jail/layer.h"

namespace host::broker {

using ring::SlotState;

bool Vm::join_mps(bool goes_on, std::string& error) {
  if (context_.program.mps == nullptr) return true;
  // The start checked the file for this, but a reload whose policy waits for a restart did not.
  if (context_.program.gpus.list.size() != 1 || context_.program.gpus.list.front().uuid.empty()) {
    error = "policy = \"mps\": a VM has one GPU whose UUID is known; name one by gpus";
    return false;
  }
  const Mps::User user{static_cast<uid_t>(context_.options.worker_uid),
                       static_cast<gid_t>(context_.options.worker_gid)};
  mps_ = context_.program.mps->join({context_.program.gpus.list.front().uuid, context_.options.name, user, goes_on},
                                    {.ready =
                                         [this] {
                                           if (!context_.stopping) pace_.try_soon();
                                         },
                                     .failed = [this] { pace_.report_warm(); },
                                     .lost = [this](const std::string& why) { on_mps_lost(why); },
                                     .end_sessions = [this] { end_lost_sessions(); },
                                     .has_sessions = [this] { return sessions() > 0; },
                                     .fault = [this] { return reported_fault(); }},
                                    error);
  return mps_ != nullptr;
}

void Vm::watch_session() {
  if (mps_) mps_->watch();
}

// Null if killing a worker harms no other client.
std::function<void(std::function<void()>)> Vm::before_kill(std::uint32_t k) {
  if (!mps_) return nullptr;
  return [this, k](std::function<void()> then) { mps_->before_kill(slots_[k].worker->pid(), std::move(then)); };
}

// Null if a worker may pass no descriptor.
std::function<void(Fd)> Vm::proxy_for(std::uint32_t k) {
  if (!mps_) return nullptr;
  return [this, k](Fd listener) { slots_[k].proxy = mps_->open_proxy(std::move(listener), label_of(k)); };
}

// Adopts the kept connect proxy. False if the worker had one that is lost.
bool Vm::adopt_proxy(std::uint32_t k, const SavedSlot& was) {
  Fd listener = store_.take(name_in_store(k, "door"));
  if (mps_ && listener) slots_[k].proxy = mps_->open_proxy(std::move(listener), label_of(k));
  return was.ready != ready_with_proxy || slots_[k].proxy;
}

// Logged once, since the kernel stays the same.
void Vm::report_proxy(const Slot& slot) {
  const bool is_filtered = (slot.jail.layers & static_cast<std::uint32_t>(jail::Layer::Seccomp)) != 0;
  if (!mps_ || slot.proxy || !is_filtered || std::exchange(no_proxy_reported_, true)) return;
  spdlog::warn(
      "{}: a program's own context (cuCtxCreate) fails with CUDA_ERROR_MPS_CONNECTION_FAILED: this kernel does not let "
      "ivgpud answer the connect() of a jailed worker, as Linux 5.9 and later do; primary contexts work",
      context_.options.name);
}

// A session's program gets the driver's own error from its next call. Spare workers are lost as well, which no program
// would notice before it claims one.
void Vm::on_mps_lost(const std::string& why) {
  if (context_.stopping) return;
  spdlog::warn("{}: {}; {} session(s) get the driver's error and end within {} s, and fresh workers start after them",
               context_.options.name, why, sessions(), MpsRegistration::grace.count());
  end_starting(0);
  end_unclaimed(0);
}

// Ends all workers: none has started since the loss.
void Vm::end_lost_sessions() {
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    if (!slots_[k].worker) continue;
    log_->set_reason(k, "MPS has lost all clients of its GPU");
    slots_[k].worker->end(VmContext::end_patience);
  }
}

std::string Vm::reported_fault() const {
  for (std::size_t k = 0; k < slots_.size(); ++k) {
    if (!slots_[k].worker || !slots_[k].known.held()) continue;
    if (const std::uint32_t fault = slots_[k].telemetry->fault(); fault != 0)
      return fmt::format("session {} of VM {} has had CUDA's error {}", k, context_.options.name, fault);
  }
  return "";
}

void Vm::leave_mps(const ring::SlotWord& before, const WorkerProcess::Exit& exit) {
  mps_->gone(exit.worker);
  // The exit status of an earlier broker's worker is unknown, so it may have been a signal.
  const bool may_be_signal =
      exit.end == WorkerProcess::End::Signal || (exit.end == WorkerProcess::End::OtherCode && !exit.is_known);
  if (may_be_signal && before.state == SlotState::Claimed && !context_.stopping) mps_->crashed(exit.how);
}

}  // namespace host::broker
