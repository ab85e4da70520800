#include "host/base/event_loop.h"

#include <time.h>

#include <algorithm>
#include <utility>

namespace host::broker {
namespace {

std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

std::unique_ptr<Waiter> make_waiter() {
  auto waiter = make_uring_waiter();
  return waiter ? std::move(waiter) : make_epoll_waiter();
}

EventLoop::Id EventLoop::watch(int fd, short events, std::function<void(short)> callback) {
  const Id id = next_++;
  watches_[id] = {fd, events, std::make_shared<std::function<void(short)>>(std::move(callback))};
  waiter_->arm(id, fd, events);
  return id;
}

EventLoop::Id EventLoop::after(Clock::duration delay, std::function<void()> callback) {
  const Id id = next_++;
  const Clock::time_point when = Clock::now() + delay;
  timers_[{when, id}] = std::move(callback);
  timer_times_[id] = when;
  return id;
}

void EventLoop::forget(Id& id) {
  if (const auto watch = watches_.find(id); watch != watches_.end()) {
    waiter_->disarm(id, watch->second.fd);
    watches_.erase(watch);
  }
  if (const auto time = timer_times_.find(id); time != timer_times_.end()) {
    timers_.erase({time->second, id});
    timer_times_.erase(time);
  }
  id = 0;
}

void EventLoop::dispatch(const Waiter::Event& event) {
  const auto found = watches_.find(event.id);
  if (found == watches_.end()) return;
  const auto callback = found->second.callback;
  (*callback)(event.events);
  const auto still = watches_.find(event.id);
  if (still != watches_.end()) waiter_->arm(event.id, still->second.fd, still->second.events);
}

void EventLoop::run_timers() {
  // Run only the timers that were due on entry: a callback may add a timer of zero, which must not starve the
  // descriptors.
  const Clock::time_point now = Clock::now();
  const Id first_new = next_;
  for (auto timer = timers_.begin(); timer != timers_.end() && timer->first.first <= now && !stopped_;) {
    if (timer->first.second >= first_new) {
      ++timer;
      continue;
    }
    const auto callback = std::move(timer->second);
    timer_times_.erase(timer->first.second);
    timers_.erase(timer);
    callback();
    timer = timers_.begin();  // the callback may have cancelled other timers
  }
}

void EventLoop::iterate(std::vector<Waiter::Event>& events) {
  events.clear();
  if (timers_.empty()) {
    waiter_->wait(nullptr, events);
  } else {
    const std::chrono::nanoseconds left = timers_.begin()->first.first - Clock::now();
    const std::chrono::nanoseconds timeout = std::max(left, std::chrono::nanoseconds(0));
    waiter_->wait(&timeout, events);
  }
  for (const Waiter::Event& event : events)
    if (!stopped_) dispatch(event);
  run_timers();
}

void EventLoop::run() {
  std::vector<Waiter::Event> events;
  stopped_ = false;
  for (auto before = processor_time(); !stopped_;) {
    iterate(events);
    const auto after = processor_time();
    const auto took = after - std::exchange(before, after);
    iterations_.longest = std::max(iterations_.longest, took);
    iterations_.beyond += took > Iterations::bound;
    ++iterations_.count;
  }
}

}  // namespace host::broker
