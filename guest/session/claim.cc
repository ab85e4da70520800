#include "guest/session/claim.h"

#include <ctime>
#include <string>
#include <utility>

#include "guest/log.h"
#include "guest/region/cache_probe.h"
#include "guest/session/holders.h"
#include "guest/session/owner.h"
#include "guest/session/slot_step.h"

namespace guest {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
// After this wait the log says which programs hold the slots.
constexpr std::uint64_t silent_ns = second_ns;
// How often a waiting program looks whether a slot's owner has died. In a VM nobody else looks.
constexpr std::uint64_t between_burials_ns = second_ns / 10;

void sleep_ns(long ns) {
  const timespec pause{.tv_sec = 0, .tv_nsec = ns};
  nanosleep(&pause, nullptr);
}

}  // namespace

bool SlotClaim::try_take(std::uint32_t slot, const ring::SlotOwner& self) {
  const auto claimed = claim(entry(slot), self);
  if (!claimed) return false;
  entry(slot)[&ring::SlotEntry::program].copy_in(this_program().text);
  claimed_ = *claimed;
  slot_ = slot;
  region_.ring(ring::peer_broker);
  return true;
}

// Gives the slot of a process that has died without giving it back to the broker.
void SlotClaim::free_dead(std::uint32_t slot, const ring::SlotOwner& self) {
  if (bury(entry(slot), [&](const ring::SlotOwner& owner) { return certainly_dead(owner, self); }))
    region_.ring(ring::peer_broker);
}

bool SlotClaim::broker_answers() {
  const Region::Broker broker = region_.broker();
  if (broker == Region::Broker::Gone) return log(Level::Error, "the broker has ended"), false;
  if (broker == Region::Broker::Unknown && !heartbeat_.beats())
    return log(Level::Error, "the broker does not answer; if it was restarted, this VM must be started again"), false;
  return true;
}

bool SlotClaim::take(std::uint64_t until) {
  const ring::SlotOwner self = this_process(region_.peer());
  const std::uint64_t warn_at = monotonic_nanoseconds() + silent_ns;
  std::uint64_t next_burial = 0;
  bool asked = false, warned = false;
  do {
    if (const std::uint64_t now = monotonic_nanoseconds(); now >= next_burial) {
      for (std::uint32_t slot = 0; slot < checked_.slot_count; ++slot) free_dead(slot, self);
      next_burial = now + between_burials_ns;
    }
    for (std::uint32_t slot = 0; slot < checked_.slot_count; ++slot)
      if (try_take(slot, self)) return true;
    if (!asked) {
      checked_.view.header()[&ring::RegionHeader::wanted].fetch_add(1, std::memory_order_relaxed);
      region_.ring(ring::peer_broker);
      asked = true;
    }
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
  if (!held() || std::exchange(given_back_, true)) return;
  if (release(entry(slot_), claimed_)) region_.ring(ring::peer_broker);
}

}  // namespace guest
