#include "host/broker/region/page_scrubber.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace host::broker {
namespace {

constexpr auto after_failure = std::chrono::seconds(1);

}  // namespace

// ---- the queue -----------------------------------------------------------------------------------------------------

void ScrubQueue::add(PageScrubber& scrubber) {
  auto queue =
      std::find_if(queues_.begin(), queues_.end(), [&](const RegionQueue& l) { return l.region == &scrubber.region_; });
  if (queue == queues_.end()) queue = queues_.insert(queues_.end(), {&scrubber.region_, {}});
  queue->waiting.push_back(&scrubber);
  set_timer();
}

void ScrubQueue::remove(const PageScrubber& scrubber) {
  std::erase(failed_, &scrubber);
  for (auto queue = queues_.begin(); queue != queues_.end(); ++queue) {
    if (std::erase(queue->waiting, &scrubber) == 0) continue;
    if (queue->waiting.empty()) queues_.erase(queue);
    break;
  }
  set_timer();
}

void ScrubQueue::set_timer() {
  if (working_) return;  // work() sets it at its end
  loop_.forget(timer_);
  if (queues_.empty() && failed_.empty()) return;
  auto delay = Clock::duration::zero();
  if (queues_.empty()) {
    const auto earlier = [](const PageScrubber* a, const PageScrubber* b) { return a->retry_ < b->retry_; };
    delay = (*std::min_element(failed_.begin(), failed_.end(), earlier))->retry_ - Clock::now();
  }
  timer_ = loop_.after(std::max(delay, Clock::duration::zero()), [this] {
    timer_ = 0;
    work();
  });
}

void ScrubQueue::work() {
  working_ = true;
  retry_failed();
  const Clock::time_point end = Clock::now() + pace_.work;
  while (!queues_.empty()) {
    step();
    if (Clock::now() >= end) break;
  }
  working_ = false;
  set_timer();
}

void ScrubQueue::retry_failed() {
  const Clock::time_point now = Clock::now();
  const auto due =
      std::stable_partition(failed_.begin(), failed_.end(), [&](const PageScrubber* w) { return w->retry_ > now; });
  const std::vector<PageScrubber*> again(due, failed_.end());
  failed_.erase(due, failed_.end());
  for (PageScrubber* scrubber : again) add(*scrubber);
}

// Runs one step of the first lane's first scrubber, and moves the lane to the end.
void ScrubQueue::step() {
  queues_.splice(queues_.end(), queues_, queues_.begin());
  PageScrubber& scrubber = *queues_.back().waiting.front();
  const PageScrubber::Step result = scrubber.step(pace_.step);
  if (result == PageScrubber::Step::More) return;
  remove(scrubber);
  if (result == PageScrubber::Step::Failed) {
    if (!scrubber.done_) return;
    scrubber.retry_ = Clock::now() + after_failure;
    failed_.push_back(&scrubber);
  } else if (const auto done = std::exchange(scrubber.done_, nullptr)) {
    done();  // may start, stop or destroy any scrubber
  }
}

// ---- a scrubber ----------------------------------------------------------------------------------------------------

void PageScrubber::start(std::function<void()> done) {
  stop();
  range_ = scrubbed_ = 0;
  done_ = std::move(done);
  queue_.add(*this);
}

PageScrubber::Step PageScrubber::step(std::size_t bytes) {
  if (range_ == ranges_.size()) return Step::Done;
  const Region::Range& whole = ranges_[range_];
  const Region::Range part{whole.from + scrubbed_, std::min(bytes, whole.bytes - scrubbed_)};
  if (const auto scrubbed = region_.memory().scrub(part); !scrubbed) {
    if (const auto more = queue_.failures_.admit()) {
      spdlog::error("{} cannot be scrubbed: {}{}{}", label_, scrubbed.error().message,
                    done_ ? "; the next try is in a second" : "", *more);
    }
    return Step::Failed;
  }
  scrubbed_ += part.bytes;
  if (scrubbed_ == whole.bytes) ++range_, scrubbed_ = 0;
  return range_ == ranges_.size() ? Step::Done : Step::More;
}

}  // namespace host::broker
