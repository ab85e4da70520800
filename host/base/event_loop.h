// The broker's event loop. The broker's single thread waits in it for sockets, eventfds, pidfds, pipes and timers.
//
// run() calls the callbacks one at a time. A callback may add and forget watches and timers, including its own. A watch
// is level-triggered: it calls back as long as the descriptor is ready, until forget(). The loop uses io_uring where
// the kernel offers it (one system call submits and waits), and epoll elsewhere, as in many containers.
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

// Records for the next broker hold a moment as nanoseconds of CLOCK_MONOTONIC.
inline std::uint64_t in_nanoseconds(Clock::time_point moment) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(moment.time_since_epoch()).count());
}
inline Clock::time_point moment_of(std::uint64_t nanoseconds) {
  return Clock::time_point(std::chrono::nanoseconds(nanoseconds));
}

// Waits for descriptors on behalf of the loop. Each wait is one-shot and has an id that is never used twice.
class Waiter {
 public:
  struct Event {
    std::uint64_t id;
    short events;  // poll's bits; POLLERR if the wait itself failed
  };
  virtual ~Waiter() = default;
  virtual const char* name() const = 0;
  virtual void arm(std::uint64_t id, int fd, short events) = 0;
  virtual void disarm(std::uint64_t id, int fd) = 0;
  // Waits until a descriptor is ready or `timeout` passes (null: no timeout), and appends to `events`.
  virtual void wait(const std::chrono::nanoseconds* timeout, std::vector<Event>& events) = 0;
};

[[nodiscard]] std::unique_ptr<Waiter> make_uring_waiter();  // null if the kernel refuses io_uring
[[nodiscard]] std::unique_ptr<Waiter> make_epoll_waiter();
[[nodiscard]] std::unique_ptr<Waiter> make_waiter();  // io_uring if available, else epoll

class EventLoop {
 public:
  using Id = std::uint64_t;  // 0: none

  explicit EventLoop(std::unique_ptr<Waiter> waiter = make_waiter()) : waiter_(std::move(waiter)) {}
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // The caller owns the descriptor, and keeps it open until forget().
  Id watch(int fd, short events, std::function<void(short)> callback);
  Id after(Clock::duration delay, std::function<void()> callback);
  // Stops a watch or a timer and sets `id` to 0; its callback is not called afterwards. 0 is allowed.
  void forget(Id& id);

  void run();  // until stop()
  void stop() { stopped_ = true; }

  // Processor time of the loop's iterations since it began. The loop serves no other VM during an iteration, so the
  // longest iteration bounds the delay that one VM can cause. Time spent waiting is not counted. In a virtual machine,
  // steal time counts as the broker's.
  struct Iterations {
    static constexpr std::chrono::milliseconds bound{50};  // processor time of one iteration that is worth reporting
    std::uint64_t count = 0;
    std::uint64_t beyond = 0;  // iterations longer than `bound`
    std::chrono::nanoseconds longest{};
  };
  const Iterations& iterations() const { return iterations_; }
  const char* waiter_name() const { return waiter_->name(); }

 private:
  struct Watch {
    int fd;
    short events;
    std::shared_ptr<std::function<void(short)>> callback;  // shared: a callback may forget its own watch while it runs
  };
  void iterate(std::vector<Waiter::Event>& events);
  void run_timers();
  void dispatch(const Waiter::Event& event);

  std::unique_ptr<Waiter> waiter_;
  std::unordered_map<Id, Watch> watches_;
  std::map<std::pair<Clock::time_point, Id>, std::function<void()>> timers_;
  std::unordered_map<Id, Clock::time_point> timer_times_;
  Id next_ = 1;
  Iterations iterations_;
  bool stopped_ = false;
};

}  // namespace host::broker
