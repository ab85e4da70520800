// Work for the callback thread: functions that a program registered, and the callback slots through which worker
// threads call them, once as the product implements them and once lock-free. Worker and guest share this process. A
// part of handover_bench.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <thread>

#include "guest/session/callbacks.h"
#include "host/untrusted/callbacks/callback_slots.h"
#include "tests/bench/lockfree_callbacks.h"

namespace {

constexpr std::uint32_t spin_us = 20;

// A slot without an arena, as a worker prepares it.
class Memory final : public guest::Region {
 public:
  Memory() {
    void* at = mmap(nullptr, ring::arena_offset, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    slot_ = {static_cast<std::byte*>(at), ring::arena_offset};
    slot_.header()[&ring::SlotHeader::version].store(ring::layout_version);
    slot_.header()[&ring::SlotHeader::magic].store(ring::slot_magic);
  }
  ring::SlotView slot() const { return slot_; }

  std::byte* map(std::uint64_t, std::size_t, void*) override { return slot_.base(); }
  void ring(std::uint32_t) override {}
  std::uint64_t size() const override { return slot_.bytes(); }
  std::uint32_t peer() const override { return ring::first_guest_peer; }
  bool same_kernel() const override { return true; }
  void forget() override {}

 private:
  ring::SlotView slot_;
};

// The guest's part of the product's implementation.
struct MutexGuest {
  explicit MutexGuest(Memory& memory)
      : heartbeat(memory, checked),
        claim(memory, checked, heartbeat),
        doorbell(memory, claim),
        sleeper(memory),
        liveness(memory, claim, heartbeat) {
    if (slot.map(memory, checked, 0) != guest::Entered::Yes) std::abort();
    sleeper.begin(checked, 0, slot.view().base());
  }
  const guest::CheckedRegion checked{};
  guest::Heartbeat heartbeat;
  guest::SlotClaim claim;
  guest::WorkerDoorbell doorbell;
  guest::Sleeper sleeper;
  guest::Slot slot;
  guest::Liveness liveness;
  guest::Callbacks callbacks{liveness, slot, doorbell, sleeper};
};
template <class Tokens>
struct OtherGuest {
  explicit OtherGuest(Memory& memory) : callbacks(memory.slot()) {}
  handover::Callbacks<Tokens> callbacks;
};
using SemaphoreGuest = OtherGuest<handover::MutexTokens>;
using LockfreeGuest = OtherGuest<handover::LockfreeTokens>;

// The worker's part of the product's implementation.
struct MutexWorker {
  explicit MutexWorker(Memory& memory) : session(memory.slot(), driver, options()) {}
  static host::ServeOptions options() {
    host::ServeOptions o;
    o.spin_us = spin_us;
    return o;
  }
  const host::Driver driver{};
  host::Session session;
  host::CallbackSlots callback_slots{session, -1};
};
struct LockfreeWorker {
  explicit LockfreeWorker(Memory& memory) : callback_slots(memory.slot(), std::chrono::microseconds(spin_us)) {}
  handover::LockfreeCallbackSlots callback_slots;
};

template <class Guest, class Worker>
struct Pair {
  Memory memory;
  Guest guest{memory};
  Worker worker{memory};
  auto& callbacks() { return guest.callbacks; }
  auto& callback_slots() { return worker.callback_slots; }
};
using Mutex = Pair<MutexGuest, MutexWorker>;
using Lockfree = Pair<LockfreeGuest, LockfreeWorker>;
using SemaphoreInGuest = Pair<SemaphoreGuest, MutexWorker>;
using LockfreeInGuest = Pair<LockfreeGuest, MutexWorker>;
using LockfreeInWorker = Pair<MutexGuest, LockfreeWorker>;

// Exists until the process exits, as a session does.
template <class Both>
Both& both() {
  static auto* const one = new Both;
  return *one;
}

constexpr auto kind = ring::CallbackKind::HostFunction;

// Measures a call of the worker to a function of the program, after which the stream continues.
template <class Both>
void call(benchmark::State& state) {
  const guest::Callback callback{.function = [](const guest::Callback&, CUresult) { return CUDA_SUCCESS; },
                                 .life = guest::Callback::Life::Once};
  for (auto _ : state) {
    const std::uint64_t token = both<Both>().callbacks().issue(callback);
    if (both<Both>().callback_slots().call(kind, token) == CUDA_SUCCESS) continue;
    state.SkipWithError("it was not called");
    break;
  }
}

// Posts 64 calls without waiting for answers; waits until the last has run.
template <class Both>
void post(benchmark::State& state) {
  static std::atomic<std::int64_t> called;
  called = 0;
  const guest::Callback count{.function = [](const guest::Callback&, CUresult) { return ++called, CUDA_SUCCESS; },
                              .life = guest::Callback::Life::Once};
  std::int64_t posted = 0;
  for (auto _ : state) {
    for (int i = 0; i < 64; ++i, ++posted)
      both<Both>().callback_slots().post(kind, both<Both>().callbacks().issue(count));
    while (called.load() != posted) std::this_thread::yield();
  }
}

// Issues and ends a token while other tokens exist, so that no thread is woken.
template <class Both>
void token(benchmark::State& state) {
  auto& callbacks = both<Both>().callbacks();
  const guest::Callback callback{.function = [](const guest::Callback&, CUresult) { return CUDA_SUCCESS; },
                                 .life = guest::Callback::Life::UntilEnded};
  const std::uint64_t kept = callbacks.issue(callback);
  for (auto _ : state) {
    if (callbacks.end(callbacks.issue(callback))) continue;
    state.SkipWithError("it was not out");
    break;
  }
  callbacks.end(kept);
}

#define OF_EACH(what, Both, name)                                                  \
  BENCHMARK_TEMPLATE(what, Both)->Name(#what "_" name)->UseRealTime()->Threads(1); \
  BENCHMARK_TEMPLATE(what, Both)->Name(#what "_" name)->UseRealTime()->Threads(4)
OF_EACH(call, Mutex, "mutex");
OF_EACH(call, SemaphoreInGuest, "semaphore_in_guest");
OF_EACH(call, LockfreeInGuest, "lockfree_in_guest");
OF_EACH(call, LockfreeInWorker, "lockfree_in_worker");
OF_EACH(call, Lockfree, "lockfree");
BENCHMARK_TEMPLATE(call, Mutex)->Name("call_mutex")->UseRealTime()->Threads(12);  // more threads than callback slots
BENCHMARK_TEMPLATE(call, SemaphoreInGuest)->Name("call_semaphore_in_guest")->UseRealTime()->Threads(12);
BENCHMARK_TEMPLATE(call, LockfreeInGuest)->Name("call_lockfree_in_guest")->UseRealTime()->Threads(12);
BENCHMARK_TEMPLATE(call, LockfreeInWorker)->Name("call_lockfree_in_worker")->UseRealTime()->Threads(12);
BENCHMARK_TEMPLATE(call, Lockfree)->Name("call_lockfree")->UseRealTime()->Threads(12);
BENCHMARK_TEMPLATE(post, Mutex)->Name("post_mutex")->UseRealTime();
BENCHMARK_TEMPLATE(post, SemaphoreInGuest)->Name("post_semaphore_in_guest")->UseRealTime();
BENCHMARK_TEMPLATE(post, LockfreeInGuest)->Name("post_lockfree_in_guest")->UseRealTime();
BENCHMARK_TEMPLATE(post, LockfreeInWorker)->Name("post_lockfree_in_worker")->UseRealTime();
BENCHMARK_TEMPLATE(post, Lockfree)->Name("post_lockfree")->UseRealTime();
OF_EACH(token, Mutex, "mutex");
OF_EACH(token, SemaphoreInGuest, "semaphore_in_guest");
OF_EACH(token, Lockfree, "lockfree");

}  // namespace
