// Contexts that a guest creates, in the worker: a context ends with its own objects and no others, and invalid context
// numbers end the session. The strict fake driver aborts when a destroyed context is used.
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;
constexpr unsigned first = ring::first_created_context;

class CreatedContexts : public testing::Test {
 protected:
  static Payload creation(api::CreateContextRecord record) { return Payload::record(record); }
  CUresult create(unsigned number) {
    return world
        .send(ids::cuCtxCreate_v4,
              creation({.number = number, .device = 0, .flags = 0, .affinities = 0, .sm_count = 0, .pad = 0}))
        .result;
  }
  Answer destroy(std::uint64_t number) {
    return world.send(ids::cuCtxDestroy_v2, Payload::record(api::EndContextRecord{number}));
  }
  // Makes the context current, as a channel does before each record.
  void enter(unsigned number) {
    ASSERT_EQ(world.session->contexts.make_current(number), CUDA_SUCCESS);
    flags_ = ring::context_flags(number);
  }
  Answer send(int call, const Payload& payload) { return world.send(call, payload, flags_); }
  std::uint64_t stream() {
    const std::uint64_t id = world.next(Handle::Stream);
    EXPECT_EQ(send(ids::cuStreamCreate, Payload::of(id, 0)).result, CUDA_SUCCESS);
    return id;
  }
  std::uint64_t memory() {
    const Answer a = send(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{64, 0, 0, 0}));
    EXPECT_EQ(a.result, CUDA_SUCCESS);
    return a.read<api::AllocateReply>().address;
  }
  CUresult synchronize(std::uint64_t stream) { return send(ids::cuStreamSynchronize, Payload::of(stream)).result; }
  CUresult free(std::uint64_t at) { return send(ids::cuMemFree_v2, Payload::record(api::FreeRecord{at})).result; }

  World world;

 private:
  std::uint16_t flags_ = 0;
};

TEST_F(CreatedContexts, TakeAlongWhatLivesInThemAndNothingElse) {
  const std::uint64_t library = world.library();
  const std::uint64_t stream_below = stream(), memory_below = memory();
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  ASSERT_EQ(create(first + 1), CUDA_SUCCESS);
  enter(first);
  const std::uint64_t stream_in = stream(), memory_in = memory();
  enter(first + 1);
  const std::uint64_t stream_beside = stream(), memory_beside = memory();
  EXPECT_EQ(destroy(first).result, CUDA_SUCCESS);
  EXPECT_EQ(synchronize(stream_in), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(free(memory_in), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(synchronize(stream_beside), CUDA_SUCCESS);
  EXPECT_EQ(free(memory_beside), CUDA_SUCCESS);
  enter(0);
  EXPECT_EQ(synchronize(stream_below), CUDA_SUCCESS);
  EXPECT_EQ(free(memory_below), CUDA_SUCCESS);
  EXPECT_EQ(world.send(ids::cuLibraryUnload, Payload::record(api::CloseRecord{library})).result, CUDA_SUCCESS);
}

TEST_F(CreatedContexts, AResetOfThePrimaryOneLeavesThem) {
  const std::uint64_t below = stream();
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  enter(first);
  const std::uint64_t in = stream(), at = memory();
  EXPECT_EQ(send(ids::cuDevicePrimaryCtxReset_v2, Payload::record(api::EndContextRecord{0})).result, CUDA_SUCCESS);
  enter(first);
  EXPECT_EQ(synchronize(below), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(synchronize(in), CUDA_SUCCESS);
  EXPECT_EQ(free(at), CUDA_SUCCESS);
}

TEST_F(CreatedContexts, ThatHaveEndedCannotBeEntered) {
  EXPECT_EQ(world.session->contexts.make_current(first), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  EXPECT_EQ(world.session->contexts.make_current(first), CUDA_SUCCESS);
  EXPECT_EQ(destroy(first).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->contexts.make_current(first), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(destroy(first).result, CUDA_ERROR_INVALID_CONTEXT);
}

// A thread caches the number of its current context. The thread must notice that the number now belongs to another
// context.
TEST_F(CreatedContexts, ANumberThatIsAnothersSinceIsEnteredAnew) {
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  enter(first);
  std::thread([&] {
    ASSERT_EQ(world.session->contexts.make_current(0), CUDA_SUCCESS);
    EXPECT_EQ(destroy(first).result, CUDA_SUCCESS);
    EXPECT_EQ(create(first), CUDA_SUCCESS);
  }).join();
  enter(first);
  EXPECT_EQ(synchronize(stream()), CUDA_SUCCESS);  // the fake driver would abort in a destroyed context
}

TEST_F(CreatedContexts, EventsOfThem) {
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  const std::uint64_t event = world.event();
  for (const int call : {ids::cuCtxRecordEvent, ids::cuCtxWaitEvent}) {
    EXPECT_EQ(send(call, Payload::of(first, event)).result, CUDA_SUCCESS);
    EXPECT_EQ(send(call, Payload::of(first + 1, event)).result, CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(send(call, Payload::of(first, event + 16)).result, CUDA_ERROR_INVALID_HANDLE);
    for (const std::uint64_t none : {std::uint64_t{ring::max_contexts}, std::numeric_limits<std::uint64_t>::max()})
      EXPECT_TRUE(send(call, Payload::of(none, event)).broken) << none;
  }
}

TEST_F(CreatedContexts, NumbersThatAreNoneBreak) {
  const api::CreateContextRecord good{
      .number = first, .device = 0, .flags = 0, .affinities = 0, .sm_count = 0, .pad = 0};
  const auto breaks = [&](auto change) {
    api::CreateContextRecord record = good;
    change(record);
    return world.send(ids::cuCtxCreate_v4, creation(record)).broken;
  };
  for (const unsigned number : {0u, first - 1, unsigned{ring::max_contexts}, ~0u})
    EXPECT_TRUE(breaks([&](auto& r) { r.number = number; })) << number;
  EXPECT_TRUE(breaks([](auto& r) { r.device = ring::max_devices; }));
  EXPECT_TRUE(breaks([](auto& r) { r.flags = 0x7000; }));
  EXPECT_TRUE(breaks([](auto& r) { r.affinities = 2; }));
  EXPECT_TRUE(breaks([](auto& r) { r.pad = 1; }));
  EXPECT_TRUE(world.send(ids::cuCtxCreate_v4, creation(good).slot(0).slot(0)).broken) << "bytes left over";
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{first - 1}, std::uint64_t{ring::max_contexts}, std::uint64_t{1} << 32 | first})
    EXPECT_TRUE(destroy(number).broken) << number;
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  EXPECT_TRUE(breaks([](auto&) {})) << "a number that is taken";
}

TEST_F(CreatedContexts, ADeviceThatIsNoneAndAFailure) {
  api::CreateContextRecord record{.number = first, .device = 3, .flags = 0, .affinities = 0, .sm_count = 0, .pad = 0};
  EXPECT_EQ(world.send(ids::cuCtxCreate_v4, creation(record)).result, CUDA_ERROR_INVALID_DEVICE);
  record.device = 0;
  world.driver.fail_next("cuCtxCreate_v2", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.send(ids::cuCtxCreate_v4, creation(record)).result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.session->contexts.make_current(first), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  record.affinities = 1, record.sm_count = 8;
  EXPECT_EQ(world.send(ids::cuCtxCreate_v4, creation(record)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.driver.calls("cuCtxCreate_v3"), 1u);
}

}  // namespace
