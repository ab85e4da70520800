#include "host/untrusted/lanes/lanes.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

#include "host/untrusted/lanes/host_calls.h"

namespace host {
namespace {

void wake(ring::Shared<std::uint32_t> word) {
  syscall(SYS_futex, word.futex_word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

Lanes::Lanes(Session& session, int doorbell_fd)
    : session_(session),
      doorbell_fd_(doorbell_fd),
      guest_(session.slot.header()[&ring::SlotHeader::callbacks_asleep], session.options.interrupt_fd) {
  session.callbacks.calls = std::make_shared<HostCalls>(*this);
  for (std::uint32_t k = 0; k < ring::max_lanes; ++k) pool_.add(k, session.slot.lane(k));
}

Lanes::~Lanes() {
  end();
  session_.callbacks.calls->close();
  std::unique_lock lock(mutex_);
  none_calls_.wait(lock, [&] { return callers_ == 0; });
}

Lanes::Caller::Caller(Lanes& lanes) : lanes_(lanes) {
  const std::lock_guard lock(lanes_.mutex_);
  ++lanes_.callers_;
}

// Holds the lock until return, since the Lanes may be destroyed as soon as it is free.
Lanes::Caller::~Caller() {
  const std::lock_guard lock(lanes_.mutex_);
  if (--lanes_.callers_ == 0) lanes_.none_calls_.notify_all();
}

std::optional<std::int32_t> Lanes::call(ring::LaneKind kind, std::uint64_t token, CUresult status) {
  const Caller caller(*this);
  const auto lane = take();
  if (!lane || !fill(*lane, kind, token, status) || !await(*lane)) return std::nullopt;
  const std::int32_t result = pool_.caller(*lane).result();
  pool_.give_back(*lane);
  return result;
}

bool Lanes::post(ring::LaneKind kind, std::uint64_t token) {
  const Caller caller(*this);
  const auto lane = take();
  if (!lane || !fill(*lane, kind, token)) return false;
  pool_.leave(*lane);
  return true;
}

std::optional<std::size_t> Lanes::take() {
  return pool_.take([this](std::size_t lane) { return await(lane); }, [this] { return over(); });
}

bool Lanes::fill(std::size_t lane, ring::LaneKind kind, std::uint64_t token, CUresult status) {
  used_.store(true, std::memory_order_relaxed);
  if (pool_.caller(lane).post(static_cast<std::uint32_t>(kind), token, status) != ring::Peer::Ok) return breaks();
  guest_.wake();
  return true;
}

// Polls for a while, then sleeps until the guest or the doorbell thread wakes this thread (ring/queue/parking.h). False
// if the session ends, perhaps because of this slot's `done`.
bool Lanes::await(std::size_t lane) {
  const ring::LaneCaller& caller = pool_.caller(lane);
  const auto decided = [&] { return caller.look() != ring::Peer::Wait || over(); };
  ring::Parking self = sleeper(lane);
  while (!polled(decided) && self.may_sleep(decided)) {
    syscall(SYS_futex, self.word().futex_word(), FUTEX_WAIT, 1, nullptr, nullptr, 0);
    self.woke();
  }
  switch (caller.look()) {
    case ring::Peer::Ok: return true;
    case ring::Peer::Wait: return false;
    case ring::Peer::Broken: break;
  }
  return breaks();
}

template <class Done>
bool Lanes::polled(Done done) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(session_.options.spin_us);
  do {
    if (done()) return true;
    __builtin_ia32_pause();
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

bool Lanes::breaks() {
  session_.protocol.broken.store(true, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(doorbell_fd_, &one, sizeof one);
  return false;
}

void Lanes::destroyed(std::uint64_t object, std::uint64_t token) {
  session_.objects.drop(object);
  post(ring::LaneKind::HostFunction, token);
}

void Lanes::wake_all() {
  if (!used_.load(std::memory_order_relaxed)) return;
  for (std::size_t lane = 0; lane < ring::max_lanes; ++lane) {
    ring::Parking waiting = sleeper(lane);
    waiting.call_off();
    wake(waiting.word());
  }
}

void Lanes::end() {
  ended_.store(true, std::memory_order_relaxed);
  pool_.end();
  wake_all();
}

}  // namespace host
