// How long a test waits for what must happen. The bound is no promise of speed: it only ends a test that hangs, before
// ctest's TIMEOUT does, so that the failure names what did not happen. A test of a fast path switches the slow fallback off
// and then waits this long for the fast one.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

constexpr std::chrono::seconds test_deadline{60};

// Whether `condition` becomes true before the deadline. Looks each 2 ms.
inline bool before_deadline(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + test_deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}
