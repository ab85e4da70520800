// Reuse of numbers: the guest's ids and the simulated GPU's handles, once as the product implements it and once
// lock-free. A part of handover_bench.
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>

#include "tests/bench/lockfree_ids.h"

// Never called, since this benchmark passes no invalid handle.
void simgpu::never_issued(const void*, HandleKind) { std::abort(); }

namespace {

constexpr std::size_t most_threads = 4;

// The executed position of each thread's channel.
struct alignas(64) Channel {
  std::atomic<std::uint64_t> executed{0};
};
std::array<Channel, most_threads> channels;

bool executed(guest::Use use) { return channels[use.channel].executed.load(std::memory_order_acquire) >= use.position; }

// Each thread creates and destroys an event. Argument: by how many objects the worker lags behind the thread.
template <class Objects>
void ids(benchmark::State& state) {
  static Objects* objects;
  const auto channel = static_cast<std::uint32_t>(state.thread_index());
  const auto behind = static_cast<std::uint64_t>(state.range(0));
  channels[channel].executed = 0;
  if (channel == 0) objects = new Objects(executed);
  std::uint64_t position = 0;
  for (auto _ : state) {
    guest::Object* event = objects->create(api::Handle::Event, nullptr);
    if (event == nullptr) {
      state.SkipWithError("no id is left");
      break;
    }
    objects->retire(*event, {channel, ++position});
    if (position > behind) channels[channel].executed.store(position - behind, std::memory_order_release);
  }
  if (channel == 0) delete objects;
}
BENCHMARK_TEMPLATE(ids, guest::Objects)->Name("ids_mutex")->Arg(0)->Arg(64)->UseRealTime();
BENCHMARK_TEMPLATE(ids, handover::LockfreeObjects)->Name("ids_lockfree")->Arg(0)->Arg(64)->UseRealTime();
BENCHMARK_TEMPLATE(ids, guest::Objects)->Name("ids_mutex_of_four")->Arg(0)->Arg(64)->UseRealTime()->Threads(4);
BENCHMARK_TEMPLATE(ids, handover::LockfreeObjects)
    ->Name("ids_lockfree_of_four")
    ->Arg(0)
    ->Arg(64)
    ->UseRealTime()
    ->Threads(4);

// Each thread issues and ends a handle for its own object. Argument: the number of lookups in between.
template <class Table>
void handles(benchmark::State& state) {
  static Table* table;
  if (state.thread_index() == 0) table = new Table;
  auto object = std::make_shared<int>(state.thread_index());
  for (auto _ : state) {
    void* handle = table->insert(std::move(object));
    for (auto looks = state.range(0); looks != 0; --looks) benchmark::DoNotOptimize(table->find(handle));
    object = table->remove(handle);
  }
  if (object == nullptr) state.SkipWithError("a handle was lost");
  if (state.thread_index() == 0) delete table;
}
constexpr auto event = simgpu::HandleKind::Event;
using Shared = simgpu::HandleTable<int, void*, event>;
using SharedLockfree = handover::Handles<int, void*, event, std::shared_mutex, handover::WaitingNumbers>;
using Plain = handover::Handles<int, void*, event, std::mutex, handover::ListedNumbers>;
using PlainLockfree = handover::Handles<int, void*, event, std::mutex, handover::WaitingNumbers>;

#define OF_EACH(Table, name)                                                                            \
  BENCHMARK_TEMPLATE(handles, Table)->Name("handles_" name)->Arg(0)->Arg(8)->UseRealTime()->Threads(1); \
  BENCHMARK_TEMPLATE(handles, Table)->Name("handles_" name)->Arg(0)->Arg(8)->UseRealTime()->Threads(4)
OF_EACH(Shared, "shared_mutex");
OF_EACH(SharedLockfree, "shared_mutex_lockfree");
OF_EACH(Plain, "mutex");
OF_EACH(PlainLockfree, "mutex_lockfree");

}  // namespace
