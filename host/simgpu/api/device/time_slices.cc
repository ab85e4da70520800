#include "host/simgpu/api/device/time_slices.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace simgpu {
namespace {

constexpr std::int64_t us = 1000;
// a process keeps the GPU for this time after a kernel, as another kernel may follow
constexpr std::int64_t lingers = 6 * us;
// a request for the GPU expires after this time; a waiting process renews it much earlier
constexpr std::int64_t wants_for = 2'000 * us;

std::int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void sleep_for(std::int64_t ns) {
  const timespec time{0, ns};
  nanosleep(&time, nullptr);
}

}  // namespace

void TimeSlices::wait_for_gpu() {
  while (off_->load(std::memory_order_relaxed) != 0) sleep_for(10 * us);
  const bool is_shared = words_->change_us.load(std::memory_order_relaxed) != 0;
  while (is_shared && (off_->load(std::memory_order_relaxed) != 0 || !try_to_begin(now_ns()))) {
    words_->wanted_at.store(now_ns(), std::memory_order_relaxed);
    sleep_for(10 * us);
  }
  running_.fetch_add(1, std::memory_order_relaxed);
}

bool TimeSlices::try_to_begin(std::int64_t now) {
  const auto self = static_cast<std::uint32_t>(getpid());
  const std::int64_t slice = words_->slice_us.load(std::memory_order_relaxed) * us;
  std::uint32_t owner = words_->owner.load(std::memory_order_relaxed);
  if (owner == self) {
    const bool over = now >= words_->slice_end.load(std::memory_order_relaxed);
    const bool wanted = now - words_->wanted_at.load(std::memory_order_relaxed) < wants_for;
    // the process runs again only after another process has run
    if (over && wanted && running_.load(std::memory_order_relaxed) == 0) return false;
    if (over) words_->slice_end.store(now + slice, std::memory_order_relaxed);
    words_->free_at.store(words_->slice_end.load(std::memory_order_relaxed), std::memory_order_relaxed);
    return true;
  }
  if (now < words_->free_at.load(std::memory_order_relaxed)) return false;
  if (!words_->owner.compare_exchange_strong(owner, self)) return false;
  const std::int64_t change = words_->change_us.load(std::memory_order_relaxed) * us;
  words_->free_at.store(now + change + slice, std::memory_order_relaxed);
  words_->slice_end.store(now + change + slice, std::memory_order_relaxed);
  words_->wanted_at.store(0, std::memory_order_relaxed);
  words_->changes.fetch_add(1, std::memory_order_relaxed);
  sleep_for(change);
  return true;
}

void TimeSlices::let_go() {
  if (running_.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  if (words_->owner.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(getpid())) return;
  const std::int64_t end = words_->slice_end.load(std::memory_order_relaxed);
  words_->free_at.store(std::min(end, now_ns() + lingers), std::memory_order_relaxed);
}

}  // namespace simgpu
