// How long a test waits for an expected event. The bound promises no speed: it ends a hanging test before ctest's
// TIMEOUT, so that the failure names the missing event. A test of a fast path disables the slow fallback, and then
// waits this long for the fast one.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

constexpr std::chrono::seconds test_deadline{60};

// Returns whether `condition` becomes true within that time. Pass a shorter time for a condition that must stay false.
inline bool before_deadline(const std::function<bool()>& condition, std::chrono::milliseconds within = test_deadline,
                            std::chrono::microseconds between_looks = std::chrono::milliseconds(2)) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(between_looks);
  }
  return true;
}
