#include "guest/session/slot/liveness.h"

#include <ctime>

#include "guest/base/log.h"

namespace guest {

// If the device has gone, the slot shows arbitrary values; the log then gives the lost device as the cause.
void Liveness::lose(const char* why) {
  if (condition_.exchange(Condition::Lost) == Condition::Lost) return;
  if (region_.module() != nullptr && region_.broker() == Region::Broker::Gone) why = region_.gone_in_words();
  log(Level::Error, "the session with the host is lost: %s", why);
}

void Liveness::lose_slot() {
  lose(region_.broker() == Region::Broker::Gone ? region_.gone_in_words() : "its slot was taken away");
}

// Changes only the state Open, since Lost is final.
void Liveness::suspend() {
  auto open = Condition::Open;
  if (condition_.compare_exchange_strong(open, Condition::Suspended))
    log(Level::Error,
        "neither broker nor worker answers: calls fail until one does; if none does, start the program again, then "
        "the VM");
}

// Cheap enough for a call that waits for nothing: the function reads a cached word, and the clock of the last timer
// tick.
bool Liveness::attached() { return attached_now(nullptr); }

bool Liveness::attached_now(ClockPace* pace) {
  if (!usable()) return comes_back();
  if (!claim_.seems_ours()) return host_alive();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::uint64_t tick =
      static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
  if (pace != nullptr) pace->read(tick);
  if (tick - last_look_ms_.load(std::memory_order_relaxed) < Heartbeat::between_questions_ns / 1'000'000) return true;
  last_look_ms_.store(tick, std::memory_order_relaxed);
  return host_alive();
}

// The slot's word shows whether the worker has ended. That explains more than a closed connection. If the kernel module
// has lost the device, the word cannot be read.
bool Liveness::loses(Region::Broker broker) {
  const bool gone = broker == Region::Broker::Gone;
  const bool readable = !gone || region_.module() == nullptr;
  if (readable && !claim_.is_ours()) {
    lose("its worker has ended");
    return true;
  }
  if (gone) lose(region_.gone_in_words());
  return gone;
}

// The connection or, in a VM, the heartbeats show whether the host has ended.
bool Liveness::host_alive() {
  if (!usable()) return false;
  const Region::Broker broker = region_.broker();
  if (loses(broker)) return false;
  // A broker with an open connection is alive, however late its heartbeat is.
  return broker == Region::Broker::Lives || heartbeat_.beats() || (suspend(), false);
}

// A suspended session opens again when the host answers and the slot is still this process's. guest/session/channel.cc
// explains what becomes of the abandoned calls.
bool Liveness::comes_back() {
  if (lost() || loses(region_.broker())) return false;
  if (!heartbeat_.answers_again()) return false;
  auto suspended = Condition::Suspended;
  if (condition_.compare_exchange_strong(suspended, Condition::Open))
    log(Level::Warn, "the host answers again: the session goes on; calls that failed meanwhile are not made up for");
  return usable();
}

}  // namespace guest
