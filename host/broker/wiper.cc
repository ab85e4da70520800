#include "host/broker/wiper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace host::broker {
namespace {

// A few milliseconds of work.
constexpr std::size_t wiped_at_once = 64 << 20;
constexpr auto after_failure = std::chrono::seconds(1);

}  // namespace

void Wiper::start(std::function<void()> done) {
  stop();
  wiped_ = 0;
  done_ = std::move(done);
  step();
}

void Wiper::step() {
  const std::size_t bytes = std::min(wiped_at_once, region_.slot_bytes() - wiped_);
  std::string error;
  if (!region_.wipe(slot_, wiped_, bytes, error)) {
    spdlog::error("{}: {}{}", label_, error, done_ ? "; the next try is in a second" : "");
    if (done_) again(after_failure);
    return;
  }
  wiped_ += bytes;
  if (wiped_ < region_.slot_bytes()) return again(Clock::duration::zero());
  if (const auto done = std::exchange(done_, nullptr)) done();
}

void Wiper::again(Clock::duration delay) {
  timer_ = loop_.after(delay, [this] {
    timer_ = 0;
    step();
  });
}

}  // namespace host::broker
