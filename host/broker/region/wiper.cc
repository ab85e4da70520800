#include "host/broker/region/wiper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace host::broker {
namespace {

constexpr auto after_failure = std::chrono::seconds(1);

}  // namespace

// ---- the queue -----------------------------------------------------------------------------------------------------

void WipeQueue::add(Wiper& wiper) {
  auto lane = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& l) { return l.region == &wiper.region_; });
  if (lane == lanes_.end()) lane = lanes_.insert(lanes_.end(), {&wiper.region_, {}});
  lane->waiting.push_back(&wiper);
  set_timer();
}

void WipeQueue::remove(const Wiper& wiper) {
  std::erase(failed_, &wiper);
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    if (std::erase(lane->waiting, &wiper) == 0) continue;
    if (lane->waiting.empty()) lanes_.erase(lane);
    break;
  }
  set_timer();
}

void WipeQueue::set_timer() {
  if (working_) return;  // turn() sets it at its end
  loop_.forget(timer_);
  if (lanes_.empty() && failed_.empty()) return;
  auto delay = Clock::duration::zero();
  if (lanes_.empty()) {
    const auto earlier = [](const Wiper* a, const Wiper* b) { return a->retry_ < b->retry_; };
    delay = (*std::min_element(failed_.begin(), failed_.end(), earlier))->retry_ - Clock::now();
  }
  timer_ = loop_.after(std::max(delay, Clock::duration::zero()), [this] {
    timer_ = 0;
    turn();
  });
}

void WipeQueue::turn() {
  working_ = true;
  retry_failed();
  const Clock::time_point end = Clock::now() + pace_.turn;
  while (!lanes_.empty()) {
    step();
    if (Clock::now() >= end) break;
  }
  working_ = false;
  set_timer();
}

void WipeQueue::retry_failed() {
  const Clock::time_point now = Clock::now();
  const auto due =
      std::stable_partition(failed_.begin(), failed_.end(), [&](const Wiper* w) { return w->retry_ > now; });
  const std::vector<Wiper*> again(due, failed_.end());
  failed_.erase(due, failed_.end());
  for (Wiper* wiper : again) add(*wiper);
}

// Runs one step of the first lane's first scrubber, and moves the lane to the end.
void WipeQueue::step() {
  lanes_.splice(lanes_.end(), lanes_, lanes_.begin());
  Wiper& wiper = *lanes_.back().waiting.front();
  const Wiper::Step result = wiper.step(pace_.step);
  if (result == Wiper::Step::More) return;
  remove(wiper);
  if (result == Wiper::Step::Failed) {
    if (!wiper.done_) return;
    wiper.retry_ = Clock::now() + after_failure;
    failed_.push_back(&wiper);
  } else if (const auto done = std::exchange(wiper.done_, nullptr)) {
    done();  // may start, stop or destroy any scrubber
  }
}

// ---- a scrubber ----------------------------------------------------------------------------------------------------

void Wiper::start(std::function<void()> done) {
  stop();
  range_ = wiped_ = 0;
  done_ = std::move(done);
  queue_.add(*this);
}

Wiper::Step Wiper::step(std::size_t bytes) {
  if (range_ == ranges_.size()) return Step::Done;
  const Region::Range& whole = ranges_[range_];
  const Region::Range part{whole.from + wiped_, std::min(bytes, whole.bytes - wiped_)};
  std::string error;
  if (!region_.memory().wipe(part, error)) {
    if (const auto more = queue_.failures_.admit()) {
      spdlog::error("{} cannot be wiped: {}{}{}", label_, error, done_ ? "; the next try is in a second" : "", *more);
    }
    return Step::Failed;
  }
  wiped_ += part.bytes;
  if (wiped_ == whole.bytes) ++range_, wiped_ = 0;
  return range_ == ranges_.size() ? Step::Done : Step::More;
}

}  // namespace host::broker
