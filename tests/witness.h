// Counts how often the hypervisor takes a processor away from this machine, for up to half a second each time. The
// kernel charges some of that time to the running thread, and a kernel that waits for the processor waits, too. Tests
// that check times apply their limits to the remaining time.
//
// A real-time thread per processor sleeps for a millisecond at a time and counts late wake-ups. Without permission for
// real-time threads the class counts nothing. Use one object per test; the class is thread-safe.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

class Witness {
 public:
  Witness() {
    const unsigned processors = std::min(std::max(std::thread::hardware_concurrency(), 1u), 64u);
    for (unsigned p = 0; p < processors; ++p) threads_.emplace_back([this, p] { run(p); });
  }
  ~Witness() { stop(); }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  // The first call ends the counting.
  unsigned stops() { return stop(), stops_; }
  double longest_ms() { return stop(), longest_ms_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double late_ms = 20;

  void stop() {
    over_ = true;
    for (std::thread& t : threads_)
      if (t.joinable()) t.join();
  }
  void run(unsigned processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_param first{};
    first.sched_priority = sched_get_priority_min(SCHED_FIFO);
    if (pthread_setaffinity_np(pthread_self(), sizeof one, &one) != 0 ||
        pthread_setschedparam(pthread_self(), SCHED_FIFO, &first) != 0)
      return;
    while (!over_) {
      const auto begun = Clock::now();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      note(std::chrono::duration<double, std::milli>(Clock::now() - begun).count() - 1);
    }
  }
  void note(double late) {
    if (late < late_ms) return;
    std::lock_guard lock(mutex_);
    ++stops_;
    longest_ms_ = std::max(longest_ms_, late);
  }

  std::atomic<bool> over_{false};
  std::mutex mutex_;
  unsigned stops_ = 0;
  double longest_ms_ = 0;
  std::vector<std::thread> threads_;
};
