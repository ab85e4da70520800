// Measures the cost of passing work between threads of a process, as the product does: jobs for the copying threads,
// work for the simulated GPU's threads, and worker objects that launches share. handover_ids.cc measures reused
// numbers, handover_callbacks.cc the callback thread. This is not a test: its results are in
// docs/design/017-lockfree-between-threads.md, with the machine.
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "guest/objects/copy/copiers.h"
#include "host/simgpu/api/stream/schedule.h"
#include "host/simgpu/engine.h"
#include "host/simgpu/vm/load.h"

namespace {

constexpr std::size_t pieces = 8;  // the number of chunks of a staged copy in flight

// Each caller starts its pieces and then waits for them in order, like guest/calls/copy/staged_copy.cc. Arguments: the
// number of copying threads, and the bytes per piece.
void copies(benchmark::State& state) {
  static guest::Copiers* copiers;
  if (state.thread_index() == 0) copiers = new guest::Copiers(static_cast<unsigned>(state.range(0)));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  std::vector<char> from(pieces * bytes, 'x'), to(pieces * bytes);
  std::array<guest::Copiers::Job, pieces> jobs;
  for (auto _ : state) {
    for (std::size_t i = 0; i < pieces; ++i) copiers->start(jobs[i], &to[i * bytes], &from[i * bytes], bytes);
    for (auto& job : jobs) copiers->finish(job);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(pieces));
  if (state.thread_index() == 0) delete copiers;
}
BENCHMARK(copies)->Args({1, 64})->Args({3, 64})->Args({1, 128 << 10})->Args({3, 128 << 10})->UseRealTime();
BENCHMARK(copies)->Name("copies_of_four")->Args({3, 64})->Args({3, 128 << 10})->UseRealTime()->Threads(4);

// The schedule's threads never exit, so all benchmarks share one schedule.
simgpu::Schedule& schedule() {
  static auto* const one = new simgpu::Schedule;
  return *one;
}

// Measures one job on a pool thread, and the wait for the job.
void there_and_back(benchmark::State& state) {
  for (auto _ : state) schedule().wait(schedule().submit([] {}, {}, simgpu::Schedule::Who::Pool));
}
BENCHMARK(there_and_back)->UseRealTime();
BENCHMARK(there_and_back)->Name("there_and_back_of_four")->UseRealTime()->Threads(4);

// Measures independent jobs, as of many streams, and a wait for all of them.
void fan(benchmark::State& state) {
  std::vector<simgpu::Ticket> tickets(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    for (auto& ticket : tickets) ticket = schedule().submit([] {}, {}, simgpu::Schedule::Who::Pool);
    for (const auto& ticket : tickets) schedule().wait(ticket);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(fan)->Arg(8)->Arg(64)->UseRealTime();

// Measures the jobs of one stream, each of which follows the last.
void chain(benchmark::State& state) {
  for (auto _ : state) {
    simgpu::Ticket last;
    for (int i = 0; i < 64; ++i) last = schedule().submit([] {}, {last}, simgpu::Schedule::Who::Pool);
    schedule().wait(last);
  }
  state.SetItemsProcessed(state.iterations() * 64);
}
BENCHMARK(chain)->UseRealTime();

// An empty kernel of one block. Each launch takes a worker object from the engine and returns it.
struct Empty {
  Empty() : engine(space, 2, [](std::string_view) {}) {
    const std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry empty() { ret; }\n";
    module = simgpu::load_ptx(std::span(&text, 1), space).module;
  }
  simgpu::AddressSpace space{std::size_t{64} << 20};
  simgpu::Engine engine;
  decltype(simgpu::load_ptx({}, space).module) module;
};

void launch(benchmark::State& state) {
  static auto* const empty = new Empty;
  const simgpu::Function* function = empty->module->function("empty");
  for (auto _ : state)
    if (empty->engine.run({function, {1}, {1}, 0, {}, false})) return state.SkipWithError("fault");
}
BENCHMARK(launch)->UseRealTime();
BENCHMARK(launch)->Name("launch_of_four")->UseRealTime()->Threads(4);

}  // namespace

BENCHMARK_MAIN();
