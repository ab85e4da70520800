// Lock-free variants of both sides of a call from the worker to the program, for comparison with the product: the
// guest's registered functions (guest/session/callbacks.h, tokens.h), and worker threads that wait for callback slots
// (host/untrusted/callbacks/callback_slots.h). The slots' words and sleeps are the product's own (ring/queue/).
//
// These variants are not ready for the product: docs/design/017-lockfree-between-threads.md has the measurements and
// the decision.
#pragma once

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/lockfree/queue.hpp>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "guest/session/tokens.h"
#include "ring/queue/callback_slot.h"
#include "ring/queue/parking.h"
#include "ring/view.h"

namespace handover {

inline void wake(ring::Shared<std::uint32_t> word) {
  syscall(SYS_futex, word.futex_word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
inline void wait(sem_t& semaphore) {
  while (sem_wait(&semaphore) != 0) {
  }
}

// A token contains its entry's index, whether its first call ends it, and the entry's use count. The entry's word
// equals the token while the token is valid: a thread that sets the word to 0 has ended the token and must free the
// entry. If all entries are in use, a table under a mutex holds further tokens, marked by the highest bit.
class LockfreeTokens {
 public:
  LockfreeTokens() : places_(room), free_(room) {
    for (std::uint32_t i = 0; i < room; ++i) free_.push(i);
  }

  std::uint64_t issue(const guest::Callback& callback) {
    std::uint32_t index = 0;
    if (!free_.pop(index)) return issue_more(callback);
    Place& place = places_[index];
    const bool once = callback.life == guest::Callback::Life::Once;
    const std::uint64_t token = ++place.uses * 2 * room + (once ? room : 0) + index;
    std::atomic_thread_fence(std::memory_order_release);  // the store of 0 precedes later stores
    place.function.store(callback.function, std::memory_order_relaxed);
    place.argument.store(callback.argument, std::memory_order_relaxed);
    place.token.store(token, std::memory_order_release);
    return token;
  }
  std::optional<guest::Callback> take(std::uint64_t token) {
    if ((token & beside) != 0) return take_more(token);
    Place& place = places_[token % room];
    if (token == 0 || place.token.load(std::memory_order_acquire) != token) return std::nullopt;
    const bool once = (token & room) != 0;
    const guest::Callback callback{.function = place.function.load(std::memory_order_relaxed),
                                   .argument = place.argument.load(std::memory_order_relaxed),
                                   .life = once ? guest::Callback::Life::Once : guest::Callback::Life::UntilEnded};
    std::atomic_thread_fence(std::memory_order_acquire);  // the load of the word follows both earlier loads
    const bool still = once ? end(token) : place.token.load(std::memory_order_relaxed) == token;
    return still ? std::optional(callback) : std::nullopt;
  }
  bool end(std::uint64_t token) {
    if ((token & beside) != 0) return end_more(token);
    std::uint64_t now = token;
    if (token == 0 || !places_[token % room].token.compare_exchange_strong(now, 0, std::memory_order_acq_rel))
      return false;
    free_.push(static_cast<std::uint32_t>(token % room));
    return true;
  }

 private:
  static constexpr std::uint32_t room = 1024;
  static constexpr std::uint64_t beside = std::uint64_t{1} << 63;
  struct Place {
    std::atomic<std::uint64_t> token{0};
    std::atomic<CUresult (*)(const guest::Callback&, CUresult)> function{nullptr};
    std::atomic<void*> argument{nullptr};
    std::uint64_t uses = 0;  // uses by the thread that holds the entry
  };

  std::uint64_t issue_more(const guest::Callback& callback) {
    const std::lock_guard lock(mutex_);
    return more_.issue(callback) | beside;
  }
  std::optional<guest::Callback> take_more(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    return more_.take(token & ~beside);
  }
  bool end_more(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    return more_.end(token & ~beside);
  }

  std::vector<Place> places_;
  boost::lockfree::queue<std::uint32_t, boost::lockfree::fixed_sized<true>> free_;
  std::mutex mutex_;
  guest::Tokens more_;
};

// The product's table, under its own mutex.
class MutexTokens {
 public:
  std::uint64_t issue(const guest::Callback& callback) {
    const std::lock_guard lock(mutex_);
    return tokens_.issue(callback);
  }
  std::optional<guest::Callback> take(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    return tokens_.take(token);
  }
  bool end(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    return tokens_.end(token);
  }

 private:
  std::mutex mutex_;
  guest::Tokens tokens_;
};

// The callback thread sleeps on a semaphore while no token exists. The mutex protects the slot's words from a session
// that leaves the slot, as in the product; only this thread and stop() take the mutex.
template <class Tokens>
class Callbacks {
 public:
  explicit Callbacks(ring::SlotView slot) : slot_(slot) {
    sem_init(&issued_, 0, 0);
    for (std::uint32_t k = 0; k < ring::max_callback_slots; ++k)
      callback_slots_[k] = ring::CallbackCallee(slot_.callback_slot(k));
    thread_ = std::thread([this] { serve(); });
  }
  ~Callbacks() {
    stop();
    thread_.join();
    sem_destroy(&issued_);
  }
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  std::uint64_t issue(const guest::Callback& callback) {
    if (stopped_.load(std::memory_order_relaxed)) return 0;
    const std::uint64_t token = tokens_.issue(callback);
    if (out_.fetch_add(1, std::memory_order_acq_rel) == 0) sem_post(&issued_);
    return token;
  }
  bool end(std::uint64_t token) {
    if (!tokens_.end(token)) return false;
    out_.fetch_sub(1, std::memory_order_acq_rel);
    return true;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    sem_post(&issued_);
    wake(self().word());
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // A thread may count a token after another thread has ended it, so the number may briefly be negative.
  void serve() {
    Lock lock(mutex_);
    while (!stopped_) {
      ring::CallbackRequest call;
      if (ring::CallbackCallee* callback_slot = out_.load(std::memory_order_acquire) != 0 ? find_call(call) : nullptr)
        make(call, *callback_slot, lock);
      else
        sleep(lock);
    }
  }
  void sleep(Lock& lock) {
    if (out_.load(std::memory_order_acquire) != 0) return park(lock);
    lock.unlock();
    wait(issued_);
    lock.lock();
  }
  ring::CallbackCallee* find_call(ring::CallbackRequest& call) {
    for (std::size_t k = 0; k < callback_slots_.size(); ++k) {
      ring::CallbackCallee& callback_slot = callback_slots_[++last_slot_ % callback_slots_.size()];
      if (callback_slot.take(call) == ring::Peer::Ok) return &callback_slot;
    }
    return nullptr;
  }
  void make(const ring::CallbackRequest& call, ring::CallbackCallee& callback_slot, Lock& lock) {
    const auto callback = tokens_.take(call.token);
    if (!callback) return answer(callback_slot, CUDA_ERROR_INVALID_HANDLE);
    if (callback->life == guest::Callback::Life::Once) out_.fetch_sub(1, std::memory_order_acq_rel);
    lock.unlock();
    const CUresult result = callback->function(*callback, CUDA_SUCCESS);
    lock.lock();
    if (!stopped_) answer(callback_slot, result);
  }
  void answer(ring::CallbackCallee& callback_slot, CUresult result) {
    callback_slot.answer(result);
    const auto k = static_cast<std::uint32_t>(&callback_slot - callback_slots_.data());
    ring::Parking waiter(slot_.callback_slot(k)[&ring::CallbackSlot::worker_asleep]);
    if (waiter.must_wake() != ring::Asleep::No) wake(waiter.word());
  }
  void park(Lock& lock) {
    constexpr timespec longest{.tv_sec = 1, .tv_nsec = 0};
    ring::Parking parking = self();
    const auto anything = [&] {
      return std::any_of(callback_slots_.begin(), callback_slots_.end(),
                         [](const ring::CallbackCallee& callback_slot) { return callback_slot.anything(); });
    };
    if (!parking.may_sleep(anything)) return;
    lock.unlock();
    syscall(SYS_futex, parking.word().futex_word(), FUTEX_WAIT, 1, &longest, nullptr, 0);
    lock.lock();
    if (!stopped_) parking.woke();
  }
  ring::Parking self() const { return ring::Parking(slot_.header()[&ring::SlotHeader::callbacks_asleep]); }

  const ring::SlotView slot_;
  Tokens tokens_;
  std::atomic<std::ptrdiff_t> out_{0};
  std::atomic<bool> stopped_{false};
  sem_t issued_;  // posted when the first token is issued
  std::mutex mutex_;
  std::array<ring::CallbackCallee, ring::max_callback_slots> callback_slots_;
  std::size_t last_slot_ = 0;
  std::thread thread_;
};

// The worker's callback slots. The semaphore counts the slots in both queues, so a thread that passes the semaphore
// finds a slot.
class LockfreeCallbackSlots {
 public:
  LockfreeCallbackSlots(ring::SlotView slot, std::chrono::microseconds spin)
      : guest_(slot.header()[&ring::SlotHeader::callbacks_asleep]),
        spin_(spin),
        free_(ring::max_callback_slots),
        left_(ring::max_callback_slots) {
    sem_init(&waiting_, 0, ring::max_callback_slots);
    for (std::uint32_t k = 0; k < ring::max_callback_slots; ++k) {
      callback_slots_[k].words = slot.callback_slot(k);
      callback_slots_[k].caller = ring::CallbackCaller(callback_slots_[k].words);
      free_.push(&callback_slots_[k]);
    }
  }
  // Waits until all threads have left call() and post(); each thread that leaves lets the next one pass.
  ~LockfreeCallbackSlots() {
    end();
    while (callers_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    sem_destroy(&waiting_);
  }
  LockfreeCallbackSlots(const LockfreeCallbackSlots&) = delete;
  LockfreeCallbackSlots& operator=(const LockfreeCallbackSlots&) = delete;

  std::optional<std::int32_t> call(ring::CallbackKind kind, std::uint64_t token) {
    const Caller caller(*this);
    Entry* callback_slot = take();
    if (callback_slot == nullptr || !fill(*callback_slot, kind, token) || !await(*callback_slot)) return std::nullopt;
    const std::int32_t result = callback_slot->caller.result();
    free_.push(callback_slot);
    sem_post(&waiting_);
    return result;
  }
  bool post(ring::CallbackKind kind, std::uint64_t token) {
    const Caller caller(*this);
    Entry* callback_slot = take();
    if (callback_slot == nullptr || !fill(*callback_slot, kind, token)) return false;
    left_.push(callback_slot);
    sem_post(&waiting_);
    return true;
  }
  void end() {
    ended_.store(true, std::memory_order_relaxed);
    sem_post(&waiting_);
    for (const Entry& callback_slot : callback_slots_) {
      sleeper(callback_slot).call_off();
      wake(sleeper(callback_slot).word());
    }
  }

 private:
  using Queue = boost::lockfree::queue<void*, boost::lockfree::fixed_sized<true>>;
  struct Entry {
    ring::Shared<ring::CallbackSlot> words;
    ring::CallbackCaller caller;  // used by the thread that holds the callback slot
  };
  struct Caller {
    explicit Caller(LockfreeCallbackSlots& all) : callback_slots(all) {
      callback_slots.callers_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Caller() { callback_slots.callers_.fetch_sub(1, std::memory_order_release); }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    LockfreeCallbackSlots& callback_slots;
  };

  static Entry* pop(Queue& queue) {
    void* callback_slot = nullptr;
    return queue.pop(callback_slot) ? static_cast<Entry*>(callback_slot) : nullptr;
  }
  // As in the product: takes a free slot if there is one, else a posted slot with an answer, else any posted slot.
  Entry* take() {
    wait(waiting_);
    if (ended_.load(std::memory_order_relaxed)) return sem_post(&waiting_), nullptr;
    Entry* callback_slot = nullptr;
    while (callback_slot == nullptr)
      if ((callback_slot = pop(free_)) == nullptr) callback_slot = oldest_left();
    return callback_slot->caller.look() == ring::Peer::Ok || await(*callback_slot) ? callback_slot : nullptr;
  }
  Entry* oldest_left() {
    Entry* callback_slot = pop(left_);
    for (std::uint32_t seen = 1; callback_slot != nullptr && seen < ring::max_callback_slots; ++seen) {
      if (callback_slot->caller.look() != ring::Peer::Wait) return callback_slot;
      left_.push(callback_slot);
      callback_slot = pop(left_);
    }
    return callback_slot;
  }
  bool fill(Entry& callback_slot, ring::CallbackKind kind, std::uint64_t token) {
    if (callback_slot.caller.post(static_cast<std::uint32_t>(kind), token) != ring::Peer::Ok) return false;
    if (guest_.must_wake() != ring::Asleep::No) wake(guest_.word());
    return true;
  }
  bool await(Entry& callback_slot) {
    const auto decided = [&] {
      return callback_slot.caller.look() != ring::Peer::Wait || ended_.load(std::memory_order_relaxed);
    };
    ring::Parking self = sleeper(callback_slot);
    while (!polled(decided) && self.may_sleep(decided)) {
      syscall(SYS_futex, self.word().futex_word(), FUTEX_WAIT, 1, nullptr, nullptr, 0);
      self.woke();
    }
    return callback_slot.caller.look() == ring::Peer::Ok;
  }
  template <class Done>
  bool polled(Done done) const {
    const auto until = std::chrono::steady_clock::now() + spin_;
    do {
      if (done()) return true;
      __builtin_ia32_pause();
    } while (std::chrono::steady_clock::now() < until);
    return false;
  }
  static ring::Parking sleeper(const Entry& callback_slot) {
    return ring::Parking(callback_slot.words[&ring::CallbackSlot::worker_asleep]);
  }

  ring::Parking guest_;
  const std::chrono::microseconds spin_;
  std::array<Entry, ring::max_callback_slots> callback_slots_;
  Queue free_, left_;
  sem_t waiting_;
  std::atomic<unsigned> callers_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace handover
