// How long a test waits for what must happen. The bound is no promise of speed: it only ends a test that hangs, before
// ctest's TIMEOUT does, so that the failure names what did not happen. A test of a fast path switches the slow fallback off
// and then waits this long for the fast one.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

constexpr std::chrono::seconds test_deadline{60};

// Whether `condition` becomes true within that time. Less than the deadline is for what must not come true.
inline bool before_deadline(const std::function<bool()>& condition, std::chrono::milliseconds within = test_deadline,
                            std::chrono::microseconds between_looks = std::chrono::milliseconds(2)) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(between_looks);
  }
  return true;
}
