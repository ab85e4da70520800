// The time to poll before parking: bounded by the operator's `spin_us`, and adapted to the length of recent waits.
//
// A wait that ends while polling costs its own length; a longer wait costs the polling, a sleep and a wake-up. Polling
// pays if waits are shorter than the bound, and is wasted if waits are longer. Each wait that polling could have
// covered doubles the polled share of the bound; each longer wait halves the share. A program that computes between its
// calls stops polling within six waits, and a program that waits for small kernels resumes polling as fast.
//
// Waits a little longer than the bound cost most: all the polling, and the sleep. On request (Most::TwiceTheBound), a
// side polls for twice the bound if its waits have that length, and for at most the bound otherwise.
//
// Threads share an AdaptiveSpin without a lock, since a lost update does no harm. Any unit of time will do.
//
// ```cpp
// bool poll(ring::AdaptiveSpin& spin, std::uint64_t bound_ns, bool (*has_come_within)(std::uint64_t ns)) {
//   if (!has_come_within(spin.share(bound_ns))) return false;  // sleep, then tell spin.ended_asleep()
//   spin.ended_polling();
//   return true;
// }
// ```
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace ring {

class AdaptiveSpin {
 public:
  enum class Most : std::uint8_t { Bound, TwiceTheBound };
  explicit AdaptiveSpin(Most most = Most::Bound) : least_halvings_(most == Most::Bound ? 0 : -1) {}

  // Returns the part of `bound` (any unit) to poll now.
  std::uint64_t share(std::uint64_t bound) const {
    const int halvings = halvings_.load(std::memory_order_relaxed);
    return halvings < 0 ? 2 * bound : bound >> halvings;
  }

  // ended_polling() reports that a wait ended while polling. ended_asleep() reports that a wait took `waited` in total
  // (in the bound's unit), sleep included. Up to twice the bound counts as a wait that polling would have covered,
  // since waking up takes long, too.
  void ended_polling() {
    if (halvings_.load(std::memory_order_relaxed) > 0) step(-1);
  }
  void ended_asleep(std::uint64_t waited, std::uint64_t bound) { step(waited < 2 * bound ? -1 : 1); }

  static constexpr int most_halvings = 5;

 private:
  void step(int by) {
    const int now = halvings_.load(std::memory_order_relaxed);
    const int next = std::clamp(now + by, least_halvings_, most_halvings);
    if (next != now) halvings_.store(next, std::memory_order_relaxed);
  }
  const int least_halvings_;
  std::atomic<int> halvings_{0};
};

}  // namespace ring
