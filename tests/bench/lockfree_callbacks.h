// Lock-free variants of both sides of a call from the worker to the program, for comparison with the product: the
// guest's registered functions (guest/session/callbacks.h, tokens.h), and worker threads that wait for callback slots
// (host/untrusted/lanes/lanes.h). The slots' words and sleeps are the product's own (ring/queue/).
//
// Not ready for the product: docs/design/017-lockfree-between-threads.md has the numbers and the decision.
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
#include "ring/queue/lane.h"
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

// A token holds its entry's index, whether its first call ends it, and the entry's use count. The entry's word equals
// the token while that is valid: a thread that sets it to 0 has ended it and must free the entry. If all entries are
// used, a table under a mutex holds further tokens, marked by the highest bit.
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
    std::atomic_thread_fence(std::memory_order_release);  // the 0 precedes what follows
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
    std::atomic_thread_fence(std::memory_order_acquire);  // reads the word after both
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
    std::uint64_t uses = 0;  // of the thread that holds the entry
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

// The product's table, under a mutex of its own.
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
// that leaves, as in the product; only this thread and stop() take it.
template <class Tokens>
class Callbacks {
 public:
  explicit Callbacks(ring::SlotView slot) : slot_(slot) {
    sem_init(&issued_, 0, 0);
    for (std::uint32_t k = 0; k < ring::max_lanes; ++k) lanes_[k] = ring::LaneCallee(slot_.lane(k));
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

  // A thread may count a token after it was taken, so the number may briefly be negative.
  void serve() {
    Lock lock(mutex_);
    while (!stopped_) {
      ring::LaneCall call;
      if (ring::LaneCallee* lane = out_.load(std::memory_order_acquire) != 0 ? find_call(call) : nullptr)
        make(call, *lane, lock);
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
  ring::LaneCallee* find_call(ring::LaneCall& call) {
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      ring::LaneCallee& lane = lanes_[++last_lane_ % lanes_.size()];
      if (lane.take(call) == ring::Peer::Ok) return &lane;
    }
    return nullptr;
  }
  void make(const ring::LaneCall& call, ring::LaneCallee& lane, Lock& lock) {
    const auto callback = tokens_.take(call.token);
    if (!callback) return answer(lane, CUDA_ERROR_INVALID_HANDLE);
    if (callback->life == guest::Callback::Life::Once) out_.fetch_sub(1, std::memory_order_acq_rel);
    lock.unlock();
    const CUresult result = callback->function(*callback, CUDA_SUCCESS);
    lock.lock();
    if (!stopped_) answer(lane, result);
  }
  void answer(ring::LaneCallee& lane, CUresult result) {
    lane.answer(result);
    const auto k = static_cast<std::uint32_t>(&lane - lanes_.data());
    ring::Parking waiter(slot_.lane(k)[&ring::LaneControl::worker_asleep]);
    if (waiter.must_wake() != ring::Asleep::No) wake(waiter.word());
  }
  void park(Lock& lock) {
    constexpr timespec longest{.tv_sec = 1, .tv_nsec = 0};
    ring::Parking parking = self();
    const auto anything = [&] {
      return std::any_of(lanes_.begin(), lanes_.end(), [](const ring::LaneCallee& lane) { return lane.anything(); });
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
  std::array<ring::LaneCallee, ring::max_lanes> lanes_;
  std::size_t last_lane_ = 0;
  std::thread thread_;
};

// The worker's callback slots. The semaphore counts those in the two queues, so a thread that passes it finds one.
class LockfreeLanes {
 public:
  LockfreeLanes(ring::SlotView slot, std::chrono::microseconds spin)
      : guest_(slot.header()[&ring::SlotHeader::callbacks_asleep]),
        spin_(spin),
        free_(ring::max_lanes),
        left_(ring::max_lanes) {
    sem_init(&waiting_, 0, ring::max_lanes);
    for (std::uint32_t k = 0; k < ring::max_lanes; ++k) {
      lanes_[k].words = slot.lane(k);
      lanes_[k].caller = ring::LaneCaller(lanes_[k].words);
      free_.push(&lanes_[k]);
    }
  }
  // Waits until all threads have left call() and post(); each that leaves lets the next pass.
  ~LockfreeLanes() {
    end();
    while (callers_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
    sem_destroy(&waiting_);
  }
  LockfreeLanes(const LockfreeLanes&) = delete;
  LockfreeLanes& operator=(const LockfreeLanes&) = delete;

  std::optional<std::int32_t> call(ring::LaneKind kind, std::uint64_t token) {
    const Caller caller(*this);
    Lane* lane = take();
    if (lane == nullptr || !fill(*lane, kind, token) || !await(*lane)) return std::nullopt;
    const std::int32_t result = lane->caller.result();
    free_.push(lane);
    sem_post(&waiting_);
    return result;
  }
  bool post(ring::LaneKind kind, std::uint64_t token) {
    const Caller caller(*this);
    Lane* lane = take();
    if (lane == nullptr || !fill(*lane, kind, token)) return false;
    left_.push(lane);
    sem_post(&waiting_);
    return true;
  }
  void end() {
    ended_.store(true, std::memory_order_relaxed);
    sem_post(&waiting_);
    for (const Lane& lane : lanes_) {
      sleeper(lane).call_off();
      wake(sleeper(lane).word());
    }
  }

 private:
  using Queue = boost::lockfree::queue<void*, boost::lockfree::fixed_sized<true>>;
  struct Lane {
    ring::Shared<ring::LaneControl> words;
    ring::LaneCaller caller;  // of the thread that holds the callback slot
  };
  struct Caller {
    explicit Caller(LockfreeLanes& all) : lanes(all) { lanes.callers_.fetch_add(1, std::memory_order_relaxed); }
    ~Caller() { lanes.callers_.fetch_sub(1, std::memory_order_release); }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    LockfreeLanes& lanes;
  };

  static Lane* pop(Queue& queue) {
    void* lane = nullptr;
    return queue.pop(lane) ? static_cast<Lane*>(lane) : nullptr;
  }
  // As in the product: prefers a free one, then an answered posted one, then any posted one.
  Lane* take() {
    wait(waiting_);
    if (ended_.load(std::memory_order_relaxed)) return sem_post(&waiting_), nullptr;
    Lane* lane = nullptr;
    while (lane == nullptr)
      if ((lane = pop(free_)) == nullptr) lane = oldest_left();
    return lane->caller.look() == ring::Peer::Ok || await(*lane) ? lane : nullptr;
  }
  Lane* oldest_left() {
    Lane* lane = pop(left_);
    for (std::uint32_t seen = 1; lane != nullptr && seen < ring::max_lanes; ++seen) {
      if (lane->caller.look() != ring::Peer::Wait) return lane;
      left_.push(lane);
      lane = pop(left_);
    }
    return lane;
  }
  bool fill(Lane& lane, ring::LaneKind kind, std::uint64_t token) {
    if (lane.caller.post(static_cast<std::uint32_t>(kind), token) != ring::Peer::Ok) return false;
    if (guest_.must_wake() != ring::Asleep::No) wake(guest_.word());
    return true;
  }
  bool await(Lane& lane) {
    const auto decided = [&] {
      return lane.caller.look() != ring::Peer::Wait || ended_.load(std::memory_order_relaxed);
    };
    ring::Parking self = sleeper(lane);
    while (!polled(decided) && self.may_sleep(decided)) {
      syscall(SYS_futex, self.word().futex_word(), FUTEX_WAIT, 1, nullptr, nullptr, 0);
      self.woke();
    }
    return lane.caller.look() == ring::Peer::Ok;
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
  static ring::Parking sleeper(const Lane& lane) {
    return ring::Parking(lane.words[&ring::LaneControl::worker_asleep]);
  }

  ring::Parking guest_;
  const std::chrono::microseconds spin_;
  std::array<Lane, ring::max_lanes> lanes_;
  Queue free_, left_;
  sem_t waiting_;
  std::atomic<unsigned> callers_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace handover
