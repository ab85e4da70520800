#include "guest/session/slot/claim.h"

#include <ctime>
#include <string>
#include <utility>

#include "guest/base/log.h"
#include "guest/region/cache_probe.h"
#include "guest/session/slot/holders.h"

namespace guest {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
// After this wait the log names the programs that own the slots.
constexpr std::uint64_t silent_ns = second_ns;
// How often a waiting program checks whether a slot's owner has died. In a VM without the module, only programs check
// this.
constexpr std::uint64_t between_burials_ns = second_ns / 10;

void sleep_ns(long ns) {
  const timespec pause{.tv_sec = 0, .tv_nsec = ns};
  nanosleep(&pause, nullptr);
}

}  // namespace

bool SlotClaim::broker_answers() {
  const Region::Broker broker = region_.broker();
  if (broker == Region::Broker::Gone) {
    log(Level::Error, "%s", region_.gone_in_words());
    return false;
  }
  if (broker == Region::Broker::Unknown && !heartbeat_.beats()) {
    log(Level::Error, "the broker does not answer; if it was restarted, this VM must be started again");
    return false;
  }
  return true;
}

bool SlotClaim::take(std::uint64_t until) {
  const std::uint64_t warn_at = monotonic_nanoseconds() + silent_ns;
  std::uint64_t next_burial = 0;
  bool asked = false, warned = false;
  do {
    if (const std::uint64_t now = monotonic_nanoseconds(); now >= next_burial) {
      taking_->bury_dead();
      next_burial = now + between_burials_ns;
    }
    if (const auto taken = taking_->try_take()) {
      taken_ = *taken;
      return true;
    }
    if (!std::exchange(asked, true)) taking_->want();
    if (!broker_answers()) return false;
    if (!warned && monotonic_nanoseconds() >= warn_at) warned = warn_if_full();
    sleep_ns(1'000'000);
  } while (monotonic_nanoseconds() < until);
  log(Level::Error, "none of the %u session slots of this VM became free within %llu s", checked_.slot_count,
      static_cast<unsigned long long>(patience_ns / second_ns));
  return false;
}

bool SlotClaim::warn_if_full() const {
  const std::string holders = holders_of_all(checked_);
  if (holders.empty()) return false;
  log(Level::Warn,
      "all %u session slots of this VM are taken, by %s; waiting for one, up to %llu s (the key slots of ivgpud's "
      "configuration gives more)",
      checked_.slot_count, holders.c_str(), static_cast<unsigned long long>(patience_ns / second_ns));
  return true;
}

void SlotClaim::give_back() {
  if (held() && !std::exchange(given_back_, true)) taking_->give_back(taken_);
}

}  // namespace guest
