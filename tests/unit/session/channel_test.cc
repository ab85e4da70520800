// One channel and the work around a record: context flags, hello, the arena's address, and kernel output.
#include <gtest/gtest.h>

#include <thread>

#include "host/session/output.h"
#include "host/untrusted/channel.h"
#include "tests/unit/session/channel.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

Payload hello(std::uint64_t window, std::uint64_t pin = 0) { return Payload::record(api::HelloRecord{window, pin}); }
Payload allocation() { return Payload::record(api::AllocateRecord{64, 0, 0, 0}); }

TEST(SessionChannel, NothingIsServedBeforeHello) {
  World world;
  EXPECT_EQ(Channel(world).put(ids::cuMemAlloc_v2, allocation()).serve(), 0u);
  EXPECT_EQ(world.driver.calls("cuMemAlloc_v2"), 0u);
  EXPECT_EQ(Channel(world).put(ids::hello, hello(ring::window_count)).put(ids::cuMemAlloc_v2, allocation()).serve(),
            2u);
  EXPECT_EQ(Channel(world, 1).put(ids::cuMemAlloc_v2, allocation()).serve(), 1u) << "another channel, after hello";
}

// An invalid context number gets the driver's error. Undefined flag bits end the session.
TEST(SessionChannel, FlagsThatNoGuestSetsEndTheSession) {
  const auto executed = [](unsigned flags) {
    World world;
    Channel channel(world);
    channel.put(ids::hello, hello(ring::window_count));
    channel.put(ids::cuMemAlloc_v2, allocation(), static_cast<std::uint16_t>(flags | ring::flag_wants_reply));
    return channel.serve();
  };
  EXPECT_EQ(executed(ring::context_flags(0)), 2u);
  EXPECT_EQ(executed(ring::context_flags(ring::max_devices - 1)), 2u)
      << "a device that there is not is the driver's error";
  for (unsigned context = ring::max_devices; context < ring::max_contexts; ++context)
    EXPECT_EQ(executed(ring::context_flags(context)), 2u) << context;
  for (unsigned bit = 0; bit < 16; ++bit) {
    if ((1u << bit & ring::known_flags) != 0) continue;
    EXPECT_EQ(executed(1u << bit), 1u) << "bit " << bit;
  }
}

// hello moves the arena. A second, concurrent hello would move the arena while calls use it.
TEST(SessionChannel, HelloIsTakenFromOneChannelOnly) {
  for (int round = 0; round < 50; ++round) {
    World world;
    std::atomic<int> greeted{0};
    std::thread threads[2];
    for (std::thread& t : threads)
      t = std::thread([&world, &greeted] {
        CUcontext context = nullptr;
        world.driver.table().cuDevicePrimaryCtxRetain(&context, 0);
        world.driver.table().cuCtxSetCurrent(context);
        std::vector<std::byte> reply(64);
        const Payload payload = hello(ring::window_count);
        host::Request request(*world.session, {.bytes = 0, .call = ids::hello, .flags = 0, .position = 1},
                              payload.data(), reply);
        greeted += host::handler_of(ids::hello)(request) == CUDA_SUCCESS;
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(greeted, 1);
    EXPECT_TRUE(world.session->protocol.broken) << "the other one is no correct guest's";
  }
}

TEST(SessionChannel, CountsWhatItHasDone) {
  World world;
  const ring::ChannelCounters& counted = world.session->telemetry.channel(0);
  const Payload of_64 = allocation();
  Channel channel(world);
  channel.put(ids::hello, hello(ring::window_count)).put(ids::cuMemAlloc_v2, of_64).put(ids::cuMemAlloc_v2, of_64);
  channel.serve();
  EXPECT_EQ(counted.calls, 4u) << "the one that ends the session, too";
  EXPECT_EQ(counted.waited, 3u);
  EXPECT_EQ(counted.submitted, 0u) << "an allocation puts nothing into a stream";
  EXPECT_EQ(counted.record_bytes,
            ring::record_size(hello(0).size()) + 2 * ring::record_size(of_64.size()) + ring::record_size(0));
  EXPECT_EQ(counted.reply_bytes, sizeof(api::HelloReply) + 2 * sizeof(api::AllocateReply));
  EXPECT_EQ(world.session->telemetry.page().device_memory, 128u);
  EXPECT_EQ(counted.written, 0u) << "nobody traces";
}

TEST(SessionChannel, CountsWhatGivesTheGpuACommand) {
  World world;
  const ring::ChannelCounters& counted = world.session->telemetry.channel(0);
  const Payload fill = Payload::of(world.memory(64), 1, 64, world.stream());
  Channel channel(world);
  channel.put(ids::hello, hello(ring::window_count)).put(ids::cuMemsetD8Async, fill, 0);
  channel.put(ids::cuMemsetD8Async, fill, 0).put(ids::cuMemAlloc_v2, allocation()).serve();
  EXPECT_EQ(counted.submitted, 2u);
  world.driver.fail_next("cuMemsetD8Async", CUDA_ERROR_INVALID_VALUE);
  channel.put(ids::cuMemsetD8Async, fill, 0).serve();
  EXPECT_EQ(counted.submitted, 2u) << "a call that fails gives it none";
}

TEST(SessionChannel, TracesWhileItIsOrderedTo) {
  World world;
  const host::Telemetry& telemetry = world.session->telemetry;
  ring::TraceReader reader(telemetry.channel(0).written,
                           ring::TelemetryView(reinterpret_cast<std::byte*>(&telemetry.page())).cells(0));
  telemetry.page().tracing = 1;
  Channel channel(world);
  channel.put(ids::hello, hello(ring::window_count)).put(ids::cuMemAlloc_v2, allocation());
  channel.put(ids::cuMemFree_v2, Payload::of(4711)).serve();
  ring::TraceEntry e{};
  ASSERT_EQ(reader.take(e), ring::Taken::Entry);
  EXPECT_EQ(e.call, ids::hello);
  ASSERT_EQ(reader.take(e), ring::Taken::Entry);
  EXPECT_EQ(e.call, ids::cuMemAlloc_v2);
  EXPECT_EQ(e.position, 2u);
  EXPECT_EQ(e.flags, ring::flag_wants_reply);
  EXPECT_LE(e.begin_ns, e.end_ns);
  EXPECT_EQ(e.reply_bytes, sizeof(api::AllocateReply));
  api::AllocateRecord asked;
  std::memcpy(&asked, e.payload, sizeof asked);
  EXPECT_EQ(asked.bytes, 64u);
  ASSERT_EQ(reader.take(e), ring::Taken::Entry);
  EXPECT_EQ(e.result, CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(reader.take(e), ring::Taken::Entry);
  EXPECT_EQ(e.call, 0xffff) << "what breaks the protocol is seen as well";
  EXPECT_EQ(reader.take(e), ring::Taken::Nothing);
}

TEST(SessionArena, MovesToItsWindowWithItsBytes) {
  World world;
  std::byte* const before = world.session->arena.bytes_at(4096, 1).write_only(0);
  *before = std::byte{7};
  const Answer a = world.send(ids::hello, hello(2));
  EXPECT_EQ(a.result, CUDA_SUCCESS);
  EXPECT_EQ(a.read<api::HelloReply>().arena_address, ring::window_address(2));
  EXPECT_EQ(world.session->arena.address(), ring::window_address(2));
  EXPECT_EQ(*reinterpret_cast<std::byte*>(ring::window_address(2) + 4096), std::byte{7});
  EXPECT_FALSE(world.session->arena.bytes_at(World::arena_bytes, 1).there());
  unsigned char resident = 0;
  EXPECT_EQ(mincore(before, 1, &resident), -1) << "the old place is nobody's";
}

// Any other address belongs to the worker: to a stack, a library, or another session's slot.
TEST(SessionArena, OnlyAWindowThatTheWorkerReservedIsBound) {
  World world(0b1001);
  const std::uint64_t where = world.session->arena.address();
  void* const wanted = reinterpret_cast<void*>(ring::window_address(1));
  void* const other = mmap(wanted, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(other, wanted);
  std::memset(other, 0x5a, 4096);
  for (const std::uint64_t window : {1, 2}) {
    const Answer a = world.send(ids::hello, hello(window));
    EXPECT_EQ(a.result, CUDA_ERROR_INVALID_ADDRESS_SPACE) << window;
    EXPECT_FALSE(a.broken);
  }
  EXPECT_EQ(static_cast<unsigned char*>(other)[4095], 0x5a);
  EXPECT_EQ(world.session->arena.address(), where);
  EXPECT_EQ(world.send(ids::hello, hello(3)).result, CUDA_SUCCESS) << "a guest that asks for another one gets it";
  munmap(other, 4096);
}

// After a failed move the kernel has unmapped the window, and another mapping may be at its address.
TEST(SessionArena, AWindowIsTriedOnce) {
  World world;
  munmap(reinterpret_cast<void*>(world.session->arena.address()), World::arena_bytes);  // makes the move fail
  EXPECT_FALSE(world.session->arena.bind(2));
  void* const wanted = reinterpret_cast<void*>(ring::window_address(2));
  void* const other = mmap(wanted, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  std::memset(other, 0x5a, 4096);
  void* const back = mmap(reinterpret_cast<void*>(world.session->arena.address()), World::arena_bytes,
                          PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  ASSERT_NE(back, MAP_FAILED);
  EXPECT_FALSE(world.session->arena.bind(2));
  EXPECT_EQ(*static_cast<unsigned char*>(other), 0x5a);
  munmap(other, 4096);
}

TEST(SessionArena, WindowsThatAreNone) {
  World world;
  const std::uint64_t where = world.session->arena.address();
  for (const std::uint64_t window : {std::uint64_t{ring::window_count}, std::uint64_t{1} << 32, ~std::uint64_t{0}})
    EXPECT_FALSE(world.session->arena.bind(window)) << window;
  EXPECT_EQ(world.session->arena.address(), where);
}

// A larger arena would reach into the next window.
TEST(SessionArena, OneThatIsLargerThanItsWindowStays) {
  fake::Driver driver;
  std::byte page[64] = {};
  host::Session session(ring::SlotView(page, ring::arena_offset + ring::window_bytes + ring::huge_page), driver.table(),
                        {.windows = host::all_windows});
  EXPECT_FALSE(session.arena.bind(0));
  EXPECT_EQ(session.arena.address(), reinterpret_cast<std::uint64_t>(page) + ring::arena_offset);
}

// ---- kernel output -------------------------------------------------------------------------------------------------

// Redirects stdout to the captured stream while the object exists.
class Caught {
 public:
  Caught() : before_(stdout) { EXPECT_TRUE(host::catch_output()); }
  ~Caught() {
    std::swap(before_, stdout);
    // Forwards the output of a failed assertion.
    while (host::output_waiting()) std::fputs(take(1 << 16).c_str(), stdout);
    std::fclose(before_);
  }
  static std::string take(std::size_t room) {
    std::vector<std::byte> bytes(room);
    const std::size_t n = host::take_output(bytes);
    return {reinterpret_cast<const char*>(bytes.data()), n};
  }

 private:
  FILE* before_;
};

TEST(Output, IsTakenInOrderAndInPieces) {
  const Caught caught;
  EXPECT_FALSE(host::output_waiting());
  EXPECT_EQ(Caught::take(16), "");
  std::printf("one %d\n", 1);
  std::puts("two");
  EXPECT_TRUE(host::output_waiting());
  EXPECT_EQ(Caught::take(0), "");
  EXPECT_EQ(Caught::take(3), "one");
  EXPECT_TRUE(host::output_waiting());
  EXPECT_EQ(Caught::take(64), " 1\ntwo\n");
  EXPECT_FALSE(host::output_waiting());
}

TEST(Output, ThatNobodyFetchesIsBoundedAndLosesTheOldest) {
  const Caught caught;
  const std::string megabyte(1 << 20, 'a');
  for (int i = 0; i < 6; ++i) std::fwrite(megabyte.data(), 1, megabyte.size(), stdout);
  std::fputs("the end", stdout);
  std::size_t sum = 0;
  std::string last;
  while (host::output_waiting()) {
    std::string piece = Caught::take(1 << 20);
    sum += piece.size();
    last = piece;
  }
  EXPECT_EQ(sum, std::size_t{4} << 20);
  EXPECT_EQ(last.substr(last.size() - 7), "the end");
}

TEST(Output, TravelsInRepliesOfBoundedLength) {
  World world;
  const Caught caught;
  const auto ask = [&](std::uint64_t room) {
    return world.send(ids::take_output, Payload::record(api::TakeOutputRecord{room}));
  };
  EXPECT_TRUE(ask(api::max_output + 1).broken);
  EXPECT_TRUE(ask(~std::uint64_t{0}).broken);
  const std::string text(api::max_output + 5, 'x');
  std::fputs(text.c_str(), stdout);
  other_side::header(world.session->slot).output = 1;
  const Answer first = ask(api::max_output);
  EXPECT_EQ(first.read<std::uint64_t>(), api::max_output);
  EXPECT_EQ(first.reply.size(), 8 + api::max_output);
  EXPECT_EQ(other_side::header(world.session->slot).output, 1u) << "there is more";
  const Answer second = ask(api::max_output);
  EXPECT_EQ(second.read<std::uint64_t>(), 5u);
  EXPECT_EQ(other_side::header(world.session->slot).output, 0u);
  EXPECT_EQ(ask(api::max_output).read<std::uint64_t>(), 0u);
}

// ---- diagnoses of the simulated GPU --------------------------------------------------------------------------------

// A driver that writes the log lines of the test's choice.
struct Talker {
  Talker() {
    driver.cuLogsRegisterCallback = [](CUlogsCallback to, void* data, CUlogsCallbackHandle*) {
      listener = to, listener_data = data;
      return CUDA_SUCCESS;
    };
    EXPECT_TRUE(host::catch_diagnosis(driver));
  }
  ~Talker() { take(); }
  static void say(std::string line) { listener(listener_data, CU_LOG_LEVEL_ERROR, line.data(), line.size()); }
  static std::string take(std::size_t room = 1 << 16) {
    std::vector<std::byte> bytes(room);
    const std::size_t n = host::take_diagnosis(bytes);
    return {reinterpret_cast<const char*>(bytes.data()), n};
  }

  host::Driver driver;
  inline static CUlogsCallback listener = nullptr;
  inline static void* listener_data = nullptr;
};

TEST(Diagnosis, NeedsADriverWithALog) { EXPECT_FALSE(host::catch_diagnosis(host::Driver())); }

TEST(Diagnosis, IsTakenLineByLineBesideTheOutput) {
  const Talker talker;
  const Caught caught;
  EXPECT_FALSE(host::output_waiting());
  Talker::say("one");
  Talker::say("two");
  EXPECT_TRUE(host::output_waiting());
  EXPECT_EQ(Caught::take(64), "");
  EXPECT_TRUE(host::output_waiting());
  EXPECT_EQ(Talker::take(3), "one");
  EXPECT_EQ(Talker::take(), "\ntwo\n");
  EXPECT_FALSE(host::output_waiting());
}

TEST(Diagnosis, ThatNobodyFetchesIsBoundedAndKeepsTheOldest) {
  const Talker talker;
  Talker::say("the first");
  for (int i = 0; i < 100; ++i) Talker::say(std::string(97, 'a'));
  Talker::say(std::string(1 << 20, 'b'));
  const std::string text = Talker::take();
  EXPECT_EQ(text.size(), api::max_diagnosis);
  EXPECT_EQ(text.substr(0, 10), "the first\n");
  EXPECT_EQ(text.back(), '\n');
}

TEST(Diagnosis, TravelsBehindTheOutput) {
  World world;
  const Talker talker;
  const Caught caught;
  const auto ask = [&] { return world.send(ids::take_output, Payload::record(api::TakeOutputRecord{5})); };
  std::fputs("out", stdout);
  EXPECT_EQ(ask().reply.size(), 16u) << "with nothing to say, nothing is sent";
  Talker::say("a fault");
  std::fputs("printed", stdout);
  other_side::header(world.session->slot).output = 1;
  const Answer first = ask();
  EXPECT_EQ(first.read<std::uint64_t>(), 5u);
  EXPECT_EQ(first.read<std::uint64_t>(16), 8u);
  ASSERT_EQ(first.reply.size(), 32u);
  EXPECT_EQ(std::memcmp(first.reply.data() + 24, "a fault\n", 8), 0);
  EXPECT_EQ(other_side::header(world.session->slot).output, 1u) << "there is more output";
  EXPECT_EQ(ask().reply.size(), 16u);
  EXPECT_EQ(other_side::header(world.session->slot).output, 0u);
}

// A guest that sees the fault must also see that a diagnosis is available.
TEST(Diagnosis, IsOfferedWithTheFault) {
  World world;
  const Talker talker;
  const auto offered = [&] { return other_side::header(world.session->slot).output; };
  world.session->note(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(offered(), 0u) << "nothing was said";
  Talker::say("a fault");
  world.session->note(CUDA_SUCCESS);
  world.session->note(CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(offered(), 0u);
  world.session->note(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(offered(), 1u);
}

// A posted call can fail without a fault of the context, for example when an image loads lazily at its first launch.
TEST(Diagnosis, IsOfferedWithAPostedCallsError) {
  World world;
  const Talker talker;
  Channel(world).put(ids::hello, hello(ring::window_count)).serve();
  const Payload fill = Payload::of(world.memory(64), 1, 64, world.stream());
  const auto offered_after = [&](std::uint32_t channel) {
    Channel(world, channel).put(ids::cuMemsetD8Async, fill, 0).serve();
    return other_side::header(world.session->slot).output;
  };
  Talker::say("not loaded");
  EXPECT_EQ(offered_after(1), 0u) << "it succeeded";
  world.driver.fail_next("cuMemsetD8Async", CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(offered_after(2), 1u);
}

}  // namespace
