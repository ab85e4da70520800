#include "host/untrusted/callbacks/callback_slots.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

#include "host/untrusted/callbacks/host_calls.h"
#include "ring/base/mutex.h"

namespace host {
namespace {

void wake(ring::Shared<std::uint32_t> word) {
  syscall(SYS_futex, word.futex_word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

CallbackSlots::CallbackSlots(Session& session, int doorbell_fd)
    : session_(session),
      doorbell_fd_(doorbell_fd),
      guest_(session.slot.header()[&ring::SlotHeader::callbacks_asleep], session.options.interrupt_fd) {
  session.callbacks.calls = std::make_shared<HostCalls>(*this);
  for (std::uint32_t k = 0; k < ring::max_callback_slots; ++k) pool_.add(k, session.slot.callback_slot(k));
}

CallbackSlots::~CallbackSlots() {
  end();
  session_.callbacks.calls->close();
  ring::UniqueLock lock(mutex_);
  none_calls_.wait(lock.native(), [this]() REQUIRES(mutex_) { return callers_ == 0; });
}

CallbackSlots::Caller::Caller(CallbackSlots& callback_slots) : callback_slots_(callback_slots) {
  const ring::MutexLock lock(callback_slots_.mutex_);
  ++callback_slots_.callers_;
}

// Holds the lock until the destructor returns, since CallbackSlots may be destroyed as soon as the lock is free.
CallbackSlots::Caller::~Caller() {
  const ring::MutexLock lock(callback_slots_.mutex_);
  if (--callback_slots_.callers_ == 0) callback_slots_.none_calls_.notify_all();
}

std::optional<std::int32_t> CallbackSlots::call(ring::CallbackKind kind, std::uint64_t token, CUresult status) {
  const Caller caller(*this);
  const auto callback_slot = take();
  if (!callback_slot || !fill(*callback_slot, kind, token, status) || !await(*callback_slot)) return std::nullopt;
  const std::int32_t result = pool_.caller(*callback_slot).result();
  pool_.give_back(*callback_slot);
  return result;
}

bool CallbackSlots::post(ring::CallbackKind kind, std::uint64_t token) {
  const Caller caller(*this);
  const auto callback_slot = take();
  if (!callback_slot || !fill(*callback_slot, kind, token)) return false;
  pool_.leave(*callback_slot);
  return true;
}

std::optional<std::size_t> CallbackSlots::take() {
  return pool_.take([this](std::size_t callback_slot) { return await(callback_slot); }, [this] { return over(); });
}

bool CallbackSlots::fill(std::size_t callback_slot, ring::CallbackKind kind, std::uint64_t token, CUresult status) {
  used_.store(true, std::memory_order_relaxed);
  if (pool_.caller(callback_slot).post(static_cast<std::uint32_t>(kind), token, status) != ring::Peer::Ok)
    return breaks();
  guest_.wake();
  return true;
}

// Polls for a while, then sleeps until the guest or the doorbell thread wakes this thread (ring/queue/parking.h).
// Returns false if the session ends, perhaps because of this slot's `done`.
bool CallbackSlots::await(std::size_t callback_slot) {
  const ring::CallbackCaller& caller = pool_.caller(callback_slot);
  const auto decided = [&] { return caller.look() != ring::Peer::Wait || over(); };
  ring::Parking self = sleeper(callback_slot);
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
bool CallbackSlots::polled(Done done) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(session_.options.spin_us);
  do {
    if (done()) return true;
    __builtin_ia32_pause();
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

bool CallbackSlots::breaks() {
  session_.protocol.broken.store(true, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = write(doorbell_fd_, &one, sizeof one);
  return false;
}

void CallbackSlots::destroyed(std::uint64_t object, std::uint64_t token) {
  session_.objects.drop(object);
  post(ring::CallbackKind::HostFunction, token);
}

void CallbackSlots::wake_all() {
  if (!used_.load(std::memory_order_relaxed)) return;
  for (std::size_t callback_slot = 0; callback_slot < ring::max_callback_slots; ++callback_slot) {
    ring::Parking waiting = sleeper(callback_slot);
    waiting.call_off();
    wake(waiting.word());
  }
}

void CallbackSlots::end() {
  ended_.store(true, std::memory_order_relaxed);
  pool_.end();
  wake_all();
}

}  // namespace host
