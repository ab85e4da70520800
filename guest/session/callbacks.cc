#include "guest/session/callbacks.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "guest/base/log.h"
#include "guest/region/cache_probe.h"

namespace guest {
namespace {

// The worker ends each sleep. The limit is for the case that another thread finds the session lost.
constexpr std::uint64_t longest_callback_sleep_ns = 1'000'000'000;

thread_local bool is_calling = false;

// Called when the program's function has forked and returned in the child, whose only thread is this one.
[[noreturn]] void leave_child() { _exit(0); }

}  // namespace

std::atomic<bool> Callbacks::started_{false};

bool Callbacks::inside() { return is_calling; }

// Only a session that failed to open is destroyed. The destructor waits for the callback thread, which a forked child
// does not have.
Callbacks::~Callbacks() {
  if (forgotten()) return;
  stop();
  ring::UniqueLock lock(mutex_);
  ended_.wait(lock.native(), [this]() REQUIRES(mutex_) { return !running_; });
}

std::uint64_t Callbacks::issue(const Callback& callback) {
  if (forgotten()) return 0;
  ring::UniqueLock lock(mutex_);
  if (over() || (!running_ && !start())) return 0;
  const bool first = tokens_.empty();
  const std::uint64_t token = tokens_.issue(callback);
  lock.unlock();  // unlocks first, so that the woken thread finds the mutex unlocked
  if (first) issued_.notify_one();
  return token;
}

std::optional<Callback> Callbacks::find(std::uint64_t token) {
  if (forgotten()) return std::nullopt;
  ring::UniqueLock lock(mutex_);
  return tokens_.find(token);
}

bool Callbacks::end(std::uint64_t token) {
  if (forgotten()) return false;
  ring::UniqueLock lock(mutex_);
  const auto callback = tokens_.end(token);
  lock.unlock();
  if (callback && callback->ended != nullptr) callback->ended(*callback);
  return callback.has_value();
}

// Does not wait for the callback thread, which may be in a function of the program that never returns.
void Callbacks::stop() {
  if (forgotten()) return;
  ring::UniqueLock lock(mutex_);
  stopped_ = true;
  if (!running_) return;
  issued_.notify_one();
  sleeper_.rouse(self().word());
}

// Starts the callback thread. The thread takes no signals, because the program's signal handlers expect threads of the
// program.
bool Callbacks::start() {
  callback_slots_.open(slot_.view());
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  running_ = pthread_create(&thread, nullptr, run, this) == 0;
  if (running_) pthread_detach(thread), started_.store(true, std::memory_order_relaxed);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!running_) log(Level::Error, "no thread can be made for the functions that the program has called by the GPU");
  return running_;
}

void* Callbacks::run(void* argument) {
  auto& self = *static_cast<Callbacks*>(argument);
  ring::UniqueLock lock(self.mutex_);
  self.serve(lock);
  self.running_ = false;
  self.ended_.notify_all();
  return nullptr;
}

void Callbacks::serve(ring::UniqueLock& lock) {
  while (!forgotten() && !over()) {
    ring::CallbackRequest call;
    if (tokens_.empty())
      issued_.wait(lock.native());
    else if (ring::CallbackCallee* callback_slot = find_call(call))
      make(call, *callback_slot);
    else if (!over())
      await_call();
  }
}

ring::CallbackCallee* Callbacks::find_call(ring::CallbackRequest& call) {
  ring::Peer peer = ring::Peer::Wait;
  ring::CallbackCallee* const callback_slot = callback_slots_.take(call, peer);
  if (callback_slot != nullptr) sleep_ns_ = 0;
  if (peer == ring::Peer::Broken) liveness_.lose("a lane's number makes no sense");
  return callback_slot;
}

void Callbacks::make(const ring::CallbackRequest& call, ring::CallbackCallee& callback_slot) {
  const auto kind = static_cast<ring::CallbackKind>(call.kind);
  if (kind == ring::CallbackKind::Forget) {
    const auto ended = tokens_.end(call.token);
    answer(callback_slot, ended ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
    if (!ended || ended->ended == nullptr) return;
    const ring::MutexUnlock unlocked(mutex_);
    ended->ended(*ended);
    if (forgotten()) leave_child();
    return;
  }
  const bool known = kind == ring::CallbackKind::HostFunction || kind == ring::CallbackKind::StreamCallback;
  const auto callback = known ? tokens_.take(call.token) : std::nullopt;
  if (!callback) return answer(callback_slot, CUDA_ERROR_INVALID_HANDLE);
  CUresult result = CUDA_SUCCESS;
  {
    const ring::MutexUnlock unlocked(mutex_);
    is_calling = true;
    result = callback->function(*callback, static_cast<CUresult>(call.status));
    is_calling = false;
    if (forgotten()) leave_child();
  }
  if (!over()) answer(callback_slot, result);
}

void Callbacks::answer(ring::CallbackCallee& callback_slot, CUresult result) {
  callback_slot.answer(result);
  const std::uint32_t k = callback_slots_.index_of(callback_slot);
  ring::Parking waiter(slot_.view().callback_slot(k)[&ring::CallbackSlot::worker_asleep]);
  if (waiter.must_wake() != ring::Asleep::No) doorbell_.wake(waiter.word());
}

void Callbacks::await_call() {
  const std::uint64_t start = monotonic_nanoseconds(), bound = slot_.spin_nanoseconds();
  if (poll(start + spin_.share(bound))) return spin_.ended_polling();
  if (over()) return;
  sleep();
  spin_.ended_asleep(monotonic_nanoseconds() - start, bound);
}

// Polls until a callback slot is filled or the time `end` is reached. Unlocks the mutex between polls, for other
// threads.
bool Callbacks::poll(std::uint64_t end) {
  constexpr int pauses = 16;
  while (monotonic_nanoseconds() < end && !over()) {
    if (anything()) return true;
    const ring::MutexUnlock unlocked(mutex_);
    for (int i = 0; i < pauses; ++i) __builtin_ia32_pause();
  }
  return false;
}

void Callbacks::sleep() {
  if (sleeper_.how() != ring::Asleep::No) return park();
  sleep_ns_ = std::clamp(sleep_ns_ * 2, first_sleep_ns, longest_sleep_ns);
  const std::uint64_t nanoseconds = sleep_ns_;
  const ring::MutexUnlock unlocked(mutex_);
  if (!sleeper_.timed_sleep(nanoseconds) && !forgotten()) liveness_.lose_slot();
}

// Sleeps until the worker has filled a callback slot (ring/queue/parking.h).
void Callbacks::park() {
  ring::Parking parking = self();
  const auto called = [this] {
    mutex_.assume_held();
    return anything();
  };
  if (!parking.may_sleep(called, sleeper_.how())) return;
  {
    const ring::MutexUnlock unlocked(mutex_);
    const bool ours = sleeper_.sleep(parking.word(), longest_callback_sleep_ns);
    if (!ours && !forgotten()) liveness_.lose_slot();
  }
  if (!over()) parking.woke();
}

}  // namespace guest
