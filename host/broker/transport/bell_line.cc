#include "host/broker/transport/bell_line.h"

#include <utility>

namespace host::broker {
namespace {

constexpr auto busy_for = std::chrono::seconds(1);  // after the last doorbell

}  // namespace

BellLine::BellLine(EventLoop& loop, ring::Shared<ring::RegionHeader> header, std::uint32_t peers, Pace pace,
                   std::function<void(std::uint32_t)> rung, std::function<void()> looked)
    : loop_(loop), header_(header), peers_(peers), pace_(pace), rung_(std::move(rung)), looked_(std::move(looked)) {
  look_again();
}

BellLine::~BellLine() { loop_.forget(timer_); }

bool BellLine::take_all() {
  bool any = false;
  for (std::uint32_t word = 0; word < ring::bell_words; ++word) any = take(word) || any;
  return any;
}

// Does not count for the pace: a process that requests a look sends doorbells anyway.
void BellLine::look_now() { take_all(); }

void BellLine::look() {
  if (take_all()) last_rung_ = Clock::now();
  looked_();
  look_again();
}

// The acquire pairs with the guest's release when it sets its bit: a look sees everything that the guest did before.
// The word is written only if a bit is set, so that an idle look leaves its cache line with the guest.
bool BellLine::take(std::uint32_t word) {
  const ring::Shared<std::uint64_t> line = header_[&ring::RegionHeader::rung][word];
  if (line.load(std::memory_order_relaxed) == 0) return false;
  std::uint64_t bits = line.exchange(0, std::memory_order_acquire);
  for (; bits != 0; bits &= bits - 1) {
    const std::uint32_t peer = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits));
    if (peer < peers_) rung_(peer);
  }
  return true;
}

void BellLine::look_again() {
  const bool busy = Clock::now() - last_rung_ < busy_for;
  timer_ = loop_.after(busy ? pace_.busy : pace_.idle, [this] {
    timer_ = 0;
    look();
  });
}

}  // namespace host::broker
