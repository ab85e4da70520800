// A schedule explorer: runs the shipping headers of ring/ and guest/ under every interleaving of a few threads, and
// under every value that the C++ memory model lets a load see. A scenario is a class (World) whose constructor makes
// the shared things, whose member functions are the threads, and whose finish() looks at the outcome.
//
// How the shipping code gets here unchanged: tests/models/explored.h puts Atomic, fence and copy in the place of
// std::atomic, std::atomic_thread_fence and std::memcpy. Each such operation is a point where another thread may go on.
//
// The memory is weaker than x86: each place keeps all that was ever stored to it, and each thread knows how far it has
// seen it. A relaxed load may see anything from there on; an acquiring one also learns what the storing thread knew at
// its release; a sequentially consistent fence exchanges knowledge with all such fences before. Plain bytes are not
// kept twice: that an access is ordered behind the other side's is checked instead (a data race is an error). Not
// modelled: loads that see stores of the future, and a store that falls behind one that was made before it.
//
// Sleeping is modelled without time-outs, so that a lost wake-up is found as a deadlock.
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

// Where the code asks for an operation; a default argument is evaluated at the call. (clang 14 has no source_location.)
struct Site {
  const char* file;
  unsigned line;
  static constexpr Site current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

// ---- what scenarios use --------------------------------------------------------------------------------------------

struct Options {
  unsigned preemptions = 99;             // how often a thread that could go on is left for another, at most
  std::uint64_t executions = 3'000'000;  // give up after so many: the verdict is not complete then
  unsigned daemons = 0;                  // the last threads, which may be left waiting at the end
  std::string weaken;                    // the site ("file:line") whose ordering is taken away, or none
};

struct Verdict {
  std::string error;  // empty: none found
  std::string trace;  // the schedule that leads there, one operation a line
  std::uint64_t executions = 0;
  bool complete = false;           // every schedule within the bound was run, or an error was found
  std::vector<std::string> sites;  // where the code asked for more than relaxed, "file:line"
};

// The execution fails with this sentence.
[[noreturn]] void fail(const char* what);
inline void require(bool holds, const char* what) {
  if (!holds) fail(what);
}
// For loops that poll: goes on when another thread has stored something, and has seen everything then. Where nobody can
// store any more, it is a deadlock.
void pause();
// Waits until this Atomic counts so far, and acquires what its writer released.
void wait_for(const void* word, std::uint64_t at_least);
// As the system calls; no time-out. wait returns at once if the word is not `expected`.
void futex_wait(const void* word, std::uint32_t expected);
void futex_wake(const void* word);
// These plain bytes are shared: accesses by copy() are held against each other.
void share(const void* at, std::size_t bytes);
// What a plain access of the scenario itself is held against.
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
// A point of the schedule, before the operation. The order that counts: relaxed where the site is weakened.
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
  T value_;  // only for the size: the layout's assertions hold here, too
};

// In the place of a lock. Who shares it has it alone here.
class Mutex {
 public:
  void lock() {
    while (held_.exchange(1, Order::acquire) != 0) futex_wait(&held_, 1);
  }
  void unlock() {
    held_.store(0, Order::release);
    futex_wake(&held_);
  }
  void lock_shared() { lock(); }
  void unlock_shared() { unlock(); }

 private:
  Atomic<std::uint32_t> held_{0};
};

// In the place of a condition variable. It may wake more threads than asked for, as the standard's may.
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
void* copy(void* to, const void* from, std::size_t bytes);

}  // namespace explore
