// A bound on a session's use of its worker's memory: a bounded sum, and shares of it that are given back automatically.
//
// A share is taken before the memory is allocated, so that all channels together stay below the bound. Any thread may
// call this. The sum is relaxed, since it orders no other memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace host {

class Budget {
 public:
  explicit Budget(std::uint64_t most) : most_(most) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // False: less than `amount` is left, and nothing was taken.
  bool take(std::uint64_t amount) {
    std::uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (amount > most_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + amount, std::memory_order_relaxed));
    return true;
  }
  // Preconditions: the amount was taken.
  void give_back(std::uint64_t amount) { used_.fetch_sub(amount, std::memory_order_relaxed); }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t most_;
  std::atomic<std::uint64_t> used_{0};
};

// A part of a budget for as long as this object lives. An empty one holds nothing.
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

  // False: the budget has less than `amount` left. Preconditions: this share is empty.
  bool take(Budget& budget, std::uint64_t amount) {
    if (!budget.take(amount)) return false;
    budget_ = &budget;
    amount_ = amount;
    return true;
  }
  // Takes over what another share of the same budget holds.
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

// The shares of loaded images, by their ids.
class Shares {
 public:
  // False: the id has a share already.
  bool keep(std::uint64_t id, Share share) {
    std::lock_guard lock(mutex_);
    return kept_.try_emplace(id, std::move(share)).second;
  }
  // Drops an id's share, if it has one.
  void drop(std::uint64_t id) {
    std::lock_guard lock(mutex_);
    kept_.erase(id);
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, Share> kept_;
};

}  // namespace host
