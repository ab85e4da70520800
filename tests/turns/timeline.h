// Virtual time: events in the order of their times, and of two at one time the earlier made first. So a run depends on
// nothing but what was asked of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace turns_world {

using Time = std::chrono::nanoseconds;  // since the world began

class Timeline {
 public:
  using Event = std::function<void()>;

  Time now() const { return now_; }
  void at(Time when, Event event);
  void after(Time delay, Event event) { at(now_ + delay, std::move(event)); }

  void run_until(Time end);

 private:
  struct Entry {
    Time when;
    std::uint64_t made;
    Event event;
  };
  static bool later(const Entry& a, const Entry& b);

  Time now_{};
  std::uint64_t made_ = 0;
  std::vector<Entry> events_;  // a heap
};

// An event that can be moved and called off. It must outlive its timeline's run.
class Alarm {
 public:
  Alarm(Timeline& timeline, std::function<void()> ring) : timeline_(timeline), ring_(std::move(ring)) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void set(Time when) {
    is_set_ = true;
    timeline_.at(when, [this, setting = ++setting_] {
      if (setting != setting_) return;
      is_set_ = false;
      ring_();
    });
  }
  void call_off() {
    ++setting_;
    is_set_ = false;
  }
  bool is_set() const { return is_set_; }

 private:
  Timeline& timeline_;
  const std::function<void()> ring_;
  std::uint64_t setting_ = 0;
  bool is_set_ = false;
};

}  // namespace turns_world
