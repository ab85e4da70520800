// The broker's one thread waits here for everything: sockets, eventfds, pidfds, pipes, time.
//
// Callbacks run one at a time inside run(); each may watch, forget and set timers freely, its own included. A watch is
// level-triggered: it calls back as long as the descriptor is ready, until forgotten. Where the kernel gives io_uring
// it is used (one system call submits and waits); where it is switched off, as in many containers, epoll serves the
// same.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace host::broker {

using Clock = std::chrono::steady_clock;

// A moment as records for the next broker have it, and what they have as a moment: nanoseconds of CLOCK_MONOTONIC.
inline std::uint64_t in_nanoseconds(Clock::time_point moment) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(moment.time_since_epoch()).count());
}
inline Clock::time_point moment_of(std::uint64_t nanoseconds) {
  return Clock::time_point(std::chrono::nanoseconds(nanoseconds));
}

// The loop waits for descriptors by this: one shot each, named by a number that is never used twice.
class Waiter {
 public:
  struct Event {
    std::uint64_t id;
    short events;  // poll's bits; POLLERR where the wait itself failed
  };
  virtual ~Waiter() = default;
  virtual const char* name() const = 0;
  virtual void arm(std::uint64_t id, int fd, short events) = 0;
  virtual void disarm(std::uint64_t id, int fd) = 0;
  // Waits until something happens or `timeout` (if there is one) passes; appends to `events`.
  virtual void wait(const std::chrono::nanoseconds* timeout, std::vector<Event>& events) = 0;
};

std::unique_ptr<Waiter> make_uring_waiter();  // null where the kernel refuses
std::unique_ptr<Waiter> make_epoll_waiter();
std::unique_ptr<Waiter> make_waiter();  // the first of the two that there is

class EventLoop {
 public:
  using Id = std::uint64_t;  // 0: none

  explicit EventLoop(std::unique_ptr<Waiter> waiter = make_waiter()) : waiter_(std::move(waiter)) {}
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // The descriptor is the caller's; it stays open until forget().
  Id watch(int fd, short events, std::function<void(short)> callback);
  Id after(Clock::duration delay, std::function<void()> callback);
  // Stops a watch or a timer and sets `id` to 0. Nothing is called back afterwards. 0 is allowed.
  void forget(Id& id);

  void run();  // until stop()
  void stop() { stopped_ = true; }

  // The cost of the loop since it began: it answers nobody during a turn, so the longest turn is the longest time that
  // others waited for the processor's sake. Waiting is part of a turn and takes none of its time. In a virtual machine,
  // processor time that its own host takes counts as if the broker had used it.
  struct Turns {
    static constexpr std::chrono::milliseconds bound{50};  // processor time that one VM may cost the others
    std::uint64_t count = 0;
    std::uint64_t beyond = 0;  // those longer than `bound`
    std::chrono::nanoseconds longest{};
  };
  const Turns& turns() const { return turns_; }
  const char* waiter_name() const { return waiter_->name(); }

 private:
  struct Watch {
    int fd;
    short events;
    std::shared_ptr<std::function<void(short)>> callback;  // shared: it may forget its own watch while it runs
  };
  void turn(std::vector<Waiter::Event>& events);
  void run_timers();
  void dispatch(const Waiter::Event& event);

  std::unique_ptr<Waiter> waiter_;
  std::unordered_map<Id, Watch> watches_;
  std::map<std::pair<Clock::time_point, Id>, std::function<void()>> timers_;
  std::unordered_map<Id, Clock::time_point> timer_times_;
  Id next_ = 1;
  Turns turns_;
  bool stopped_ = false;
};

}  // namespace host::broker
