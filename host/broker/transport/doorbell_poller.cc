#include "host/broker/transport/doorbell_poller.h"

#include <utility>

namespace host::broker {
namespace {

constexpr auto busy_for = std::chrono::seconds(1);  // after the last doorbell

}  // namespace

DoorbellPoller::DoorbellPoller(EventLoop& loop, ring::Shared<ring::RegionHeader> header, std::uint32_t peers, Pace pace,
                               std::function<void(std::uint32_t)> signalled, std::function<void()> looked)
    : loop_(loop),
      header_(header),
      peers_(peers),
      pace_(pace),
      signalled_(std::move(signalled)),
      looked_(std::move(looked)) {
  look_again();
}

DoorbellPoller::~DoorbellPoller() { loop_.forget(timer_); }

bool DoorbellPoller::take_all() {
  bool any = false;
  for (std::uint32_t word = 0; word < ring::doorbell_words; ++word) any = take(word) || any;
  return any;
}

// Does not count for the pace: a process that requests a look sends doorbells anyway.
void DoorbellPoller::look_now() { take_all(); }

void DoorbellPoller::look() {
  if (take_all()) last_signalled_ = Clock::now();
  looked_();
  look_again();
}

// The acquire pairs with the guest's release when it sets its bit: a look sees everything that the guest did before.
// The word is written only if a bit is set, so that an idle look leaves its cache line with the guest.
bool DoorbellPoller::take(std::uint32_t word) {
  const ring::Shared<std::uint64_t> line = header_[&ring::RegionHeader::doorbell_bits][word];
  if (line.load(std::memory_order_relaxed) == 0) return false;
  std::uint64_t bits = line.exchange(0, std::memory_order_acquire);
  for (; bits != 0; bits &= bits - 1) {
    const std::uint32_t peer = word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits));
    if (peer < peers_) signalled_(peer);
  }
  return true;
}

void DoorbellPoller::look_again() {
  const bool busy = Clock::now() - last_signalled_ < busy_for;
  timer_ = loop_.after(busy ? pace_.busy : pace_.idle, [this] {
    timer_ = 0;
    look();
  });
}

}  // namespace host::broker
