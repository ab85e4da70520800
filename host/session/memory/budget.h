// Limits a session's use of its worker's memory: a bounded sum. A share of the budget is given back automatically.
//
// A share is taken before the allocation, so that all channels together stay below the limit. Any thread may call these
// classes. The sum is relaxed, since it orders no other memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>

#include "ring/base/mutex.h"

namespace host {

class Budget {
 public:
  explicit Budget(std::uint64_t most) : most_(most) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Returns false if less than `amount` is left, and then takes nothing.
  bool take(std::uint64_t amount) {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (amount > most_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + amount, std::memory_order_relaxed));
    return true;
  }
  // Precondition: the amount was taken.
  void give_back(std::uint64_t amount) { used_.fetch_sub(amount, std::memory_order_relaxed); }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t most_;
  std::atomic<std::uint64_t> used_{0};
};

// A part of a budget, which is given back when the Share is destroyed. An empty share has no amount.
class Share {
 public:
  Share() = default;
  ~Share() { let_go(); }
  Share(Share&& other) noexcept { *this = std::move(other); }
  Share& operator=(Share&& other) noexcept {
    let_go();
    budget_ = std::exchange(other.budget_, nullptr);
    amount_ = std::exchange(other.amount_, 0);
    return *this;
  }

  // Returns false if the budget has less than `amount` left. Precondition: this share is empty.
  bool take(Budget& budget, std::uint64_t amount) {
    if (!budget.take(amount)) return false;
    budget_ = &budget;
    amount_ = amount;
    return true;
  }
  // Takes over the amount of another share of the same budget.
  void join(Share other) {
    budget_ = std::exchange(other.budget_, nullptr);
    amount_ += std::exchange(other.amount_, 0);
  }

 private:
  void let_go() {
    if (budget_ != nullptr) budget_->give_back(amount_);
  }

  Budget* budget_ = nullptr;
  std::uint64_t amount_ = 0;
};

// The shares of loaded images, keyed by id.
class Shares {
 public:
  // Returns false if the id already has a share.
  bool keep(std::uint64_t id, Share share) {
    ring::MutexLock lock(mutex_);
    return kept_.try_emplace(id, std::move(share)).second;
  }
  // Drops the share of an id, if there is one.
  void drop(std::uint64_t id) {
    ring::MutexLock lock(mutex_);
    kept_.erase(id);
  }

 private:
  ring::Mutex mutex_;
  std::map<std::uint64_t, Share> kept_ GUARDED_BY(mutex_);
};

}  // namespace host
