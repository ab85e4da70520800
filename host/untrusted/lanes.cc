#include "host/untrusted/lanes.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

#include "host/untrusted/host_calls.h"

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
  session.host_calls = std::make_shared<HostCalls>(*this);
  for (std::uint32_t k = 0; k < ring::max_lanes; ++k) {
    lanes_[k].words = session.slot.lane(k);
    lanes_[k].caller = ring::LaneCaller(lanes_[k].words);
  }
}

Lanes::~Lanes() {
  end();
  session_.host_calls->close();
  std::unique_lock lock(mutex_);
  left_.wait(lock, [&] { return callers_ == 0; });
}

Lanes::Caller::Caller(Lanes& lanes) : lanes_(lanes) {
  const std::lock_guard lock(lanes_.mutex_);
  ++lanes_.callers_;
}

// Holds the lock to the end, since the lanes may be destroyed as soon as it is free.
Lanes::Caller::~Caller() {
  const std::lock_guard lock(lanes_.mutex_);
  if (--lanes_.callers_ == 0) lanes_.left_.notify_all();
}

std::optional<std::int32_t> Lanes::call(ring::LaneKind kind, std::uint64_t token, CUresult status) {
  const Caller caller(*this);
  Lane* lane = take();
  if (lane == nullptr || !fill(*lane, kind, token, status) || !await(*lane)) return std::nullopt;
  const std::int32_t result = lane->caller.result();
  release(*lane, State::Free);
  return result;
}

bool Lanes::post(ring::LaneKind kind, std::uint64_t token) {
  const Caller caller(*this);
  Lane* lane = take();
  if (lane == nullptr || !fill(*lane, kind, token)) return false;
  release(*lane, State::Left);
  return true;
}

// Takes a lane whose last use is answered, and makes it Busy. Null: the session ends.
Lanes::Lane* Lanes::take() {
  std::unique_lock lock(mutex_);
  while (!over()) {
    Lane* lane = find(State::Free);
    if (lane == nullptr) lane = find(State::Left);
    if (lane == nullptr) {
      released_.wait(lock);
      continue;
    }
    const bool left = lane->state == State::Left;
    lane->state = State::Busy;
    lock.unlock();
    return !left || await(*lane) ? lane : nullptr;
  }
  return nullptr;
}

// Under mutex_. Finds a lane in this state; among Left lanes it prefers one that is answered.
Lanes::Lane* Lanes::find(State state) {
  Lane* found = nullptr;
  for (Lane& lane : lanes_) {
    if (lane.state != state) continue;
    if (state == State::Free || lane.caller.look() != ring::Peer::Wait) return &lane;
    if (found == nullptr) found = &lane;
  }
  return found;
}

void Lanes::release(Lane& lane, State state) {
  {
    std::lock_guard lock(mutex_);
    lane.state = state;
  }
  released_.notify_one();
}

bool Lanes::fill(Lane& lane, ring::LaneKind kind, std::uint64_t token, CUresult status) {
  used_.store(true, std::memory_order_relaxed);
  if (lane.caller.post(static_cast<std::uint32_t>(kind), token, status) != ring::Peer::Ok) return breaks();
  guest_.wake();
  return true;
}

// Polls for a while, then sleeps until the guest or the bell thread wakes us (ring/queue/parking.h). False: the session
// ends, perhaps because of this lane's `done`.
bool Lanes::await(Lane& lane) {
  const auto decided = [&] { return lane.caller.look() != ring::Peer::Wait || over(); };
  ring::Parking self = sleeper(lane);
  while (!polled(decided) && self.may_sleep(decided)) {
    syscall(SYS_futex, self.word().futex_word(), FUTEX_WAIT, 1, nullptr, nullptr, 0);
    self.woke();
  }
  switch (lane.caller.look()) {
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
  session_.broken.store(true, std::memory_order_relaxed);
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
  for (const Lane& lane : lanes_) {
    ring::Parking waiting = sleeper(lane);
    waiting.call_off();
    wake(waiting.word());
  }
}

void Lanes::end() {
  {
    std::lock_guard lock(mutex_);
    ended_.store(true, std::memory_order_relaxed);
  }
  released_.notify_all();
  wake_all();
}

}  // namespace host
