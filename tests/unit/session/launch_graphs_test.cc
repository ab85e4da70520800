// Launches through kept graphs on the strict fake driver, which runs the kernels of a graph one after the other.
#include <gtest/gtest.h>

#include <cstring>

#include "host/untrusted/launches/changes_launches.h"
#include "host/untrusted/launches/graph_cache.h"
#include "tests/unit/session/channel.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

host::ServeOptions without_time_limit() {
  host::ServeOptions options = World::with(host::all_windows);
  options.graph_time_part = 0;
  return options;
}

// A world with a stream, the kernel `fill` and memory for `words` numbers. Records go through channel 0.
class LaunchGraphs : public testing::Test {
 protected:
  static constexpr unsigned words = 4096;

  LaunchGraphs() { channel_.put(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 0})); }

  // Launches `fill` so that word `at` becomes `value`.
  Payload fill(unsigned at, unsigned value, unsigned grid = 1) const { return launch(fill_, stream_, at, value, grid); }
  Payload launch(std::uint64_t function, std::uint64_t stream, unsigned at, unsigned value, unsigned grid = 1) const {
    const api::LaunchRecord record{function, stream, {grid, 1, 1}, {32, 1, 1}, 0, 16, 0, 0};
    std::byte params[16];
    const std::uint64_t address = memory_ + 4 * at;
    const unsigned count = 1;
    std::memcpy(params, &address, 8), std::memcpy(params + 8, &count, 4), std::memcpy(params + 12, &value, 4);
    return Payload::record(record).bytes(params, sizeof params);
  }
  void put(const Payload& payload) { channel_.put(ids::cuLaunchKernel, payload, 0); }
  // Launches that fill the words from `first` on with their numbers.
  void put_fills(unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count; ++i) put(fill(i, i));
  }
  void wait() { channel_.put(ids::cuStreamSynchronize, Payload::of(stream_)); }
  unsigned word(unsigned at) const { return reinterpret_cast<const unsigned*>(memory_)[at]; }
  // Expects that the words from `first` on have their numbers.
  void expect_fills(unsigned first, unsigned count) const {
    for (unsigned i = first; i < first + count; ++i) ASSERT_EQ(word(i), i);
  }
  std::uint64_t calls(const char* name) { return world_.driver.calls(name); }
  std::uint32_t kept() const { return world_.session->memory.kept_graphs.count(); }

  World world_{without_time_limit()};
  std::uint64_t stream_ = world_.stream();
  std::uint64_t module_ = world_.module();
  std::uint64_t fill_ = world_.function(module_, "fill");
  std::uint64_t memory_ = world_.memory(4 * words);
  Channel channel_{world_};
};

TEST_F(LaunchGraphs, LaunchesAKnownKernelByItsGraph) {
  for (unsigned i = 0; i < 10; ++i) {
    put(fill(i, i));
    wait();  // the next launch is the first of its chain again
  }
  channel_.serve();
  expect_fills(0, 10);
  EXPECT_EQ(calls("cuLaunchKernel"), 4U) << "the fourth launch made the graph";
  EXPECT_EQ(calls("cuGraphLaunch"), 6U);
  EXPECT_EQ(calls("cuGraphInstantiateWithFlags"), 1U);
  EXPECT_EQ(calls("cuGraphExecDestroy"), 1U) << "the graph ends with its channel";
  EXPECT_EQ(kept(), 0U);
  EXPECT_EQ(world_.session->memory.device.taken(0), 4U * words) << "the graphs' memory was given back";
}

TEST_F(LaunchGraphs, SetsNothingForTheSameParameters) {
  for (unsigned i = 0; i < 10; ++i) {
    put(fill(1, 7));
    wait();
  }
  channel_.serve();
  EXPECT_EQ(word(1), 7U);
  EXPECT_EQ(calls("cuGraphLaunch"), 6U);
  EXPECT_EQ(calls("cuGraphExecKernelNodeSetParams_v2"), 0U);
}

TEST_F(LaunchGraphs, LaunchesWaitingKernelsTogetherAndInOrder) {
  put_fills(0, 400);
  for (unsigned i = 0; i < 100; ++i) put(fill(3000, i));
  channel_.serve();
  expect_fills(0, 400);
  EXPECT_EQ(word(3000), 99U) << "the last launch was the last to run";
  EXPECT_LT(calls("cuGraphLaunch") + calls("cuLaunchKernel"), 200U);
  EXPECT_EQ(channel_.control().deferred_count, 0U);
}

TEST_F(LaunchGraphs, CountsEachLaunch) {
  put_fills(0, 500);
  channel_.serve();
  EXPECT_EQ(world_.session->telemetry.channel(0).submitted, 500U);
  EXPECT_EQ(world_.session->telemetry.channel(0).calls, 502U) << "hello, and the record that ends the session";
  EXPECT_EQ(channel_.control().executed, 501U);
}

TEST_F(LaunchGraphs, ServesSequencesWhoseShapesChange) {
  for (unsigned i = 0; i < 500; ++i) put(fill(i, i, i + 1));
  channel_.serve();
  expect_fills(0, 500);
  EXPECT_LT(calls("cuGraphLaunch") + calls("cuLaunchKernel"), 400U);
}

TEST_F(LaunchGraphs, KeepsAStreamsGraphsApart) {
  const std::uint64_t other = world_.stream();
  for (unsigned i = 0; i < 100; ++i) {
    put(fill(0, i));
    put(launch(fill_, other, 1, i));
    put(launch(fill_, 0, 2, i));
  }
  channel_.serve();
  for (unsigned at = 0; at < 3; ++at) EXPECT_EQ(word(at), 99U);
  EXPECT_EQ(calls("cuGraphInstantiateWithFlags"), 3U);
}

// ---- switches ------------------------------------------------------------------------------------------------------

TEST_F(LaunchGraphs, WithoutGraphsEachLaunchIsTheDrivers) {
  channel_.put(ids::switch_off, Payload::record(api::SwitchOffRecord{ring::switch_launch_graphs}));
  put_fills(0, 500);
  channel_.serve();
  expect_fills(0, 500);
  EXPECT_EQ(calls("cuLaunchKernel"), 500U);
  EXPECT_EQ(calls("cuGraphCreate"), 0U);
}

TEST_F(LaunchGraphs, WithoutChainsEachGraphHasOneKernel) {
  channel_.put(ids::switch_off, Payload::record(api::SwitchOffRecord{ring::switch_launch_chains}));
  put_fills(0, 500);
  channel_.serve();
  expect_fills(0, 500);
  EXPECT_EQ(calls("cuLaunchKernel") + calls("cuGraphLaunch"), 500U);
  EXPECT_EQ(calls("cuGraphAddKernelNode_v2"), 1U);
}

TEST_F(LaunchGraphs, AnUnknownSwitchBreaksTheProtocol) {
  const Answer a = world_.send(ids::switch_off, Payload::record(api::SwitchOffRecord{ring::known_switches + 1}));
  EXPECT_TRUE(a.broken);
}

// ---- what a graph cannot do ----------------------------------------------------------------------------------------

TEST_F(LaunchGraphs, AnOtherRecordKeepsItsPlace) {
  for (unsigned i = 0; i < 300; ++i) {
    put(fill(0, i));
    channel_.put(ids::cuMemcpyDtoDAsync_v2, Payload::of(memory_ + 4 * (i + 1), memory_, 4, stream_), 0);
  }
  channel_.serve();
  for (unsigned i = 0; i < 300; ++i) ASSERT_EQ(word(i + 1), i);
}

TEST_F(LaunchGraphs, AFailedSetIsNoProgramsError) {
  put_fills(0, 100);
  for (int i = 0; i < 3; ++i) world_.driver.fail_next("cuGraphExecKernelNodeSetParams_v2", CUDA_ERROR_INVALID_VALUE);
  put_fills(100, 400);
  channel_.serve();
  expect_fills(0, 500);
  EXPECT_EQ(channel_.control().deferred_count, 0U);
}

TEST_F(LaunchGraphs, AFailedLaunchOfAGraphIsNoProgramsError) {
  world_.driver.fail_next("cuGraphLaunch", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  put_fills(0, 500);
  channel_.serve();
  expect_fills(0, 500);
  EXPECT_EQ(channel_.control().deferred_count, 0U);
}

TEST_F(LaunchGraphs, AKernelWithoutAGraphIsAskedForOnce) {
  world_.driver.fail_next("cuGraphAddKernelNode_v2", CUDA_ERROR_NOT_SUPPORTED);
  for (unsigned i = 0; i < 50; ++i) {
    put(fill(i, i));
    wait();
  }
  channel_.serve();
  expect_fills(0, 50);
  EXPECT_EQ(calls("cuLaunchKernel"), 50U);
  EXPECT_EQ(calls("cuGraphCreate"), 1U);
  EXPECT_EQ(calls("cuGraphDestroy"), 1U);
}

// The driver refuses the third launch: its shared memory is too large for a launch. The error comes once.
TEST_F(LaunchGraphs, AnErrorStaysWithItsLaunch) {
  put_fills(0, 200);
  api::LaunchRecord wrong{fill_, stream_, {1, 1, 1}, {32, 1, 1}, fake::max_dynamic_shared + 1, 16, 0, 0};
  const std::byte params[16] = {};
  put(Payload::record(wrong).bytes(params, sizeof params));
  put_fills(200, 200);
  channel_.serve();
  expect_fills(0, 400);
  EXPECT_EQ(channel_.control().deferred_count, 1U);
  EXPECT_EQ(channel_.control().deferred_result, CUDA_ERROR_INVALID_VALUE);
}

TEST_F(LaunchGraphs, AFaultInAChainEndsTheContext) {
  put_fills(0, 200);
  const std::uint64_t fault = world_.function(module_, "fault");
  for (int i = 0; i < 8; ++i) {
    put_fills(0, 8);
    put(Payload::record(api::LaunchRecord{fault, stream_, {1, 1, 1}, {1, 1, 1}, 0, 0, 0, 0}));
    put_fills(0, 23);
  }
  wait();
  channel_.serve();
  EXPECT_EQ(other_side::header(world_.session->slot).fault, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(kept(), 0U);
}

TEST(LaunchGraphsOfNobody, MalformedLaunchesBreakTheProtocol) {
  for (const std::uint32_t bytes : {25U, 4096U, ~0U}) {
    SCOPED_TRACE(bytes);
    World world(without_time_limit());
    const std::uint64_t fill = world.function(world.module(), "fill");
    const std::byte params[16] = {};
    Channel channel(world);
    channel.put(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 0}));
    const api::LaunchRecord record{fill, 0, {1, 1, 1}, {32, 1, 1}, 0, bytes, 0, 0};
    channel.put(ids::cuLaunchKernel, Payload::record(record).bytes(params, sizeof params), 0);
    channel.publish().serve_published();
    EXPECT_EQ(world.driver.calls("cuLaunchKernel"), 0U);
  }
}

TEST_F(LaunchGraphs, AForeignFunctionOrStreamIsTheDriversError) {
  put_fills(0, 100);
  put(launch(fill_ + (1 << 4), stream_, 0, 1));
  put(launch(fill_, stream_ + (1 << 10), 0, 1));
  put_fills(100, 100);
  channel_.serve();
  expect_fills(1, 199);
  EXPECT_EQ(channel_.control().deferred_count, 2U);
}

// ---- ends ----------------------------------------------------------------------------------------------------------

TEST_F(LaunchGraphs, AnUnloadEndsTheGraphsOfItsFunctions) {
  put_fills(0, 300);
  channel_.put(ids::cuModuleUnload, Payload::of(module_));
  put(fill(0, 7));
  channel_.serve();
  EXPECT_EQ(word(0), 0U) << "the function has ended";
  EXPECT_EQ(calls("cuGraphExecDestroy"), calls("cuGraphInstantiateWithFlags"));
  EXPECT_EQ(channel_.control().deferred_result, CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(LaunchGraphs, AResetEndsAllGraphs) {
  put_fills(0, 300);
  channel_.put(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0));
  channel_.serve();
  EXPECT_EQ(calls("cuGraphExecDestroy"), calls("cuGraphInstantiateWithFlags"));
  EXPECT_EQ(kept(), 0U);
}

TEST_F(LaunchGraphs, AChangedSettingMakesTheGraphsAgain) {
  for (unsigned i = 0; i < 20; ++i) {
    if (i == 10) channel_.put(ids::cuFuncSetCacheConfig, Payload::of(fill_, 0));
    put(fill(i, i));
    wait();
  }
  channel_.serve();
  expect_fills(0, 20);
  EXPECT_EQ(calls("cuLaunchKernel"), 9U) << "the launch that ends the old graphs is not counted";
  EXPECT_EQ(calls("cuGraphInstantiateWithFlags"), 2U);
}

TEST_F(LaunchGraphs, AStreamsAttributesForbidGraphs) {
  world_.session->memory.kept_graphs.forbid();
  put_fills(0, 100);
  channel_.serve();
  EXPECT_EQ(calls("cuLaunchKernel"), 100U);
  EXPECT_EQ(host::launch_change(ids::cuStreamSetAttribute), host::LaunchChange::Forbids);
  EXPECT_EQ(host::launch_change(ids::cuModuleGetTexRef), host::LaunchChange::Forbids);
}

TEST_F(LaunchGraphs, NoGraphRunsWhileAStreamIsCaptured) {
  const std::uint64_t captured = world_.stream();
  put_fills(0, 100);
  channel_.serve();
  const std::uint64_t before = calls("cuGraphLaunch");
  Channel again(world_, 1);
  again.put(ids::cuStreamBeginCapture_v2, Payload::of(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  for (unsigned i = 0; i < 100; ++i) again.put(ids::cuLaunchKernel, fill(i, i), 0);
  again.serve();
  EXPECT_EQ(calls("cuGraphLaunch"), before);
}

// ---- bounds --------------------------------------------------------------------------------------------------------

// A cache without a channel.
class Cache : public LaunchGraphs {
 protected:
  // Issues a launch as a channel does. Returns whether a kept graph has launched it.
  bool issue(unsigned grid) {
    host::PendingLaunch launch;
    launch.header = {};
    launch.shape = {.function = fill_,
                    .handle = world_.session->objects.find(fill_, Handle::Function),
                    .grid = {grid, 1, 1},
                    .block = {32, 1, 1},
                    .shared = 0,
                    .param_bytes = 16};
    launch.hash = launch.shape.hash();
    const Payload record = fill(0, grid, grid);
    launch.bytes = ring::record_size(record.size());
    std::memcpy(launch.copy.data() + sizeof launch.header, record.data().data(), record.size());
    const host::LaunchStream stream{.id = 0, .handle = nullptr, .context = 0};
    const bool done = cache_.launch(stream, {&launch, 1}, [] {});
    if (cache_.wants_graph()) cache_.make_wanted();
    return done;
  }

  host::GraphCache cache_{*world_.session};
};

TEST_F(Cache, KeepsABoundedNumberOfGraphsInUse) {
  unsigned launched = 0;
  for (int round = 0; round < 10; ++round)
    for (unsigned grid = 1; grid <= 300; ++grid) launched += issue(grid);
  EXPECT_EQ(kept(), host::KeptGraphs::most);
  EXPECT_EQ(calls("cuGraphInstantiateWithFlags"), host::KeptGraphs::most) << "all of them were in use";
  EXPECT_EQ(launched, 6 * host::KeptGraphs::most) << "the rounds after the fourth";
}

// A sequence that shares its counter with a kept graph's gets no graph.
TEST_F(Cache, AnUnusedGraphMakesRoom) {
  unsigned launched = 0;
  for (unsigned grid = 1; grid <= 2 * host::KeptGraphs::most; ++grid)
    for (int i = 0; i < 5; ++i) launched += issue(grid);
  EXPECT_GT(launched, 2 * host::KeptGraphs::most * 9 / 10);
  EXPECT_EQ(kept(), host::KeptGraphs::most);
  EXPECT_EQ(calls("cuGraphExecDestroy"), launched - host::KeptGraphs::most);
}

TEST_F(Cache, GivesItsMemoryToTheProgram) {
  for (unsigned grid = 1; grid <= 10; ++grid)
    for (int i = 0; i < 5; ++i) issue(grid);
  ASSERT_EQ(kept(), 10U);
  world_.session->memory.kept_graphs.make_room(0);
  EXPECT_EQ(world_.session->memory.device.taken(0), 4U * words);
  EXPECT_FALSE(issue(1)) << "the cache ends its graphs";
  EXPECT_EQ(kept(), 0U);
  EXPECT_EQ(world_.session->memory.device.taken(0), 4U * words) << "nothing is given back twice";
}

struct Kept {
  explicit Kept(host::MemoryReserver* reserver = nullptr) : memory(reserver, published) {}
  std::atomic<std::uint64_t> published[ring::max_devices] = {};
  host::DeviceMemory memory;
  host::KeptGraphs graphs{memory};
};

TEST(KeptGraphs, CountsTheMemoryOfEachGraph) {
  Kept kept;
  const auto place = kept.graphs.reserve(1);
  ASSERT_TRUE(place);
  EXPECT_EQ(kept.memory.taken(1), host::KeptGraphs::graph_bytes);
  kept.graphs.give_back(*place);
  EXPECT_EQ(kept.memory.taken(1), 0U);
  EXPECT_EQ(kept.graphs.count(), 0U);
  EXPECT_FALSE(kept.graphs.reserve(ring::max_devices)) << "no such device";
}

TEST(KeptGraphs, GivesUpItsMemoryOnce) {
  Kept kept;
  const auto place = kept.graphs.reserve(0);
  const std::uint64_t generation = kept.graphs.generation();
  kept.graphs.make_room(0);
  EXPECT_EQ(kept.memory.taken(0), 0U);
  EXPECT_NE(kept.graphs.generation(), generation) << "the channels must end their graphs";
  kept.graphs.give_back(*place);
  EXPECT_EQ(kept.memory.taken(0), 0U);
}

TEST(KeptGraphs, WaitsForFreedMemoryAfterItHasGivenUp) {
  Kept kept;
  ASSERT_TRUE(kept.memory.take(0, 1 << 20));
  kept.graphs.make_room(0);
  EXPECT_FALSE(kept.graphs.reserve(0));
  kept.memory.give_back(0, 1 << 20);
  EXPECT_TRUE(kept.graphs.reserve(0));
}

}  // namespace
