// A VM's GPU memory: its workers' requests and the answers (host/broker/alloc/memory_reservations.h).
#include <spdlog/spdlog.h>

#include <utility>

#include "host/broker/vm/vm.h"

namespace host::broker {

using ring::SlotState;

void Vm::count_memory() {
  if (context_.program.accounts == nullptr) return;
  memory_ = std::make_unique<MemoryReservations>(
      *context_.program.accounts, slots_.size(),
      MemoryReservations::Acts{
          // The record has a grant before the worker learns of it.
          .send = [this](std::uint32_t k,
                         const auto& words) { return save(k), slots_[k].worker && slots_[k].worker->send(words); },
          .end =
              [this](std::uint32_t k, const std::string& why) {
                if (slots_[k].worker) slots_[k].worker->kill_now(why.c_str());
              },
          .taken = [this](std::uint32_t k,
                          unsigned device) { return slots_[k].telemetry ? slots_[k].telemetry->taken(device) : 0; },
          .is_spare = [this](std::uint32_t k) { return slots_[k].known.state == SlotState::Ready; },
          .wake =
              [this](Clock::duration delay) {
                context_.loop.forget(memory_timer_);
                memory_timer_ = context_.loop.after(delay, [this] {
                  memory_timer_ = 0;
                  memory_->round_over();
                });
              },
          .more_headroom =
              [this] {
                if (!context_.stopping) pace_.try_soon();
              }});
  memory_->bound(static_cast<std::uint64_t>(context_.options.gpu_memory), context_.program.gpus);
}

// A VM whose quota is used up starts no spare worker. If a program waits for a worker, the other workers are asked for
// unused memory, and the operator is informed.
bool Vm::has_memory_for_another() {
  if (!memory_ || memory_->may_start(demand_ > 0)) {
    no_memory_reported_ = false;
    return true;
  }
  if (demand_ == 0 || std::exchange(no_memory_reported_, true)) return false;
  if (const auto more = no_memory_.admit())
    spdlog::warn("{}: a program waits for a worker, and gpu_memory has no room for one: {}{}", context_.options.name,
                 memory_->why_not(), *more);
  return false;
}

std::vector<std::string> Vm::memory_arguments() const {
  if (!memory_) return {};
  return {"--lender",        "broker",
          "--gpu-memory",    std::to_string(context_.options.gpu_memory),
          "--context-bytes", std::to_string(memory_->context_bytes())};
}

}  // namespace host::broker
