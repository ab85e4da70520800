#include "guest/session/sleeper.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "guest/base/log.h"
#include "guest/base/switches.h"
#include "guest/base/timespec.h"
#include "guest/base/uncancelled.h"
#include "guest/region/doorbell_channel.h"

namespace guest {
namespace {

ring::Asleep find_how(Region& region, const CheckedRegion& checked, std::uint32_t slot) {
  // Opened even by a process that never sleeps: with vsock, the end of the process's connection frees the slot.
  DoorbellChannel* doorbells = region.doorbells();
  if (doorbells != nullptr) doorbells->serve(slot);
  if (!switches().wakes) return ring::Asleep::No;
  if (region.same_kernel()) return ring::Asleep::ByFutex;
  if (doorbells != nullptr && checked.guest_vectors > slot) return ring::Asleep::ByDoorbell;
  const Module* module = region.module();
  if (module != nullptr && module->wakes(slot, checked.guest_vectors)) return ring::Asleep::ByDoorbell;
  if (module != nullptr)
    log(Level::Info, "no interrupt wakes session slot %u (the broker raises %u for the VM): waits use timed sleeps",
        slot, checked.guest_vectors);
  return ring::Asleep::No;
}

}  // namespace

void Sleeper::begin(const CheckedRegion& checked, std::uint32_t slot, const std::byte* base) {
  base_ = base;
  how_ = find_how(region_, checked, slot);
}

bool Sleeper::sleep(ring::Shared<std::uint32_t> word, std::uint64_t nanoseconds) const {
  const auto announced = static_cast<std::uint32_t>(how_);
  const std::uint32_t* at = word.futex_word();
  if (how_ == ring::Asleep::ByFutex) {
    const timespec limit = timespec_of(nanoseconds);
    syscall(SYS_futex, at, FUTEX_WAIT, announced, &limit, nullptr, 0);
    return true;
  }
  if (region_.module() == nullptr) {
    DoorbellChannel* doorbells = region_.doorbells();
    if (doorbells == nullptr || !listeners_.sleep(*doorbells, word, announced, nanoseconds))
      timed_sleep(longest_sleep_ns);
    return true;
  }
  const auto offset = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(at) - base_);
  const Module::Slept slept = region_.module()->sleep(offset, announced, nanoseconds);
  return slept == Module::Slept::Refused ? timed_sleep(longest_sleep_ns) : slept != Module::Slept::Gone;
}

// Only a slot of the kernel module can vanish; mappings of the device's files stay.
bool Sleeper::timed_sleep(std::uint64_t nanoseconds) const {
  const Uncancelled here;
  const timespec pause = timespec_of(nanoseconds);
  nanosleep(&pause, nullptr);
  return region_.module() == nullptr || region_.broker() != Region::Broker::Gone;
}

void Sleeper::rouse(ring::Shared<std::uint32_t> word) const {
  if (how_ == ring::Asleep::ByFutex) syscall(SYS_futex, word.futex_word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace guest
