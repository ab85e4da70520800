#include "host/broker/vm/vm_memory.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace host::broker {

void VmMemory::count(std::size_t slots, MemoryReservations::Acts acts) {
  if (context_.program.accounts == nullptr) return;
  acts.wake = [this](Clock::duration delay) { wake_after(delay); };
  reservations_ = std::make_unique<MemoryReservations>(*context_.program.accounts, slots, std::move(acts));
  bound();
}

void VmMemory::bound() {
  if (reservations_)
    reservations_->bound(static_cast<std::uint64_t>(context_.options.gpu_memory), context_.program.gpus);
}

void VmMemory::wake_after(Clock::duration delay) {
  context_.loop.forget(timer_);
  timer_ = context_.loop.after(delay, [this] {
    timer_ = 0;
    reservations_->round_over();
  });
}

// A VM whose quota is used up starts no spare worker.
bool VmMemory::has_room(std::uint32_t waiting) {
  if (!reservations_ || reservations_->may_start(waiting > 0)) {
    no_room_reported_ = false;
    return true;
  }
  if (waiting == 0 || std::exchange(no_room_reported_, true)) return false;
  if (const auto more = no_room_.admit())
    spdlog::warn("{}: a program waits for a worker, and gpu_memory has no room for one: {}{}", context_.options.name,
                 reservations_->why_not(), *more);
  return false;
}

std::vector<std::string> VmMemory::arguments() const {
  if (!reservations_) return {};
  return {"--lender",        "broker",
          "--gpu-memory",    std::to_string(context_.options.gpu_memory),
          "--context-bytes", std::to_string(reservations_->context_bytes())};
}

void VmMemory::started(std::uint32_t k, pid_t worker) {
  if (reservations_) reservations_->started(k, worker);
}

void VmMemory::ready(std::uint32_t k, const worker::ReadyMessage& reported) {
  if (reservations_) reservations_->ready(k, reported);
}

bool VmMemory::heard(std::uint32_t k, const worker::MemoryMessage& message) {
  return reservations_ && reservations_->heard(k, message);
}

void VmMemory::gone(std::uint32_t k) {
  if (reservations_) reservations_->gone(k);
}

void VmMemory::save(std::uint32_t k, SavedSlot& to) const {
  for (unsigned device = 0; reservations_ && device < ring::max_devices; ++device)
    to.reserved[device] = reservations_->reserved(k, device);
}

void VmMemory::adopt(std::uint32_t k, const SavedSlot& was) {
  if (reservations_) reservations_->adopt(k, was.worker, was.reported, was.reserved);
}

std::vector<std::uint64_t> VmMemory::held(const std::string& gpu) const {
  return reservations_ ? reservations_->held(gpu) : std::vector<std::uint64_t>();
}

std::vector<QuotaStatus> VmMemory::quotas() const {
  return reservations_ ? reservations_->status() : std::vector<QuotaStatus>();
}

}  // namespace host::broker
