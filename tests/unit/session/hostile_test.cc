// Invalid records: each record ends the session or gets the documented error. The fake driver aborts if a record
// reaches it with an object or address that the session does not have.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "host/untrusted/marshal/unmarshal.h"
#include "ring/api/jit_options.h"
#include "ring/api/launch_attributes.h"
#include "tests/unit/session/records.h"
#include "tests/unit/session/seeds.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

class Records : public testing::Test {
 protected:
  void expect_broken(int call, const Payload& payload, const std::string& what = "") {
    const Answer a = world.send(call, payload);
    EXPECT_TRUE(a.broken) << call << " " << what;
    EXPECT_TRUE(a.reply.empty()) << call << " " << what;
  }
  void expect_error(CUresult error, int call, const Payload& payload, const std::string& what = "") {
    const Answer a = world.send(call, payload);
    EXPECT_FALSE(a.broken) << call << " " << what;
    EXPECT_EQ(a.result, error) << call << " " << what;
  }
  World world;
};

// ---- invalid call numbers ------------------------------------------------------------------------------------------

TEST_F(Records, UnknownCallsHaveNoHandler) {
  for (const int call : {0, 300, 400, 511, 999, 1100, 4096, 65535})
    EXPECT_EQ(host::handler_of(static_cast<std::uint16_t>(call)), nullptr) << call;
  for (const int call : {1, 24, 62, 1000, 1001})
    EXPECT_NE(host::handler_of(static_cast<std::uint16_t>(call)), nullptr) << call;
}

// ---- every CALL line -----------------------------------------------------------------------------------------------

struct Line {
  int id;
  const char* name;
  std::size_t arity;
};
constexpr Line lines[] = {
#define CALL(id, fn, ...) {id, #fn, api::Call<id>::Shape::arity},
#define CUSTOM(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
};

TEST_F(Records, EveryCallTruncatedAnywhereBreaks) {
  for (const Line& line : lines)
    for (std::size_t n = 0; n < line.arity * 8; ++n) {
      Payload p;
      for (std::size_t i = 0; i < line.arity; ++i) p.slot(0);
      EXPECT_TRUE(world.send_exactly(line.id, p.cut(n)).broken) << line.name << " with " << n << " bytes";
    }
}

TEST_F(Records, EveryCallTooLongBreaks) {
  for (const Line& line : lines)
    for (const std::size_t more : {16u, 32u, 1024u}) {
      Payload p;
      for (std::size_t i = 0; i < line.arity; ++i) p.slot(0);
      const std::size_t n = p.size();
      EXPECT_TRUE(world.send_exactly(line.id, p.cut(n + more)).broken) << line.name << " with " << more << " more";
    }
}

TEST_F(Records, HandlesThatAreNotTheSessionsAreInvalid) {
  const std::uint64_t stream = world.stream(), event = world.event();
  for (const std::uint64_t id :
       {std::uint64_t{3}, std::uint64_t{16}, most, std::uint64_t{1} << 47, event, stream + 16,
        stream | std::uint64_t{1} << Id::generation_at, stream + 1, std::uint64_t{0x7f0000001000}}) {
    expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuStreamSynchronize, Payload::of(id));
    expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuStreamDestroy_v2, Payload::of(id));
  }
  for (const std::uint64_t id : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, stream, event + 16, most})
    expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuEventSynchronize, Payload::of(id));
  for (const int special : {0, 1, 2})
    EXPECT_EQ(world.send(ids::cuStreamSynchronize, Payload::of(special)).result, CUDA_SUCCESS);
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuStreamWaitEvent, Payload::of(stream, stream, 0));
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuEventRecord, Payload::of(event, event));
}

// CUDA's special streams are no objects, so the worker must never pass them to the driver's cuStreamDestroy.
TEST_F(Records, SpecialStreamsCannotBeDestroyed) {
  for (const int special : {0, 1, 2})
    expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuStreamDestroy_v2, Payload::of(special));
  EXPECT_EQ(world.driver.calls("cuStreamDestroy_v2"), 0u);
}

TEST_F(Records, DestroyedHandlesAreInvalid) {
  const std::uint64_t stream = world.stream();
  EXPECT_EQ(world.send(ids::cuStreamDestroy_v2, Payload::of(stream)).result, CUDA_SUCCESS);
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuStreamDestroy_v2, Payload::of(stream));
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuStreamSynchronize, Payload::of(stream));
}

TEST_F(Records, IdsThatCannotBeGivenBreak) {
  const std::uint64_t taken = world.stream();
  const std::uint64_t taken_for_an_event = Id{Handle::Event, Id::of(taken).index, 0}.value();
  expect_broken(ids::cuStreamCreate, Payload::of(taken, 0), "taken");
  expect_broken(ids::cuEventCreate, Payload::of(taken_for_an_event, 0), "taken by another kind");
  for (const std::uint64_t id :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, most, Id{Handle::Event, 77, 0}.value(),
        Id{Handle::Stream, 0, 0}.value(), Id{Handle::Stream, 77, 0}.value() | 4,
        Id{Handle::Stream, Id::first_of_worker, 0}.value(), Id{Handle::Stream, Id::max_index, 0}.value()})
    expect_broken(ids::cuStreamCreate, Payload::of(id, 0));
}

TEST_F(Records, NumbersThatTheirTypeCannotHoldBreak) {
  const std::uint64_t stream = world.stream(), device = world.memory(64);
  expect_broken(ids::cuStreamCreate, Payload::of(world.next(Handle::Stream), 1ULL << 32), "unsigned flags");
  expect_broken(ids::cuMemsetD8Async, Payload::of(device, 256, 1, stream), "unsigned char");
  expect_broken(ids::cuMemsetD16Async, Payload::of(device, 65536, 1, stream), "unsigned short");
  expect_broken(ids::cuMemsetD32Async, Payload::of(device, 1ULL << 32, 1, stream), "unsigned");
  expect_broken(ids::cuStreamCreateWithPriority, Payload::of(world.next(Handle::Stream), 0, 1ULL << 31), "int");
  EXPECT_EQ(world.send(ids::cuStreamCreateWithPriority, Payload::of(world.next(Handle::Stream), 0, -5)).result,
            CUDA_SUCCESS);
}

TEST_F(Records, OutputsOfAnotherLengthBreak) {
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{9},
                                     std::uint64_t{16}, most - 1, most - 7, std::uint64_t{1} << 32})
    expect_broken(ids::cuMemGetInfo_v2, Payload::of(length, 8));
  expect_broken(ids::cuModuleGetFunctionCount, Payload::of(ring::absent, world.module()), "required");
  expect_broken(ids::cuEventElapsedTime, Payload::of(ring::absent, world.event(), world.event()), "required");
  const Answer a = world.send(ids::cuMemGetInfo_v2, Payload::of(8, 8));
  EXPECT_EQ(a.result, CUDA_SUCCESS);
  EXPECT_EQ(a.reply.size(), 16u);
}

TEST_F(Records, DeviceRangesOutsideTheSessionsMemory) {
  const std::uint64_t device = world.memory(64), stream = world.stream();
  const struct {
    std::uint64_t at, count;
  } ranges[] = {{device, 65}, {device + 1, 64}, {device - 1, 1},    {device + 65, 0},     {0, 1},
                {most, 1},    {device, most},   {device + 1, most}, {device, 1ULL << 63}, {4096, 0}};
  for (const auto& r : ranges) {
    expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuMemsetD8Async, Payload::of(r.at, 1, r.count, stream));
    expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuMemcpyDtoD_v2, Payload::of(r.at, device, r.count));
    expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuMemcpyDtoD_v2, Payload::of(device, r.at, r.count));
  }
  // These counts overflow when they are converted to bytes: 2^62 words are 0 bytes modulo 2^64.
  for (const std::uint64_t count : {1ULL << 62, (1ULL << 62) + 1, 1ULL << 63, 17ULL})
    expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuMemsetD32_v2, Payload::of(device, 1, count));
  EXPECT_EQ(world.send(ids::cuMemsetD32_v2, Payload::of(device, 1, 16)).result, CUDA_SUCCESS);
}

// ---- inputs, which no call of the table uses yet -------------------------------------------------------------------

CUresult take_inputs(const char* name, const void* data, std::size_t count) {
  if (name != nullptr && std::strlen(name) > 100) return CUDA_ERROR_UNKNOWN;
  const auto* bytes = static_cast<const unsigned char*>(data);
  unsigned sum = 0;
  for (std::size_t i = 0; data != nullptr && i < count; ++i) sum += bytes[i];
  return sum == 6 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

TEST_F(Records, InputsAreHeldAgainstTheirLengths) {
  using Inputs = host::Unmarshal<
      api::Shape<CUresult(const char*, const void*, std::size_t), api::in(api::string), api::in(2), api::_>>;
  const auto run = [&](const Payload& payload) {
    world.session->protocol.broken = false;
    const std::unique_ptr<std::byte[]> in(new std::byte[payload.size()]);
    std::memcpy(in.get(), payload.data().data(), payload.size());
    std::vector<std::byte> out(64);
    host::Request request(*world.session, {}, {in.get(), payload.size()}, out);
    const CUresult result = Inputs(request).run(take_inputs);
    return world.session->protocol.broken ? CUDA_ERROR_UNKNOWN : result;
  };
  EXPECT_EQ(run(Payload::of(4, 3, 3).text("abc").bytes("\1\2\3", 3)), CUDA_SUCCESS);
  EXPECT_EQ(run(Payload::of(4, 3, 3).text("abc")), CUDA_ERROR_UNKNOWN);                     // some bytes are missing
  EXPECT_EQ(run(Payload::of(4, 3, 4).text("abc").bytes("\1\2\3", 3)), CUDA_ERROR_UNKNOWN);  // the count is different
  EXPECT_EQ(run(Payload::of(3, 3, 3).text("abc").bytes("\1\2\3", 3)), CUDA_ERROR_UNKNOWN);  // the text has no NUL
  EXPECT_EQ(run(Payload::of(0, 3, 3).bytes("\1\2\3", 3)), CUDA_ERROR_UNKNOWN);  // the text has no NUL here either
  EXPECT_EQ(run(Payload::of(most - 1, 3, 3).text("abc").bytes("\1\2\3", 3)), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(run(Payload::of(4, most - 7, most - 7).text("abc").bytes("\1\2\3", 3)), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(run(Payload::of(4, 3, 3).text("abc").bytes("\1\2\3", 3).slot(0).slot(0)), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(run(Payload::of(ring::absent, 3, 3).bytes("\1\2\3", 3)),
            CUDA_ERROR_UNKNOWN);  // the pointer is NULL, which the call forbids
}

// ---- hello and the arena -------------------------------------------------------------------------------------------

TEST_F(Records, HelloComesOnce) {
  expect_broken(ids::pin_arena, Payload::record(api::PinArenaRecord{0, ring::huge_page}), "before hello");
  expect_broken(ids::hello, Payload::record(api::HelloRecord{ring::window_count + 1, 0}), "no such window");
  expect_broken(ids::hello, Payload::record(api::HelloRecord{most, 0}), "no such window");
  const Answer a = world.send(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 4 << 20}));
  EXPECT_EQ(a.result, CUDA_SUCCESS);
  EXPECT_EQ(a.read<api::HelloReply>().arena_address, world.session->arena.address());
  EXPECT_EQ(world.driver.registered_bytes(), std::size_t{4} << 20);
  expect_broken(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 0}), "again");
}

TEST(Hello, WithPinsThatDoNotFitBreaks) {
  for (const std::uint64_t bytes :
       {std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{World::arena_bytes} * 2, most, std::uint64_t{1} << 63}) {
    World world;
    EXPECT_TRUE(world.send(ids::hello, Payload::record(api::HelloRecord{ring::window_count, bytes})).broken) << bytes;
    EXPECT_EQ(world.driver.registered_bytes(), 0u);
  }
}

TEST_F(Records, PinsAreWholeHugePagesInside) {
  ASSERT_EQ(world.send(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 2 << 20})).result,
            CUDA_SUCCESS);
  const api::PinArenaRecord wrong[] = {{0, 0},
                                       {1, ring::huge_page},
                                       {4096, ring::huge_page},
                                       {2 << 20, 4096},
                                       {World::arena_bytes, ring::huge_page},
                                       {0, World::arena_bytes * 2},
                                       {most - ring::huge_page + 1, ring::huge_page},
                                       {ring::huge_page, most - ring::huge_page + 1},
                                       {1ULL << 63, 1ULL << 63}};
  for (const auto& pin : wrong) expect_broken(ids::pin_arena, Payload::record(pin));
  expect_error(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, ids::pin_arena,
               Payload::record(api::PinArenaRecord{0, 4 << 20}));
  EXPECT_EQ(world.send(ids::pin_arena, Payload::record(api::PinArenaRecord{2 << 20, 2 << 20})).result, CUDA_SUCCESS);
}

TEST_F(Records, AJoinTakesTheRegistrationsInsideAndNoOther) {
  expect_broken(ids::join_arena, Payload::record(api::PinArenaRecord{0, ring::huge_page}), "before hello");
  ASSERT_EQ(world.send(ids::hello, Payload::record(api::HelloRecord{ring::window_count, 4 << 20})).result,
            CUDA_SUCCESS);
  for (const api::PinArenaRecord wrong : {api::PinArenaRecord{0, 0},
                                          {1, ring::huge_page},
                                          {2 << 20, 4096},
                                          {World::arena_bytes, ring::huge_page},
                                          {ring::huge_page, most - ring::huge_page + 1},
                                          {1ULL << 63, 1ULL << 63}})
    expect_broken(ids::join_arena, Payload::record(wrong));
  const auto join = [&](std::uint64_t from, std::uint64_t to) {
    return world.send(ids::join_arena, Payload::record(api::PinArenaRecord{from << 20, (to - from) << 20})).result;
  };
  EXPECT_EQ(join(2, 6), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) << "one reaches out at its start";
  EXPECT_EQ(join(0, 2), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) << "one reaches out at its end";
  EXPECT_EQ(join(4, 6), CUDA_SUCCESS) << "nothing is inside";
  EXPECT_EQ(join(0, 8), CUDA_SUCCESS);
  EXPECT_EQ(join(0, 8), CUDA_SUCCESS) << "the same again";
  EXPECT_EQ(world.driver.registered_bytes(), std::size_t{8} << 20);
  EXPECT_EQ(world.session->memory.addresses.count(), 1u);
  EXPECT_TRUE(world.session->memory.addresses.contains(world.session->arena.address(), 8 << 20));
  world.driver.fail_next("cuMemHostRegister_v2", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(join(0, 8), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.session->memory.addresses.count(), 0u);
  EXPECT_EQ(join(0, 4), CUDA_SUCCESS);
}

// ---- memory and copies ---------------------------------------------------------------------------------------------

TEST_F(Records, MemoryThatIsNotTheSessionsIsNotFreed) {
  const std::uint64_t device = world.memory(64);
  for (const std::uint64_t at : {std::uint64_t{0}, device + 1, device - 1, most, std::uint64_t{0x7f0000000000}})
    expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuMemFree_v2, Payload::record(api::FreeRecord{at}));
  EXPECT_EQ(world.send(ids::cuMemFree_v2, Payload::record(api::FreeRecord{device})).result, CUDA_SUCCESS);
  expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuMemFree_v2, Payload::record(api::FreeRecord{device}));
}

constexpr int copies[] = {ids::cuMemcpyHtoD_v2, ids::cuMemcpyDtoH_v2, ids::cuMemcpyHtoDAsync_v2,
                          ids::cuMemcpyDtoHAsync_v2};

TEST_F(Records, CopiesFromOutsideTheArenaBreak) {
  const std::uint64_t device = world.memory(4096);
  const struct {
    std::uint64_t arena, bytes;
  } places[] = {{World::arena_bytes, 1},
                {World::arena_bytes - 1, 2},
                {most - 1, 1},
                {most - 4095, 4096},
                {1ULL << 63, 1},
                {0, World::arena_bytes + 1},
                {0, most},
                {1, most},
                {World::arena_bytes + 1, 0ULL}};
  for (const int call : copies)
    for (const auto& place : places)
      expect_broken(call, Payload::record(api::CopyRecord{device, place.arena, place.bytes, 0}));
}

TEST_F(Records, CopiesOfMemoryThatIsNotTheSessions) {
  const std::uint64_t device = world.memory(64);
  for (const int call : copies) {
    for (const std::uint64_t at : {device + 1, device - 1, std::uint64_t{0}, most, std::uint64_t{0x7f0000000000}})
      expect_error(CUDA_ERROR_INVALID_VALUE, call, Payload::record(api::CopyRecord{at, 0, 64, 0}));
    // The address is in this process. The driver would accept it as pageable memory.
    expect_error(CUDA_ERROR_INVALID_VALUE, call,
                 Payload::record(api::CopyRecord{reinterpret_cast<std::uint64_t>(&world), 0, 8, 0}));
    expect_error(CUDA_ERROR_INVALID_HANDLE, call, Payload::record(api::CopyRecord{device, 0, 64, world.event()}));
    expect_error(CUDA_ERROR_INVALID_HANDLE, call, Payload::record(api::CopyRecord{device, 0, 64, most}));
  }
}

TEST_F(Records, InlineCopiesHoldTheirBytes) {
  const std::uint64_t device = world.memory(128 << 10);
  for (const std::uint64_t bytes : {std::uint64_t{17}, std::uint64_t{64}, std::uint64_t{1} << 40, most, most - 7}) {
    expect_broken(ids::cuMemcpyHtoD_v2, Payload::record(api::CopyRecord{device, ring::absent, bytes, 0}).slot(1));
    expect_broken(ids::cuMemcpyHtoDAsync_v2, Payload::record(api::CopyRecord{device, ring::absent, bytes, 0}).slot(1));
  }
  expect_broken(ids::cuMemcpyHtoD_v2,
                Payload::record(api::CopyRecord{device, ring::absent, 8, 0}).slot(1).slot(2).slot(3));
  expect_broken(ids::cuMemcpyDtoH_v2, Payload::record(api::CopyRecord{device, ring::absent, ring::reply_bytes + 1, 0}));
  expect_broken(ids::cuMemcpyDtoH_v2, Payload::record(api::CopyRecord{device, ring::absent, most - 8, 0}));
  for (const int call :
       {ids::cuMemcpyHtoD_v2, ids::cuMemcpyDtoH_v2, ids::cuMemcpyHtoDAsync_v2, ids::cuMemcpyDtoHAsync_v2})
    for (const std::uint64_t then_wait : {std::uint64_t{2}, most})
      expect_broken(call, Payload::record(api::CopyRecord{device, 0, 64, 0, then_wait}));
  expect_broken(ids::cuMemcpyDtoHAsync_v2, Payload::record(api::CopyRecord{device, ring::absent, 8, 0}),
                "the bytes would come after the reply");
  const Answer a =
      world.send(ids::cuMemcpyDtoH_v2, Payload::record(api::CopyRecord{device, ring::absent, ring::reply_bytes, 0}));
  EXPECT_EQ(a.result, CUDA_SUCCESS);
  EXPECT_EQ(a.reply.size(), ring::reply_bytes);
}

TEST_F(Records, WordsLieInTheSessionsMemory) {
  const std::uint64_t at = world.memory(16);
  EXPECT_EQ(world.send(ids::cuStreamWriteValue32_v2, Payload::of(0, at + 12, 5, 0)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.send(ids::cuStreamWaitValue64_v2, Payload::of(0, at + 8, 5, 0)).result, CUDA_SUCCESS);
  for (const std::uint64_t bad :
       {at + 13, at + 16, at - 1, std::uint64_t{0}, most, reinterpret_cast<std::uint64_t>(&world)})
    expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuStreamWriteValue32_v2, Payload::of(0, bad, 5, 0));
  expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuStreamWaitValue64_v2, Payload::of(0, at + 9, 5, 0));
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuStreamWriteValue32_v2, Payload::of(world.event(), at, 5, 0));
  expect_broken(ids::cuStreamWriteValue32_v2, Payload::of(0, at, 1ULL << 32, 0), "a value that 32 bits do not hold");
}

CUstreamBatchMemOpParams operation(unsigned kind, std::uint64_t at) {
  CUstreamBatchMemOpParams op;
  std::memset(&op, 0, sizeof op);
  op.waitValue.address = at;
  op.waitValue.value64 = 5;
  std::memcpy(&op, &kind, sizeof kind);
  return op;
}

Payload batch(std::uint64_t stream, const std::vector<CUstreamBatchMemOpParams>& ops, std::uint64_t flags = 0) {
  const std::uint64_t bytes = ops.size() * sizeof(CUstreamBatchMemOpParams);
  return Payload::of(stream, ops.size(), bytes, flags).bytes(ops.data(), bytes);
}

constexpr unsigned wait32 = CU_STREAM_MEM_OP_WAIT_VALUE_32, write64 = CU_STREAM_MEM_OP_WRITE_VALUE_64,
                   barrier = CU_STREAM_MEM_OP_BARRIER;

TEST_F(Records, EachWordOfABatchLiesInTheSessionsMemory) {
  constexpr int call = ids::cuStreamBatchMemOp_v2;
  const std::uint64_t at = world.memory(16);
  const auto good = operation(wait32, at + 12);
  EXPECT_EQ(world.send(call, batch(0, {good, operation(write64, at + 8), operation(barrier, 0)})).result, CUDA_SUCCESS);
  EXPECT_EQ(world.send(call, Payload::of(0, 0, ring::absent, 0)).result, CUDA_SUCCESS) << "none";
  const std::uint64_t before = world.driver.calls("cuStreamBatchMemOp_v2");
  for (const std::uint64_t bad :
       {at + 13, at + 16, at - 4, std::uint64_t{0}, most, reinterpret_cast<std::uint64_t>(&world)}) {
    expect_error(CUDA_ERROR_INVALID_VALUE, call, batch(0, {operation(wait32, bad)}));
    expect_error(CUDA_ERROR_INVALID_VALUE, call, batch(0, {good, operation(write64, bad)}), "the second");
    expect_error(CUDA_ERROR_INVALID_VALUE, call, batch(0, {operation(write64, bad), good}), "the first");
  }
  expect_error(CUDA_ERROR_INVALID_VALUE, call, batch(0, {operation(write64, at + 12)}), "half of it");
  for (const unsigned kind : {0u, 7u, 99u, ~0u})
    expect_error(CUDA_ERROR_INVALID_VALUE, call, batch(0, {operation(kind, at)}), "no kind");
  expect_error(CUDA_ERROR_INVALID_HANDLE, call, batch(world.event(), {good}));
  EXPECT_EQ(world.driver.calls("cuStreamBatchMemOp_v2"), before);
}

// The strict driver aborts if a byte that an operation does not use is not zero.
TEST_F(Records, WhatAnOperationDoesNotUseNeverReachesTheDriver) {
  const std::uint64_t at = world.memory(16);
  for (const unsigned kind : {wait32, write64, barrier}) {
    CUstreamBatchMemOpParams op = operation(kind, at);
    op.waitValue.alias = reinterpret_cast<std::uint64_t>(&world);
    op.pad[5] = most;
    EXPECT_EQ(world.send(ids::cuStreamBatchMemOp_v2, batch(0, {op})).result, CUDA_SUCCESS) << kind;
  }
}

TEST_F(Records, BatchesOfWordsHaveTheirStatedLength) {
  constexpr int call = ids::cuStreamBatchMemOp_v2;
  const auto good = operation(wait32, world.memory(16));
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{1} << 31, most, most / 48 + 2})
    expect_broken(call, Payload::of(0, count, sizeof good, 0).bytes(&good, sizeof good), "another number");
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{47}, std::uint64_t{96}, most - 1})
    expect_broken(call, Payload::of(0, 1, length, 0).bytes(&good, sizeof good), "another length");
  expect_broken(call, Payload::of(0, 1, ring::absent, 0), "one, and nowhere");
  expect_broken(call, batch(0, {good}).slot(0), "bytes left over");
  expect_broken(call, batch(0, {good}, 1ULL << 32), "flags that 32 bits do not hold");
}

TEST_F(Records, PointersThatAreSetLieInTheSessionsMemory) {
  constexpr int call = ids::cuPointerSetAttribute;
  const std::uint64_t at = world.memory(16);
  EXPECT_EQ(world.send(call, Payload::record(api::SetPointerRecord{at + 15, 1})).result, CUDA_SUCCESS);
  for (const std::uint64_t bad : {at + 16, at - 1, std::uint64_t{0}, most, reinterpret_cast<std::uint64_t>(&world)})
    expect_error(CUDA_ERROR_INVALID_VALUE, call, Payload::record(api::SetPointerRecord{bad, 1}));
  for (const std::uint64_t value : {std::uint64_t{2}, most})
    expect_broken(call, Payload::record(api::SetPointerRecord{at, value}), "no truth value");
  EXPECT_TRUE(world.send_exactly(call, Payload::record(api::SetPointerRecord{at, 1}).cut(8)).broken);
}

constexpr int copies_of_rows[] = {ids::cuMemcpy3D_v2, ids::cuMemcpy3DAsync_v2};

TEST_F(Records, FillsOfRowsStayInTheSessionsMemory) {
  const std::uint64_t at = world.memory(4096);
  for (const int call : {ids::cuMemsetD2D8_v2, ids::cuMemsetD2D32Async}) {
    const auto fill = [&](std::uint64_t to, std::uint64_t pitch, std::uint64_t width, std::uint64_t rows,
                          std::uint64_t value = 1, std::uint64_t stream = 0) {
      const Payload slots = Payload::of(to, pitch, value, width, rows);
      return call == ids::cuMemsetD2D32Async ? Payload(slots).slot(stream) : slots;
    };
    EXPECT_EQ(world.send(call, fill(at, 64, 4, 8)).result, CUDA_SUCCESS);
    for (const Payload& bad :
         {fill(at, 64, 4, 1 << 20), fill(at, 1024, 4, 6), fill(at, most, 4, 2), fill(at, 64, most, 1),
          fill(at + 4090, 64, 8, 1), fill(at, 1ULL << 32, 4, 1ULL << 33), fill(0, 64, 4, 1), fill(at, 64, 0, 1),
          fill(at, 0, 4, 2), fill(reinterpret_cast<std::uint64_t>(&world), 64, 4, 1)})
      expect_error(CUDA_ERROR_INVALID_VALUE, call, bad);
    expect_broken(call, fill(at, 64, 4, 1, most), "a value that no element holds");
  }
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuMemsetD2D32Async, Payload::of(at, 64, 1, 4, 1, most));
}

TEST_F(Records, CopiesOfRowsStayInTheSessionsMemory) {
  const std::uint64_t at = world.memory(8192), here = reinterpret_cast<std::uint64_t>(&world);
  const api::RowsSide good{at, 64, 8}, half{at + 4096, 64, 8};
  for (const int call : copies_of_rows) {
    const auto record = [&](const api::RowsSide& to, const api::RowsSide& from, std::uint64_t width,
                            std::uint64_t height, std::uint64_t depth, std::uint64_t stream = 0) {
      return Payload::record(api::CopyRowsRecord{to, from, width, height, depth, stream});
    };
    EXPECT_EQ(world.send(call, record(half, good, 16, 8, 2)).result, CUDA_SUCCESS);
    for (const api::RowsSide& bad : {api::RowsSide{here, 64, 8},
                                     {0, 64, 8},
                                     {at + 8192, 64, 8},
                                     {at, most, 8},
                                     {at, 64, most},
                                     {at, 1ULL << 33, 1ULL << 33},
                                     {at - 1, 64, 8}}) {
      expect_error(CUDA_ERROR_INVALID_VALUE, call, record(bad, good, 16, 8, 2));
      expect_error(CUDA_ERROR_INVALID_VALUE, call, record(half, bad, 16, 8, 2));
    }
    expect_error(CUDA_ERROR_INVALID_VALUE, call, record(half, good, 16, 8, 1 << 20));
    expect_error(CUDA_ERROR_INVALID_VALUE, call, record(half, good, 16, 1 << 20, 1));
    expect_error(CUDA_ERROR_INVALID_VALUE, call, record(half, good, 0, 8, 2));
    expect_error(CUDA_ERROR_INVALID_HANDLE, call, record(half, good, 16, 8, 2, world.event()));
    expect_broken(call, record({at, 0, 8}, good, 16, 1ULL << 40, 1), "to the driver 0 is no pitch");
    expect_broken(call, record(half, {at, 8, 8}, 16, 8, 1), "rows that overlap");
    expect_broken(call, record(half, {at, 64, 0}, 16, 8, 2), "slices that overlap");
    expect_broken(call, record(half, good, most, 8, 2));
  }
}

// ---- modules -------------------------------------------------------------------------------------------------------

class Loads : public Records {
 protected:
  api::LoadRecord record(std::uint32_t parts = 1, std::uint32_t options = 0, std::uint32_t form = 0) {
    return {world.next(Handle::Module), ring::absent, form, parts, options, 0};
  }
};

TEST_F(Loads, PartsAreCountedAndSized) {
  expect_broken(ids::cuModuleLoadData, Payload::record(record(0)), "none");
  expect_broken(ids::cuModuleLoadData, Payload::record(record(4097)), "too many");
  expect_broken(ids::cuModuleLoadData, Payload::record(record(~0u)), "too many");
  expect_broken(ids::cuModuleLoadData, Payload::record(record(2)).slot(8).slot(8).slot(0).slot(0), "plain is one part");
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{25}, std::uint64_t{1} << 31, most, most - 7})
    expect_broken(ids::cuModuleLoadData, Payload::record(record()).slot(size).slot(0).slot(0), "size");
  expect_broken(ids::cuModuleLoadData,
                Payload::record(record(2, 0, 2)).slot(1ULL << 63).slot(1ULL << 63).slot(0).slot(0), "sum");
  for (const std::uint32_t form : {3u, 255u, ~0u})
    expect_broken(ids::cuModuleLoadData, Payload::record(record(1, 0, form)).slot(8).slot(0), "form");
}

TEST_F(Loads, ImagesInTheArenaLieInside) {
  for (const std::uint64_t arena :
       {std::uint64_t{World::arena_bytes}, std::uint64_t{World::arena_bytes} - 8, most - 1}) {
    api::LoadRecord r = record();
    r.arena = arena;
    expect_broken(ids::cuModuleLoadData, Payload::record(r).slot(16));
    expect_broken(ids::cuModuleLoadData, Payload::record(r).slot(1 << 30));
  }
  api::LoadRecord r = record();
  r.arena = 4096;
  std::byte* at = world.session->arena.bytes_at(4096, 100).write_only(0);
  std::strcpy(reinterpret_cast<char*>(at), module_text);
  EXPECT_EQ(world.send(ids::cuModuleLoadData, Payload::record(r).slot(std::strlen(module_text) + 1)).result,
            CUDA_SUCCESS);
}

TEST_F(Loads, TextWithoutItsNulStillEnds) {
  const std::string text = std::string(module_text) + std::string(8 - std::strlen(module_text) % 8, ' ');
  EXPECT_EQ(
      world.send(ids::cuModuleLoadData, Payload::record(record()).slot(text.size()).bytes(text.data(), text.size()))
          .result,
      CUDA_SUCCESS);
}

TEST_F(Loads, OptionsThatHoldPointersBreak) {
  for (unsigned option = 0; option < 64; ++option) {
    if (api::crosses_boundary(static_cast<CUjit_option>(option))) continue;
    expect_broken(ids::cuModuleLoadDataEx,
                  Payload::record(record(1, 1)).slot(16).slot(option).slot(0x4141414141414141).slot(0).slot(0),
                  "option " + std::to_string(option));
  }
  expect_broken(ids::cuModuleLoadDataEx, Payload::record(record(1, api::max_jit_options + 1)).slot(8).slot(0));
  expect_broken(ids::cuModuleLoadDataEx, Payload::record(record(1, ~0u)).slot(8).slot(0));
  expect_broken(ids::cuModuleLoadDataEx, Payload::record(record(1, 32)).slot(8).slot(0), "options missing");
}

// The worker passes its own log buffers, regardless of the pointers and sizes in the record.
TEST_F(Loads, LogBuffersAreNeverTheGuests) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100}, most}) {
    Payload p = Payload::record(record(1, 5));
    p.slot(std::strlen(module_text) + 1);
    for (const CUjit_option o : {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                                 CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES})
      p.slot(o);
    for (const std::uint64_t v : {std::uint64_t{0x4141414141414141}, size, most, size, std::uint64_t{3}}) p.slot(v);
    const Answer a = world.send(ids::cuModuleLoadDataEx, p.text(module_text));
    EXPECT_EQ(a.result, CUDA_SUCCESS) << size;
    EXPECT_EQ(a.read<std::uint64_t>(0), 0u);  // the reply contains no address of the worker
    EXPECT_EQ(a.read<std::uint64_t>(16), 0u);
  }
}

TEST_F(Loads, NamesEndWithTheirOnlyNul) {
  const std::uint64_t module = world.module(), library = world.library();
  const auto lookup = [&](std::uint64_t from, const void* name, std::size_t bytes, std::uint64_t said) {
    return Payload::record(api::LookupRecord{from, world.next(Handle::Function), said}).bytes(name, bytes);
  };
  expect_broken(ids::cuModuleGetFunction, lookup(module, "fill", 4, 4), "without NUL");
  expect_broken(ids::cuModuleGetFunction, lookup(module, "fi\0l", 5, 5), "a NUL inside");
  expect_broken(ids::cuModuleGetFunction, lookup(module, "", 0, 0), "no name");
  for (const std::uint64_t said : {std::uint64_t{17}, std::uint64_t{4096}, most, most - 7})
    expect_broken(ids::cuModuleGetFunction, lookup(module, "fill", 5, said), "length");
  expect_broken(ids::cuLibraryGetKernel, lookup(library, "fill", 4, 4), "without NUL");
  expect_broken(ids::cuModuleGetGlobal_v2, Payload::record(api::GlobalRecord{module, 7}).bytes("counter", 7));
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuModuleGetFunction, lookup(library, "fill", 5, 5));
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuLibraryGetKernel, lookup(module, "fill", 5, 5));
  expect_error(CUDA_ERROR_NOT_FOUND, ids::cuModuleGetFunction, lookup(module, "none", 5, 5));
}

// A long name arrives in the arena, for one lookup. The worker copies the name once, and does not trust its length.
TEST_F(Loads, LongNamesAreBroughtForOneLookup) {
  const std::uint64_t module = world.module(), library = world.library();
  const std::string name = "fill" + std::string(70'000, 'x');  // begins like the name of the fake driver's kernel
  const std::uint64_t bytes = name.size() + 1;
  const ring::SharedBytes arena = world.session->arena.bytes_at(0, World::arena_bytes);
  arena.copy_in(4096, name.c_str(), bytes);
  const auto brought = [](std::uint64_t at, std::uint64_t length) {
    return Payload::record(api::BringNameRecord{at, length});
  };
  const auto lookup = [&](std::uint64_t from, Handle kind) {
    return Payload::record(api::LookupRecord{from, world.next(kind), 0});
  };
  EXPECT_EQ(world.send(ids::bring_name, brought(4096, bytes)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.send(ids::cuModuleGetFunction, lookup(module, Handle::Function)).result, CUDA_SUCCESS);
  expect_broken(ids::cuModuleGetFunction, lookup(module, Handle::Function), "it was for one lookup");
  EXPECT_EQ(world.send(ids::bring_name, brought(4096, bytes)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.send(ids::cuLibraryGetKernel, lookup(library, Handle::Kernel)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.send(ids::bring_name, brought(4096, bytes)).result, CUDA_SUCCESS);
  expect_error(CUDA_ERROR_NOT_FOUND, ids::cuModuleGetGlobal_v2, Payload::record(api::GlobalRecord{module, 0}));

  for (const std::uint64_t length : {std::uint64_t{0}, bytes - 1, bytes + 1, api::max_name + 1, most})
    expect_broken(ids::bring_name, brought(4096, length), "a length that lies");
  for (const std::uint64_t at : {World::arena_bytes - bytes + 8, World::arena_bytes, ring::absent, most - 8})
    expect_broken(ids::bring_name, brought(at, bytes), "outside of the arena");
  arena.copy_in(8192, "", 1);
  expect_broken(ids::bring_name, brought(4096, bytes), "a NUL inside");
  expect_broken(ids::cuModuleGetFunction, lookup(module, Handle::Function), "none was brought");
  EXPECT_EQ(world.send(ids::bring_name, brought(8192, 1)).result, CUDA_SUCCESS);
  expect_broken(ids::cuModuleGetFunction, lookup(module, Handle::Function), "an empty one");
}

TEST_F(Loads, NamesAreTakenInPieces) {
  const std::uint64_t f = world.function(world.module(), "nothing"), k = world.kernel(world.library(), "nothing");
  const auto piece = [](std::uint64_t function, std::uint64_t kernel, std::uint64_t offset, std::uint64_t room) {
    return Payload::record(api::TakeNameRecord{function, kernel, offset, room});
  };
  const Answer whole = world.send(ids::take_name, piece(f, 0, 0, 100));
  EXPECT_EQ(whole.read<std::uint64_t>(), 7u);
  EXPECT_EQ(std::memcmp(whole.reply.data() + 8, "nothing", 7), 0);
  const Answer part = world.send(ids::take_name, piece(0, k, 2, 3));
  EXPECT_EQ(part.read<std::uint64_t>(), 3u);
  EXPECT_EQ(std::memcmp(part.reply.data() + 8, "thi", 3), 0);
  for (const std::uint64_t beyond : {std::uint64_t{7}, std::uint64_t{8}, most})
    EXPECT_EQ(world.send(ids::take_name, piece(f, 0, beyond, 3)).read<std::uint64_t>(), 0u);
  expect_broken(ids::take_name, piece(0, 0, 0, 3), "of nothing");
  expect_broken(ids::take_name, piece(f, k, 0, 3), "of both");
  expect_broken(ids::take_name, piece(f, 0, 0, api::max_name_piece + 1), "more than a piece");
  EXPECT_EQ(world.send(ids::take_name, piece(k, 0, 0, 3)).read<std::uint64_t>(), 3u) << "a kernel is a function, too";
  for (const std::uint64_t wrong : {world.module(), world.stream(), most, f + 64})
    expect_error(CUDA_ERROR_INVALID_HANDLE, ids::take_name, piece(wrong, 0, 0, 3), std::to_string(wrong));
}

TEST_F(Loads, ListsEndWhereTheyEnd) {
  const std::uint64_t module = world.module(), library = world.library();
  const auto part = [&](std::uint64_t from, Handle kind, std::uint64_t which) {
    return Payload::record(api::PartRecord{from, world.next(kind), which});
  };
  EXPECT_EQ(world.send(ids::cuModuleEnumerateFunctions, part(module, Handle::Function, 2)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.send(ids::cuLibraryEnumerateKernels, part(library, Handle::Kernel, 0)).result, CUDA_SUCCESS);
  for (const std::uint64_t beyond : {std::uint64_t{3}, std::uint64_t{UINT32_MAX}}) {
    expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuModuleEnumerateFunctions, part(module, Handle::Function, beyond));
    expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuLibraryEnumerateKernels, part(library, Handle::Kernel, beyond));
  }
  expect_broken(ids::cuModuleEnumerateFunctions, part(module, Handle::Function, std::uint64_t{1} << 32), "place");
  expect_broken(ids::cuModuleEnumerateFunctions, part(module, Handle::Kernel, 0), "another kind");
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuModuleEnumerateFunctions, part(library, Handle::Function, 0));
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuLibraryEnumerateKernels, part(module, Handle::Kernel, 0));
}

TEST_F(Loads, IdsOfAnotherKindBreak) {
  const std::uint64_t module = world.module();
  expect_broken(ids::cuModuleLoadData, world.load(world.next(Handle::Stream)));
  expect_broken(ids::cuModuleLoadData, world.load(module), "taken");
  expect_broken(ids::cuLibraryLoadData, world.load(world.next(Handle::Module)));
  expect_broken(ids::cuModuleGetFunction, world.lookup(module, world.next(Handle::Kernel), "fill"));
  expect_broken(ids::cuModuleGetFunction, world.lookup(module, 0, "fill"));
}

TEST_F(Loads, WhatAModuleHadGoesWithIt) {
  const std::uint64_t module = world.module(), f = world.function(module, "nothing");
  const Payload find_global = Payload::record(api::GlobalRecord{module, 8}).text("counter");
  const auto global = world.send(ids::cuModuleGetGlobal_v2, find_global).read<api::GlobalReply>();
  EXPECT_EQ(global.bytes, 16u);
  expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuMemFree_v2, Payload::record(api::FreeRecord{global.address}));
  EXPECT_EQ(world.send(ids::cuMemsetD8_v2, Payload::of(global.address, 1, 16)).result, CUDA_SUCCESS);
  ASSERT_EQ(world.send(ids::cuModuleUnload, Payload::record(api::CloseRecord{module})).result, CUDA_SUCCESS);
  expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuMemsetD8_v2, Payload::of(global.address, 1, 16));
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuModuleUnload, Payload::record(api::CloseRecord{module}));
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuFuncLoad, Payload::of(f));
}

// ---- launches ------------------------------------------------------------------------------------------------------

class Launches : public Records {
 protected:
  std::uint64_t module_ = world.module();
  std::uint64_t fill_ = world.function(module_, "fill");
  std::uint64_t device_ = world.memory(64);

  api::LaunchRecord record() const { return {fill_, 0, {1, 1, 1}, {32, 1, 1}, 0, 16, 0, 0}; }
  Payload params(Payload p) const { return p.slot(device_).slot(16 | 5ULL << 32); }
};

TEST_F(Launches, AWholeOne) {
  EXPECT_EQ(world.send(ids::cuLaunchKernel, params(Payload::record(record()))).result, CUDA_SUCCESS);
  EXPECT_EQ(*reinterpret_cast<std::uint32_t*>(device_), 5u);
}

TEST_F(Launches, AMisalignedAddressIsAFaultOfTheKernel) {
  const Payload p = Payload::record(record()).slot(device_ + 1).slot(8 | 5ULL << 32);
  EXPECT_EQ(world.send(ids::cuLaunchKernel, p).result, CUDA_SUCCESS);
  EXPECT_EQ(world.send(ids::cuCtxSynchronize, Payload{}).result, CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_F(Launches, ParametersOfAnotherLengthBreak) {
  for (const std::uint32_t bytes : {33u, 4096u, 65536u, 0x7fffffffu, ~0u, ~0u - 7}) {
    api::LaunchRecord r = record();
    r.param_bytes = bytes;
    expect_broken(ids::cuLaunchKernel, params(Payload::record(r)));
  }
  api::LaunchRecord none = record();
  none.param_bytes = 0;
  expect_broken(ids::cuLaunchKernel, params(Payload::record(none)), "bytes left over");
  expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuLaunchKernel, Payload::record(none), "the kernel wants 16");
}

TEST_F(Launches, HandlesOfOthers) {
  for (const std::uint64_t f : {std::uint64_t{0}, module_, world.stream(), fill_ + 16, most}) {
    api::LaunchRecord r = record();
    r.function = f;
    expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuLaunchKernel, params(Payload::record(r)));
  }
  for (const std::uint64_t s : {std::uint64_t{3}, fill_, most}) {
    api::LaunchRecord r = record();
    r.stream = s;
    expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuLaunchKernel, params(Payload::record(r)));
  }
}

TEST_F(Launches, AttributesThatDoNotCrossOrAreTooManyBreak) {
  for (unsigned id = 0; id < 40; ++id) {
    CUlaunchAttribute attribute{};
    std::memcpy(&attribute.id, &id, sizeof attribute.id);
    // An access policy window and a completion event have padding, which must be 0.
    const bool has_padding = attribute.id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
                             attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    std::memset(&attribute.value, has_padding ? 0 : 0x41, sizeof attribute.value);
    api::LaunchRecord r = record();
    r.attributes = 1;
    const Answer a = world.send(ids::cuLaunchKernelEx, params(Payload::record(r).bytes(&attribute, sizeof attribute)));
    EXPECT_EQ(a.broken, !api::crosses_boundary(static_cast<CUlaunchAttributeID>(id))) << id;
  }
  for (const std::uint32_t count : {2u, api::max_launch_attributes + 1, 0x4000000u, ~0u}) {
    api::LaunchRecord r = record();
    r.attributes = count;
    expect_broken(ids::cuLaunchKernelEx, params(Payload::record(r)));
  }
}

TEST_F(Launches, EventsOfOthers) {
  for (const auto tag : {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT}) {
    api::LaunchRecord r = record();
    r.attributes = 1;
    for (const std::uint64_t event : {std::uint64_t{0}, world.stream(), fill_, most}) {
      CUlaunchAttribute attribute{};
      attribute.id = tag;
      std::memcpy(&attribute.value, &event, sizeof event);
      expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuLaunchKernelEx,
                   params(Payload::record(r).bytes(&attribute, sizeof attribute)));
    }
  }
}

TEST_F(Launches, QuestionsAboutClusters) {
  constexpr auto call = ids::cuOccupancyMaxActiveClusters;
  api::LaunchRecord good = record();
  good.param_bytes = 0;
  EXPECT_EQ(world.send(call, Payload::record(good)).result, CUDA_SUCCESS);
  expect_broken(call, params(Payload::record(record())), "parameters, to a question");
  expect_broken(call, Payload::record(good).slot(0).slot(0), "bytes left over");
  api::LaunchRecord r = good;
  r.attributes = api::max_launch_attributes + 1;
  expect_broken(call, Payload::record(r));
  r.attributes = 1;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  expect_broken(call, Payload::record(r).bytes(&attribute, sizeof attribute), "an attribute that does not cross");
  for (const std::uint64_t f : {std::uint64_t{0}, module_, world.stream(), fill_ + 16, most}) {
    r = good;
    r.function = f;
    expect_error(CUDA_ERROR_INVALID_HANDLE, call, Payload::record(r));
  }
}

// Unused fields must be 0, since a later version may define them.
TEST_F(Records, PaddingThatHoldsSomethingBreaks) {
  const std::uint64_t function = world.function(world.module(), "nothing");
  expect_broken(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{64, 1, 0, 0}), "rows");
  expect_broken(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{64, 0, 4, 0}), "elements");
  expect_broken(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{64, 0, 0, 1}));
  expect_broken(ids::cuMemAllocPitch_v2, Payload::record(api::AllocateRecord{64, 2, 4, 1}));
  expect_broken(ids::cuLaunchKernel, Payload::record(api::LaunchRecord{function, 0, {1, 1, 1}, {1, 1, 1}, 0, 0, 0, 2}));
  const api::LoadRecord load{world.next(Handle::Module), ring::absent, 0, 1, 0, 1};
  expect_broken(ids::cuModuleLoadData, Payload::record(load).slot(std::strlen(module_text) + 1).text(module_text));
  EXPECT_EQ(world.send(ids::cuMemAllocPitch_v2, Payload::record(api::AllocateRecord{64, 2, 4, 0})).result,
            CUDA_SUCCESS);
}

TEST_F(Records, ResetsOfDevicesThatAreNone) {
  for (const std::uint64_t device : {std::uint64_t{ring::max_devices}, std::uint64_t{1} << 32, most})
    expect_broken(ids::cuDevicePrimaryCtxReset_v2, Payload::record(api::EndContextRecord{device}));
  expect_error(CUDA_ERROR_INVALID_DEVICE, ids::cuDevicePrimaryCtxReset_v2, Payload::record(api::EndContextRecord{3}));
  const std::uint64_t stream = world.stream(), memory = world.memory(16);
  EXPECT_EQ(world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::record(api::EndContextRecord{0})).result,
            CUDA_SUCCESS);
  expect_error(CUDA_ERROR_INVALID_HANDLE, ids::cuStreamSynchronize, Payload::of(stream));
  expect_error(CUDA_ERROR_INVALID_VALUE, ids::cuMemFree_v2, Payload::record(api::FreeRecord{memory}));
}

// Truncates each CUSTOM record at each word, with and without the data that follow the record.
TEST_F(Records, EveryCustomRecordTruncatedAnywhereBreaksOrFails) {
  const std::uint64_t module = world.module(), library = world.library();
  const std::pair<int, Payload> whole[] = {
      {ids::cuModuleLoadData, world.load(world.next(Handle::Module))},
      {ids::cuLibraryLoadData, world.load(world.next(Handle::Library))},
      {ids::cuModuleGetFunction, world.lookup(module, world.next(Handle::Function), "fill")},
      {ids::cuLibraryGetKernel, world.lookup(library, world.next(Handle::Kernel), "fill")},
      {ids::cuModuleGetGlobal_v2, Payload::record(api::GlobalRecord{module, 8}).text("counter")},
      {ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{64, 0, 0, 0})},
      {ids::cuMemcpyHtoD_v2, Payload::record(api::CopyRecord{world.memory(64), ring::absent, 64, 0}).cut(40 + 64)},
      {ids::cuModuleUnload, Payload::record(api::CloseRecord{module})},
      {ids::hello, Payload::record(api::HelloRecord{ring::window_count, 0})},
  };
  for (const auto& [call, payload] : whole)
    for (std::size_t n = 0; n < payload.size(); ++n) {
      const Answer a = world.send_exactly(call, Payload(payload).cut(n));
      EXPECT_TRUE(a.broken) << call << " with " << n << " of " << payload.size();
    }
}

// ---- random records ------------------------------------------------------------------------------------------------

// Sends random records of every call. Each word is one of the session's ids or addresses, or an extreme number. The
// strict driver must not abort, and no memory outside the record may be touched.
TEST(AnyRecord, NeverReachesTheDriverWithWhatIsNotTheSessions) {
  std::minstd_rand random(11);
  // The number of words in a whole record: parameters, or the struct of ring/api/records.h.
  const std::map<int, std::size_t> custom = {{ids::cuMemAlloc_v2, 3},
                                             {ids::cuMemAllocPitch_v2, 3},
                                             {ids::cuMemFree_v2, 1},
                                             {ids::cuMemcpyHtoD_v2, 4},
                                             {ids::cuMemcpyDtoH_v2, 4},
                                             {ids::cuMemcpyHtoDAsync_v2, 4},
                                             {ids::cuMemcpyDtoHAsync_v2, 4},
                                             {ids::cuKernelGetFunction, 2},
                                             {ids::cuLibraryGetModule, 2},
                                             {ids::cuModuleGetFunction, 3},
                                             {ids::cuLibraryGetKernel, 3},
                                             {ids::cuModuleEnumerateFunctions, 3},
                                             {ids::cuLibraryEnumerateKernels, 3},
                                             {ids::cuModuleGetGlobal_v2, 2},
                                             {ids::cuLibraryGetGlobal, 2},
                                             {ids::cuModuleLoadData, 4},
                                             {ids::cuLibraryLoadData, 4},
                                             {ids::cuLaunchKernel, 9},
                                             {ids::pin_arena, 2},
                                             {ids::cuArrayDestroy, 1},
                                             {ids::cuTexObjectDestroy, 1},
                                             {ids::cuSurfObjectCreate, 2},
                                             {ids::cuSurfObjectDestroy, 1},
                                             {ids::cuModuleGetTexRef, 3},
                                             {ids::cuModuleGetSurfRef, 3},
                                             {ids::cuLinkCreate_v2, 2},
                                             {ids::cuLinkComplete, 1},
                                             {ids::cuLinkDestroy, 1},
                                             {ids::take_image, 3},
                                             {ids::exclude, 2}};
  std::vector<std::pair<int, std::size_t>> calls(custom.begin(), custom.end());
  for (const Line& line : lines) calls.emplace_back(line.id, line.arity);
  std::uint64_t passed = 0;
  std::map<int, std::uint64_t> passed_whole;
  for (int round = 0; round < 40; ++round) {
    World world;
    const std::uint64_t module = world.module(), library = world.library();
    ASSERT_EQ(world.send(1000, Payload::record(api::HelloRecord{ring::window_count, 2 << 20})).result, CUDA_SUCCESS);
    std::vector<std::uint64_t> words = {0,
                                        1,
                                        2,
                                        3,
                                        4,
                                        8,
                                        12,
                                        16,
                                        64,
                                        255,
                                        4096,
                                        1ULL << 31,
                                        1ULL << 32,
                                        1ULL << 47,
                                        1ULL << 63,
                                        most,
                                        most - 1,
                                        most - 7,
                                        most - 4095,
                                        0x7f0000000000,
                                        ring::huge_page,
                                        World::arena_bytes,
                                        module,
                                        library};
    for (int i = 0; i < 2; ++i) {
      words.push_back(world.stream()), words.push_back(world.event());
      words.push_back(world.memory(4096));
      words.push_back(words.back() + 4088);
      words.push_back(world.function(module, i == 0 ? "fill" : "nothing"));
      words.push_back(world.kernel(library, "fill"));
      words.push_back(world.next(Handle::Stream)), words.push_back(world.next(Handle::Event));
      words.push_back(world.next(Handle::Function)), words.push_back(world.next(Handle::Module));
    }
    words.push_back(world.session->arena.address());
    Seeds seeds(world, module);
    words.insert(words.end(), seeds.words().begin(), seeds.words().end());
    const auto any = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    for (int i = 0; i < 3000; ++i) {
      const auto& [call, whole] = calls[any(calls.size())];
      Payload p;
      for (std::size_t n = any(4) == 0 ? any(14) : whole; n > 0; --n)
        p.slot(any(10) == 0 ? words[any(words.size())] | words[any(words.size())] << 32 : words[any(words.size())]);
      if (any(4) == 0) p.text(any(2) == 0 ? "fill" : module_text);
      const auto flags = static_cast<std::uint16_t>(any(8) == 0 ? ring::flag_per_thread : 0);
      passed += world.send(call, p, flags).result == CUDA_SUCCESS;
      // A valid record with at most one changed word.
      const Seeds::Whole& one = seeds.whole()[any(seeds.whole().size())];
      Payload changed = any(8) == 0 ? one.payload : seeds.fresh(one);
      if (any(2) == 0) changed = Seeds::changed(changed, any(changed.size() / 8), words[any(words.size())]);
      passed_whole[one.call] += world.send(one.call, changed).result == CUDA_SUCCESS;
    }
  }
  EXPECT_GT(passed, 1000u);  // enough valid records, so that the test is meaningful
  for (const auto& [call, count] : passed_whole) EXPECT_GT(count, 0u) << call;
}

}  // namespace
