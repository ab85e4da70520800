// A schedule explorer. It runs the product's headers of ring/ and guest/ under every interleaving of a few threads,
// with every value that the C++ memory model allows a load to return. A scenario is a class (World): the constructor
// makes the shared objects, member functions are the threads, and finish() checks the outcome.
//
// The product's code is unchanged: tests/models/explored.h replaces std::atomic, std::atomic_thread_fence and
// std::memcpy by Atomic, fence and copy. Before each of these operations another thread may run.
//
// The explored memory is weaker than x86. Each place keeps all its stores, and each thread knows how many of these
// stores it has seen. A relaxed load may return the last seen store or any later store. An acquiring load also gains
// the knowledge that the storing thread had at its release. A sequentially consistent fence exchanges knowledge with
// all earlier such fences. Plain bytes have no history; instead, two unordered accesses to plain bytes are an error (a
// data race). The explorer models neither loads of future stores nor a store that overtakes an earlier store.
//
// Sleeps have no time-out, so a lost wake-up shows as a deadlock.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace explore {

using Order = std::memory_order;

// The source line of an operation. Default arguments are evaluated at the call, which replaces source_location, since
// clang 14 lacks it.
struct Site {
  const char* file;
  unsigned line;
  static constexpr Site current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

// ---- what scenarios use --------------------------------------------------------------------------------------------

struct Options {
  unsigned preemptions = 99;             // maximum number of switches away from a runnable thread
  std::uint64_t executions = 3'000'000;  // maximum; a search that exceeds it has an incomplete verdict
  unsigned daemons = 0;                  // how many of the last threads may still wait at the end
  std::string weaken;                    // the site ("file:line") whose ordering becomes relaxed; "": none
};

struct Verdict {
  std::string error;  // "": no error
  std::string trace;  // the schedule that leads to the error, one operation per line
  std::uint64_t executions = 0;
  bool complete = false;           // all schedules within the bounds ran, or one had an error
  std::vector<std::string> sites;  // sites that request more than relaxed order, as "file:line"
};

// Ends the execution with this message.
[[noreturn]] void fail(const char* what);
inline void require(bool holds, const char* what) {
  if (!holds) fail(what);
}
// For polling loops: blocks until another thread stores a value, and then lets the caller see all stores. Reports a
// deadlock if no thread can store any more.
void pause();
// Waits until this Atomic reaches the value, and gains the knowledge of its writer's release.
void wait_for(const void* word, std::uint64_t at_least);
// Behave like the system calls, without a time-out. futex_wait returns at once if the word differs from `expected`.
void futex_wait(const void* word, std::uint32_t expected);
void futex_wake(const void* word);
// Declares plain bytes that threads share: copy() checks accesses to these bytes for races.
void share(const void* at, std::size_t bytes);
// The scenario's own plain accesses, for the same race check.
void reads(const void* at, std::size_t bytes);
void writes(void* at, std::size_t bytes);

Verdict run(const std::function<void(std::vector<std::function<void()>>&, std::function<void()>&)>& make,
            const Options& options);

template <class World>
Verdict every_schedule(std::vector<void (World::*)()> threads, const Options& options = {}) {
  std::unique_ptr<World> world;
  return run(
      [&](std::vector<std::function<void()>>& bodies, std::function<void()>& finish) {
        world.reset();
        world = std::make_unique<World>();
        for (const auto thread : threads) bodies.push_back([&world, thread] { ((*world).*thread)(); });
        finish = [&world] { world->finish(); };
      },
      options);
}

// ---- what stands in for the standard library -----------------------------------------------------------------------

namespace machine {
void create(const void* place, std::uint64_t value);
// A scheduling point before the operation. Returns the order that the operation uses: relaxed if the site is weakened.
Order step(const char* what, Order order, const Site& site);
std::uint64_t load(const void* place, Order order);
void store(const void* place, std::uint64_t value, Order order);
std::uint64_t read_last(const void* place, Order order);
void store_after_read(const void* place, std::uint64_t value, Order order);
}  // namespace machine

template <class T>
class Atomic {
 public:
  static constexpr bool is_always_lock_free = true;
  Atomic() noexcept : Atomic(T{}) {}
  Atomic(T value) noexcept : value_(value) { machine::create(this, bits(value)); }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(Order order = Order::seq_cst, Site site = Site::current()) const {
    return of(machine::load(this, machine::step("load", order, site)));
  }
  void store(T value, Order order = Order::seq_cst, Site site = Site::current()) {
    machine::store(this, bits(value), machine::step("store", order, site));
  }
  T exchange(T value, Order order = Order::seq_cst, Site site = Site::current()) {
    return update(
        "exchange", [&](T) { return value; }, order, site);
  }
  T fetch_add(T value, Order order = Order::seq_cst, Site site = Site::current()) {
    return update(
        "fetch_add", [&](T old) { return static_cast<T>(old + value); }, order, site);
  }
  T fetch_or(T value, Order order = Order::seq_cst, Site site = Site::current()) {
    return update(
        "fetch_or", [&](T old) { return static_cast<T>(old | value); }, order, site);
  }
  bool compare_exchange_strong(T& expected, T desired, Order order = Order::seq_cst, Site site = Site::current()) {
    const Order o = machine::step("compare_exchange", order, site);
    const T old = of(machine::read_last(this, o));
    if (bits(old) != bits(expected)) return expected = old, false;
    machine::store_after_read(this, bits(desired), o);
    return true;
  }
  bool compare_exchange_strong(T& expected, T desired, Order order, Order, Site site = Site::current()) {
    return compare_exchange_strong(expected, desired, order, site);
  }
  bool compare_exchange_weak(T& expected, T desired, Order order, Order, Site site = Site::current()) {
    return compare_exchange_strong(expected, desired, order, site);
  }

 private:
  template <class F>
  T update(const char* what, F f, Order order, Site site) {
    const Order o = machine::step(what, order, site);
    const T old = of(machine::read_last(this, o));
    machine::store_after_read(this, bits(f(old)), o);
    return old;
  }
  static std::uint64_t bits(T value) {
    std::uint64_t b = 0;
    std::memcpy(&b, &value, sizeof value);
    return b;
  }
  static T of(std::uint64_t b) {
    T value;
    std::memcpy(&value, &b, sizeof value);
    return value;
  }
  T value_;  // only for the size, so that the layout's assertions hold here, too
};

// Replaces std::mutex and std::shared_mutex; a shared lock is exclusive here.
class Mutex {
 public:
  void lock() {
    while (held_.exchange(1, Order::acquire) != 0) futex_wait(&held_, 1);
  }
  bool try_lock() { return held_.exchange(1, Order::acquire) == 0; }
  void unlock() {
    held_.store(0, Order::release);
    futex_wake(&held_);
  }
  void lock_shared() { lock(); }
  void unlock_shared() { unlock(); }

 private:
  Atomic<std::uint32_t> held_{0};
};

// Replaces std::condition_variable. Like the original, it may wake more threads than requested.
class Condition {
 public:
  template <class Lock>
  void wait(Lock& lock) {
    const std::uint32_t seen = notified_.load(Order::relaxed);
    lock.unlock();
    futex_wait(&notified_, seen);
    lock.lock();
  }
  void notify_one() { notify_all(); }
  void notify_all() {
    notified_.fetch_add(1, Order::relaxed);
    futex_wake(&notified_);
  }

 private:
  Atomic<std::uint32_t> notified_{0};
};

void fence(Order order, Site site = Site::current());
// Behaves like a fence of sequential consistency in every thread (guest/base/process_fence.h).
void process_fence();
void* copy(void* to, const void* from, std::size_t bytes);

}  // namespace explore
