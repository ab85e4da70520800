// What a session may hold: sums with a bound, and a guest that loads, makes and allocates until it reaches them. What
// is let go gives its share back, however it goes.
#include "host/session/budget.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>
#include <vector>

#include "ring/abi/image.h"
#include "tests/unit/session_records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

// ---- the sums ------------------------------------------------------------------------------------------------------

TEST(Budget, TakesUpToItsBoundAndNotBeyond) {
  host::Budget budget(100);
  EXPECT_TRUE(budget.take(60));
  EXPECT_FALSE(budget.take(41));
  EXPECT_FALSE(budget.take(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_TRUE(budget.take(40));
  EXPECT_TRUE(budget.take(0));
  EXPECT_EQ(budget.used(), 100u);
  budget.give_back(60);
  EXPECT_TRUE(budget.take(60));
}

TEST(Budget, AShareComesBackOnce) {
  host::Budget budget(100);
  {
    host::Share share;
    EXPECT_TRUE(share.take(budget, 70));
    host::Share other;
    EXPECT_FALSE(other.take(budget, 70));
    host::Share moved = std::move(share);
    EXPECT_EQ(budget.used(), 70u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(Budget, SharesAreKeptByTheirIds) {
  host::Budget budget(100);
  host::Shares shares;
  const auto share = [&](std::uint64_t amount) {
    host::Share taken;
    EXPECT_TRUE(taken.take(budget, amount));
    return taken;
  };
  EXPECT_TRUE(shares.keep(1, share(10)));
  EXPECT_TRUE(shares.keep(2, share(20)));
  EXPECT_FALSE(shares.keep(2, share(40))) << "an id has one share";
  EXPECT_EQ(budget.used(), 30u);
  shares.drop(2);
  shares.drop(2);
  shares.drop(3);
  EXPECT_EQ(budget.used(), 10u);
}

TEST(Budget, ManyTakersStayBelowTheBound) {
  host::Budget budget(1000);
  std::atomic<bool> beyond{false};
  std::vector<std::thread> takers;
  for (std::uint64_t amount : {300u, 301u, 302u, 303u})
    takers.emplace_back([&, amount] {
      for (int i = 0; i < 20000; ++i)
        if (host::Share share; share.take(budget, amount) && budget.used() > 1000) beyond = true;
    });
  for (std::thread& taker : takers) taker.join();
  EXPECT_FALSE(beyond);
  EXPECT_EQ(budget.used(), 0u);
}

// ---- images --------------------------------------------------------------------------------------------------------

// Text of 1000 bytes, so 1000 while it is loaded and 1000 as long as it stays.
std::string text_of_1000() { return module_text + std::string(999 - std::strlen(module_text), ' '); }

host::ServeOptions with_image_bytes(std::uint64_t bytes) {
  host::ServeOptions options;
  options.image_bytes = bytes;
  return options;
}

class ImageBudget : public testing::Test {
 protected:
  CUresult load(std::uint64_t id) { return world.send(ids::cuModuleLoadData, world.load(id, text.c_str())).result; }
  CUresult load_library(std::uint64_t id) {
    return world.send(ids::cuLibraryLoadData, world.load(id, text.c_str())).result;
  }
  // Loads until it is refused; how many were loaded.
  int fill() {
    for (int loaded = 0;; ++loaded)
      if (const CUresult result = load(world.next(Handle::Module)); result != CUDA_SUCCESS) {
        EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
        return loaded;
      }
  }
  const std::string text = text_of_1000();
  World world{with_image_bytes(5000)};
};

TEST_F(ImageBudget, TheSumIsBoundedAndTheDriverNotAsked) {
  EXPECT_EQ(fill(), 4);  // the fifth would stay within the bound, but not while it is loaded
  const std::uint64_t asked = world.driver.calls("cuModuleLoadDataEx");
  EXPECT_EQ(load(world.next(Handle::Module)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(load_library(world.next(Handle::Library)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.driver.calls("cuModuleLoadDataEx"), asked);
  EXPECT_EQ(world.driver.calls("cuLibraryLoadData"), 0u);
  EXPECT_FALSE(world.session->broken) << "a program that loads too much makes a mistake, and no more";
}

TEST_F(ImageBudget, WhatIsUnloadedComesBack) {
  const std::uint64_t module = world.next(Handle::Module), library = world.next(Handle::Library);
  EXPECT_EQ(load(module), CUDA_SUCCESS);
  EXPECT_EQ(load_library(library), CUDA_SUCCESS);
  EXPECT_EQ(fill(), 2);
  EXPECT_EQ(world.send(ids::cuModuleUnload, Payload::of(module)).result, CUDA_SUCCESS);
  EXPECT_EQ(fill(), 1);
  EXPECT_EQ(world.send(ids::cuLibraryUnload, Payload::of(library)).result, CUDA_SUCCESS);
  EXPECT_EQ(fill(), 1);
  EXPECT_EQ(world.session->image_budget.used(), 4000u);
}

TEST_F(ImageBudget, AResetGivesModulesBackAndKeepsLibraries) {
  EXPECT_EQ(load_library(world.next(Handle::Library)), CUDA_SUCCESS);
  EXPECT_EQ(fill(), 3);
  EXPECT_EQ(world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->image_budget.used(), 1000u);
  EXPECT_EQ(fill(), 3);
}

TEST_F(ImageBudget, WhatFailsComesBack) {
  world.driver.fail_next("cuModuleLoadDataEx", CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load(world.next(Handle::Module)), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(world.session->image_budget.used(), 0u);
  const std::uint64_t module = world.next(Handle::Module);
  EXPECT_EQ(load(module), CUDA_SUCCESS);
  EXPECT_EQ(load(module), CUDA_ERROR_UNKNOWN) << "its id is taken: no program does that";
  EXPECT_EQ(world.session->image_budget.used(), 1000u);
  world.driver.fail_next("cuModuleUnload", CUDA_ERROR_NOT_READY);
  EXPECT_EQ(world.send(ids::cuModuleUnload, Payload::of(module)).result, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(world.session->image_budget.used(), 1000u) << "it is still loaded";
}

// 5 GiB may be claimed in a record of a few bytes: nothing is copied, nothing breaks that did not before.
TEST_F(ImageBudget, WhatOneRecordMayNotHaveIsNotCopied) {
  const Answer a = world.send(ids::cuModuleLoadData,
                              Payload::record(api::LoadRecord{world.next(Handle::Module), 0, 0, 1, 0, 0}).slot(6000));
  EXPECT_EQ(a.result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.session->image_budget.used(), 0u);
}

TEST_F(ImageBudget, APackedOneCountsUnpacked) {
  struct {
    cuabi::ContainerHeader container{
        .magic = cuabi::container_magic, .version = 1, .header_size = 16, .size = sizeof(cuabi::EntryHeader)};
    cuabi::EntryHeader entry{};
  } image;
  image.entry.kind = cuabi::entry_cubin;
  image.entry.header_size = sizeof image.entry;
  image.entry.plain_size = 4900;
  const auto load_it = [&] {
    const Payload payload =
        Payload::record(api::LoadRecord{world.next(Handle::Module), ring::absent, 0, 1, 0, 0}).slot(sizeof image);
    return world.send(ids::cuModuleLoadData, Payload(payload).bytes(&image, sizeof image)).result;
  };
  EXPECT_EQ(load_it(), CUDA_ERROR_OUT_OF_MEMORY);
  image.entry.plain_size = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(load_it(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.driver.calls("cuModuleLoadDataEx"), 0u);
  image.entry.plain_size = 4000;
  load_it();  // the fake driver knows no code in it
  EXPECT_EQ(world.driver.calls("cuModuleLoadDataEx"), 1u);
  EXPECT_EQ(world.session->image_budget.used(), 0u);
}

// ---- processors ----------------------------------------------------------------------------------------------------

// Where a worker may not poll, contexts are made so that waiting threads sleep; a reset does not change that.
TEST(Waits, SleepWhereTheSessionMayNotSpin) {
  for (const bool asleep : {false, true}) {
    host::ServeOptions options;
    options.waits_asleep = asleep;
    World world(options);
    // A thread remembers what is current, so each session gets one that knows nothing.
    std::thread([&] { EXPECT_EQ(world.session->contexts.make_current(0), CUDA_SUCCESS); }).join();
    EXPECT_EQ(world.driver.calls("cuDevicePrimaryCtxSetFlags_v2"), asleep ? 1u : 0u);
    EXPECT_EQ(world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)).result, CUDA_SUCCESS);
    EXPECT_EQ(world.driver.calls("cuDevicePrimaryCtxSetFlags_v2"), asleep ? 2u : 0u);
  }
}

// ---- objects -------------------------------------------------------------------------------------------------------

host::ServeOptions with_objects(std::uint64_t objects) {
  host::ServeOptions options;
  options.objects = objects;
  return options;
}

class ObjectBudget : public testing::Test {
 protected:
  CUresult create(int call, Handle kind) { return world.send(call, Payload::of(world.next(kind), 0)).result; }
  CUresult allocate() {
    return world.send(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{256, 0, 0, 0})).result;
  }
  void expect_full() {
    const std::size_t handles = world.driver.live_handles(), allocations = world.driver.live_allocations();
    EXPECT_EQ(create(ids::cuStreamCreate, Handle::Stream), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(create(ids::cuEventCreate, Handle::Event), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(allocate(), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(world.send(ids::cuMemAllocPitch_v2, Payload::record(api::AllocateRecord{64, 4, 4, 0})).result,
              CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(world.send(ids::cuModuleLoadData, world.load(world.next(Handle::Module))).result,
              CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_FALSE(world.session->broken);
    EXPECT_EQ(world.driver.live_handles(), handles) << "nothing was made";
    EXPECT_EQ(world.driver.live_allocations(), allocations);
  }
  void expect_room_for_one() {
    EXPECT_TRUE(world.session->may_make_another());
    EXPECT_EQ(create(ids::cuEventCreate, Handle::Event), CUDA_SUCCESS);
    expect_full();
  }
  World world{with_objects(6)};
};

TEST_F(ObjectBudget, OfAllKindsTogetherAreBounded) {
  const std::uint64_t stream = world.stream(), module = world.module(), memory = world.memory(256);
  world.event();
  world.function(module, "fill");
  EXPECT_EQ(
      world
          .send(ids::cuModuleGetGlobal_v2, Payload::record(api::GlobalRecord{module, sizeof "counter"}).text("counter"))
          .result,
      CUDA_SUCCESS);
  expect_full();
  EXPECT_EQ(world.send(ids::cuModuleGetFunction, world.lookup(module, world.next(Handle::Function), "nothing")).result,
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.send(ids::cuStreamDestroy_v2, Payload::of(stream)).result, CUDA_SUCCESS);
  expect_room_for_one();
  EXPECT_EQ(world.send(ids::cuMemFree_v2, Payload::of(memory)).result, CUDA_SUCCESS);
  expect_room_for_one();
  EXPECT_EQ(world.send(ids::cuModuleUnload, Payload::of(module)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->objects.count() + world.session->addresses.count(), 3u)
      << "its function and global went, too";
}

TEST_F(ObjectBudget, AResetGivesThemBack) {
  for (int i = 0; i < 3; ++i) world.stream(), world.memory(256);
  expect_full();
  EXPECT_EQ(world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->objects.count() + world.session->addresses.count(), 0u);
}

TEST_F(ObjectBudget, TheSameGlobalCountsOnce) {
  const std::uint64_t module = world.module();
  const Payload look_up = Payload::record(api::GlobalRecord{module, sizeof "counter"}).text("counter");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(world.send(ids::cuModuleGetGlobal_v2, look_up).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->objects.count() + world.session->addresses.count(), 2u);
}

TEST_F(ObjectBudget, PinnedPiecesCount) {
  for (int i = 0; i < 6; ++i) world.event();
  EXPECT_EQ(world.session->pin(0, ring::huge_page), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.driver.registered_bytes(), 0u);
}

}  // namespace
