// Green contexts and resources in the worker. The driver gets back exactly its own bytes, a green context ends with its
// objects, and invalid records end the session. The strict fake driver aborts on a resource that it never issued, and
// when a green context ends while it is current in a thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;
constexpr unsigned first = ring::first_created_context;

class GreenContexts : public testing::Test {
 protected:
  using Split = api::SplitResourceRecord;

  CUdevResource all() {
    const Answer a = world.send(ids::cuDeviceGetDevResource,
                                Payload::of(0, sizeof(CUdevResource), std::uint64_t{CU_DEV_RESOURCE_TYPE_SM}));
    EXPECT_EQ(a.result, CUDA_SUCCESS);
    return a.read<CUdevResource>();
  }
  Answer split(const Split& record) { return world.send(ids::cuDevSmResourceSplitByCount, Payload::record(record)); }
  // Splits the resource into two groups of the minimum size and the rest.
  std::vector<CUdevResource> parts() {
    const Answer a = split(three_parts());
    EXPECT_EQ(a.result, CUDA_SUCCESS);
    std::vector<CUdevResource> parts;
    for (std::size_t i = 0; i < 3; ++i)
      parts.push_back(a.read<CUdevResource>(sizeof(api::SplitResourceReply) + i * sizeof(CUdevResource)));
    return parts;
  }
  Split three_parts() {
    return {.input = api::resource_id(all()),
            .groups = 2,
            .least = 1,
            .flags = 0,
            .wants = Split::wants_groups | Split::wants_rest};
  }
  Answer describe(std::uint64_t id, const std::vector<CUdevResource>& resources) {
    Payload p = Payload::of(id, resources.size() * sizeof(CUdevResource), resources.size());
    return world.send(ids::cuDevResourceGenerateDesc,
                      p.bytes(resources.data(), resources.size() * sizeof(CUdevResource)));
  }
  std::uint64_t description() {
    const std::uint64_t id = world.next(Handle::ResourceDesc);
    EXPECT_EQ(describe(id, {parts()[0]}).result, CUDA_SUCCESS);
    return id;
  }
  api::CreateGreenContextRecord good(unsigned number = first) {
    return {
        .description = description(), .number = number, .device = 0, .flags = CU_GREEN_CTX_DEFAULT_STREAM, .pad = 0};
  }
  CUresult create(unsigned number) { return world.send(ids::cuGreenCtxCreate, Payload::record(good(number))).result; }
  Answer destroy(std::uint64_t number) {
    return world.send(ids::cuGreenCtxDestroy, Payload::record(api::EndContextRecord{number}), flags_);
  }
  // Sends a record as a channel does: enters the context before the record, and leaves the context afterwards.
  Answer send(int call, const Payload& payload) {
    EXPECT_EQ(world.session->contexts.make_current(ring::context_of(flags_)), CUDA_SUCCESS);
    Answer a = world.send(call, payload, flags_);
    world.session->contexts.let_go_of_green();
    return a;
  }
  void enter(unsigned number) { flags_ = ring::context_flags(number); }
  std::uint64_t stream() {
    const std::uint64_t id = world.next(Handle::Stream);
    EXPECT_EQ(send(ids::cuStreamCreate, Payload::of(id, 0)).result, CUDA_SUCCESS);
    return id;
  }
  std::uint64_t stream_of(unsigned number) {
    const std::uint64_t id = world.next(Handle::Stream);
    EXPECT_EQ(send(ids::cuGreenCtxStreamCreate, Payload::of(id, number, CU_STREAM_NON_BLOCKING, 0)).result,
              CUDA_SUCCESS);
    return id;
  }
  CUresult synchronize(std::uint64_t stream) { return send(ids::cuStreamSynchronize, Payload::of(stream)).result; }

  World world;

 private:
  std::uint16_t flags_ = 0;
};

TEST_F(GreenContexts, AResourceCrossesWithAnIdInPlaceOfTheDriversBytes) {
  const CUdevResource resource = all();
  EXPECT_EQ(resource.type, CU_DEV_RESOURCE_TYPE_SM);
  EXPECT_EQ(resource.sm.smCount, 16U);
  CUdevResource shown = resource;
  api::set_resource_id(shown, 0);
  const auto* hidden = reinterpret_cast<const unsigned char*>(shown._internal_padding);
  EXPECT_EQ(std::count(hidden, hidden + sizeof shown._internal_padding, 0), sizeof shown._internal_padding);
  EXPECT_EQ(api::resource_id(resource), api::resource_id(all())) << "the same bytes have one id";
  EXPECT_EQ(Id::of(api::resource_id(resource)).kind, Handle::Resource);
}

TEST_F(GreenContexts, ASplitGivesPartsAndTheRest) {
  const std::vector<CUdevResource> three = parts();
  EXPECT_EQ(three[0].sm.smCount, 4U);
  EXPECT_EQ(three[2].sm.smCount, 8U);
  EXPECT_NE(api::resource_id(three[0]), api::resource_id(three[1]));
  Split record = three_parts();
  record.least = 8;
  const Answer halves = split(record);  // no multiprocessors remain
  const auto rest = halves.read<CUdevResource>(sizeof(api::SplitResourceReply) + 2 * sizeof(CUdevResource));
  EXPECT_EQ(rest.type, CU_DEV_RESOURCE_TYPE_INVALID);
  EXPECT_EQ(api::resource_id(rest), 0U);
  record.wants = 0;
  const Answer asked = split(record);
  EXPECT_EQ(asked.read<api::SplitResourceReply>().groups, 2U);
  EXPECT_EQ(asked.reply.size(), sizeof(api::SplitResourceReply));
  record.wants = Split::wants_groups, record.groups = 0;
  EXPECT_EQ(split(record).result, CUDA_ERROR_INVALID_VALUE);
}

// If a program changes its copy, the changes do not reach the driver. An unknown id is refused.
TEST_F(GreenContexts, ResourcesAreTheSessions) {
  std::vector<CUdevResource> changed{parts()[0]};
  changed[0].sm.smCount = 1 << 20;
  std::memset(changed[0]._oversize + sizeof(CUdevSmResource), 0xff,
              sizeof changed[0]._oversize - sizeof(CUdevSmResource));
  EXPECT_EQ(describe(world.next(Handle::ResourceDesc), changed).result, CUDA_SUCCESS);
  for (const std::uint64_t none : {std::uint64_t{0}, std::uint64_t{1}, world.event(), ~std::uint64_t{0},
                                   Id{Handle::Resource, Id::first_of_worker + 1000, 0}.value()}) {
    api::set_resource_id(changed[0], none);
    EXPECT_EQ(describe(world.next(Handle::ResourceDesc), changed).result, CUDA_ERROR_INVALID_RESOURCE_TYPE) << none;
    Split record = three_parts();
    record.input = none;
    EXPECT_EQ(split(record).result, CUDA_ERROR_INVALID_RESOURCE_TYPE) << none;
  }
  changed[0] = parts()[0];
  changed[0].type = CU_DEV_RESOURCE_TYPE_INVALID;
  EXPECT_EQ(describe(world.next(Handle::ResourceDesc), changed).result, CUDA_ERROR_INVALID_RESOURCE_TYPE);
}

TEST_F(GreenContexts, RecordsOfResourcesThatBreak) {
  EXPECT_TRUE(describe(world.next(Handle::ResourceDesc), {}).broken) << "none, at which the driver would crash";
  Split record = three_parts();
  record.groups = api::max_split_groups + 1;
  EXPECT_TRUE(split(record).broken) << "more groups than a reply has room for";
  record = three_parts();
  record.wants = 4;
  EXPECT_TRUE(split(record).broken);
  const std::uint64_t bytes = sizeof(CUdevResource);
  EXPECT_TRUE(world.send(ids::cuDeviceGetDevResource, Payload::of(0, bytes - 8, 1)).broken) << "another length";
  EXPECT_TRUE(
      world.send(ids::cuDevResourceGenerateDesc, Payload::of(world.next(Handle::ResourceDesc), bytes, 2)).broken);
}

TEST_F(GreenContexts, TakeAlongTheirStreamsAndNothingElse) {
  const std::uint64_t below = stream();
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  ASSERT_EQ(create(first + 1), CUDA_SUCCESS);
  enter(first);
  const std::uint64_t in = stream(), event = world.next(Handle::Event);
  EXPECT_EQ(send(ids::cuEventCreate, Payload::of(event, 0)).result, CUDA_SUCCESS);
  const Answer memory = send(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{64, 0, 0, 0}));
  enter(0);
  const std::uint64_t named = stream_of(first), beside = stream_of(first + 1);
  EXPECT_EQ(destroy(first).result, CUDA_SUCCESS);
  EXPECT_EQ(synchronize(in), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(synchronize(named), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(synchronize(beside), CUDA_SUCCESS);
  EXPECT_EQ(synchronize(below), CUDA_SUCCESS);
  EXPECT_EQ(send(ids::cuEventQuery, Payload::of(event)).result, CUDA_SUCCESS);
  const auto at = memory.read<api::AllocateReply>().address;
  EXPECT_EQ(send(ids::cuMemFree_v2, Payload::record(api::FreeRecord{at})).result, CUDA_SUCCESS);
}

TEST_F(GreenContexts, EndWithAResetOfThePrimaryOne) {
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  const std::uint64_t in = stream_of(first);
  EXPECT_EQ(send(ids::cuDevicePrimaryCtxReset_v2, Payload::record(api::EndContextRecord{0})).result, CUDA_SUCCESS);
  EXPECT_EQ(synchronize(in), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(destroy(first).result, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(create(first), CUDA_SUCCESS) << "its number is free again";
}

// The fake driver aborts if one green context is current in two threads.
TEST_F(GreenContexts, AreCurrentForARecordOnly) {
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  enter(first);
  EXPECT_EQ(synchronize(stream()), CUDA_SUCCESS);
  std::thread([&] { EXPECT_EQ(synchronize(stream()), CUDA_SUCCESS); }).join();
  EXPECT_EQ(destroy(first).result, CUDA_SUCCESS) << "named in the very record that ends it";
  EXPECT_EQ(world.session->contexts.make_current(first), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_F(GreenContexts, QuestionsEventsAndStreamsOfNone) {
  ASSERT_EQ(create(first), CUDA_SUCCESS);
  const std::uint64_t event = world.event(), bytes = sizeof(CUdevResource);
  const auto ask = [&](std::uint64_t number) {
    return send(ids::cuGreenCtxGetDevResource, Payload::of(number, bytes, 1));
  };
  EXPECT_EQ(ask(first).result, CUDA_SUCCESS);
  for (const int call : {ids::cuGreenCtxRecordEvent, ids::cuGreenCtxWaitEvent}) {
    EXPECT_EQ(send(call, Payload::of(first, event)).result, CUDA_SUCCESS);
    EXPECT_EQ(send(call, Payload::of(first, event + 16)).result, CUDA_ERROR_INVALID_HANDLE);
    EXPECT_TRUE(send(call, Payload::of(ring::max_contexts, event)).broken);
  }
  for (const unsigned none : {0U, first + 1, ring::max_contexts - 1}) {
    EXPECT_EQ(ask(none).result, CUDA_ERROR_INVALID_CONTEXT) << none;
    const Payload creation = Payload::of(world.next(Handle::Stream), none, CU_STREAM_NON_BLOCKING, 0);
    EXPECT_EQ(send(ids::cuGreenCtxStreamCreate, creation).result, CUDA_ERROR_INVALID_CONTEXT) << none;
    EXPECT_EQ(send(ids::cuGreenCtxRecordEvent, Payload::of(none, event)).result, CUDA_ERROR_INVALID_CONTEXT) << none;
  }
  EXPECT_TRUE(ask(std::numeric_limits<std::uint64_t>::max()).broken);
}

TEST_F(GreenContexts, CreationsThatAreRefusedOrBreak) {
  const auto ask = [&](auto change) {
    api::CreateGreenContextRecord record = good();
    change(record);
    return world.send(ids::cuGreenCtxCreate, Payload::record(record));
  };
  for (const unsigned number : {0u, first - 1, unsigned{ring::max_contexts}, ~0u})
    EXPECT_TRUE(ask([&](auto& r) { r.number = number; }).broken) << number;
  EXPECT_TRUE(ask([](auto& r) { r.device = ring::max_devices; }).broken);
  EXPECT_TRUE(ask([](auto& r) { r.flags = 2; }).broken);
  EXPECT_TRUE(ask([](auto& r) { r.pad = 1; }).broken);
  EXPECT_EQ(ask([](auto& r) { r.device = 3; }).result, CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(ask([](auto& r) { r.flags = 0; }).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(ask([](auto& r) { r.description += 16; }).result, CUDA_ERROR_INVALID_VALUE) << "never given";
  EXPECT_EQ(ask([&](auto& r) { r.description = world.event(); }).result, CUDA_ERROR_INVALID_VALUE) << "of another kind";
  world.driver.fail_next("cuCtxFromGreenCtx", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(ask([](auto&) {}).result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.driver.calls("cuGreenCtxDestroy"), 1U) << "nothing is left of it";
  EXPECT_EQ(ask([](auto& r) { r.description = 0; }).result, CUDA_SUCCESS) << "of no description";
  EXPECT_TRUE(ask([](auto&) {}).broken) << "a number that is taken";
}

TEST(GreenContextsOfMany, ResourcesCountAgainstTheBoundOfObjects) {
  World world({.objects = 8});
  const auto ask = [&](unsigned least) {
    const Answer all = world.send(ids::cuDeviceGetDevResource, Payload::of(0, sizeof(CUdevResource), 1));
    if (all.result != CUDA_SUCCESS) return all.result;
    return world
        .send(ids::cuDevSmResourceSplitByCount,
              Payload::record(api::SplitResourceRecord{.input = api::resource_id(all.read<CUdevResource>()),
                                                       .groups = 4,
                                                       .least = least,
                                                       .flags = 0,
                                                       .wants = 3}))
        .result;
  };
  CUresult result = CUDA_SUCCESS;
  for (unsigned least = 1; least < 16 && result == CUDA_SUCCESS; least += 4) result = ask(least);
  EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
