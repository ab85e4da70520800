// A session's account of device memory on the strict fake driver: what the session reserves, and how much each kind of
// allocation counts. No allocation may exceed the reserved memory.
#include <gtest/gtest.h>

#include <ostream>
#include <thread>
#include <vector>

#include "host/session/memory/device_memory.h"
#include "host/session/memory/footprint.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;

constexpr std::uint64_t mebi = 1 << 20;

// Grants up to `bytes`.
class Purse : public host::MemoryReserver {
 public:
  explicit Purse(std::uint64_t bytes) : left(bytes), total(bytes) {}
  std::uint64_t reserve(unsigned, std::uint64_t bytes) override {
    ++asked;
    if (bytes > left) return 0;
    left -= bytes;
    return bytes;
  }
  std::optional<Headroom> headroom(unsigned) override { return Headroom{left, total}; }

  std::uint64_t left;
  const std::uint64_t total;
  int asked = 0;
};

// ---- the account ---------------------------------------------------------------------------------------------------

struct Account {
  explicit Account(host::MemoryReserver* reserver) : memory(reserver, published) {}
  std::atomic<std::uint64_t> published[ring::max_devices] = {};
  host::DeviceMemory memory;
};

TEST(DeviceMemory, WithoutALenderNothingIsRefusedAndAllIsCounted) {
  Account a(nullptr);
  EXPECT_TRUE(a.memory.take(1, 5));
  EXPECT_TRUE(a.memory.take(1, std::uint64_t{1} << 50));
  EXPECT_EQ(a.published[1], (std::uint64_t{1} << 50) + 5);
  EXPECT_EQ(a.published[0], 0u);
  EXPECT_FALSE(a.memory.headroom(1));
  EXPECT_EQ(a.memory.collect(1), 0u);
}

TEST(DeviceMemory, AsksForWhatIsMissingAndForNothingWithinItsLease) {
  Purse purse(100);
  Account a(&purse);
  EXPECT_TRUE(a.memory.take(0, 60));
  EXPECT_EQ(purse.left, 40u);
  a.memory.give_back(0, 50);
  EXPECT_TRUE(a.memory.take(0, 45));
  EXPECT_EQ(purse.asked, 1) << "it was lent 60 and has taken 55";
  EXPECT_TRUE(a.memory.take(0, 45)) << "which is all that there is";
  EXPECT_EQ(purse.left, 0u);
  EXPECT_FALSE(a.memory.take(0, 1));
  EXPECT_EQ(a.memory.taken(0), 100u) << "what was refused is not taken";
  EXPECT_EQ(a.published[0], 100u);
}

TEST(DeviceMemory, NumbersThatMakeNoSenseTakeNothing) {
  Purse purse(100);
  Account a(&purse);
  EXPECT_FALSE(a.memory.take(0, ~std::uint64_t{0}));
  EXPECT_FALSE(a.memory.take(0, std::uint64_t{1} << 60));
  EXPECT_FALSE(a.memory.take(ring::max_devices, 1));
  EXPECT_EQ(a.memory.collect(ring::max_devices), 0u);
  EXPECT_EQ(purse.asked, 0);
}

TEST(DeviceMemory, GivesUpWhatItDoesNotUse) {
  Purse purse(100);
  Account a(&purse);
  ASSERT_TRUE(a.memory.take(0, 80));
  a.memory.give_back(0, 30);
  EXPECT_EQ(a.memory.headroom(0)->free, 50u) << "20 to be borrowed, 30 of its own";
  EXPECT_EQ(a.memory.collect(0), 30u);
  EXPECT_EQ(a.memory.collect(0), 0u);
  EXPECT_EQ(a.memory.taken(0), 50u);
  EXPECT_FALSE(a.memory.take(0, 21)) << "20 are left to be borrowed";
  EXPECT_TRUE(a.memory.take(0, 20));
}

TEST(DeviceMemory, WhatTheDriverGaveWithoutAskingIsMissingFirst) {
  Purse purse(100);
  Account a(&purse);
  a.memory.take_anyway(0, 40);
  EXPECT_EQ(a.memory.collect(0), 0u);
  EXPECT_TRUE(a.memory.take(0, 10));
  EXPECT_EQ(purse.left, 50u) << "and what was taken before is borrowed with it";
}

TEST(DeviceMemory, MakesRoomBeforeItGivesUp) {
  Purse purse(100);
  Account a(&purse);
  ASSERT_TRUE(a.memory.take(0, 100));
  int called = 0;
  a.memory.when_full([&](unsigned device) {
    ++called;
    a.memory.give_back(device, 60);
  });
  EXPECT_TRUE(a.memory.take(0, 60));
  EXPECT_EQ(called, 1);
}

TEST(DeviceMemory, ManyThreadsStayWithinTheReservation) {
  Purse purse(1000);
  Account a(&purse);
  std::atomic<bool> beyond{false};
  std::vector<std::thread> takers;
  for (std::uint64_t amount : {300u, 301u, 302u, 303u})
    takers.emplace_back([&, amount] {
      for (int i = 0; i < 5000; ++i) {
        host::Charge charge;
        if (!charge.take(a.memory, 0, amount)) continue;
        if (a.memory.taken(0) > 1000 + 303) beyond = true;  // a thread counts its request while it asks
        if (i % 7 == 0) {
          if (a.memory.collect(0) > 1000) beyond = true;
        }
      }
    });
  for (std::thread& taker : takers) taker.join();
  EXPECT_FALSE(beyond);
  EXPECT_EQ(a.memory.taken(0), 0u);
}

// ---- counted allocations -------------------------------------------------------------------------------------------

TEST(Footprint, IsWhatTheDriverRoundsTo) {
  EXPECT_EQ(host::of_allocation(1).bytes(), 512u);
  EXPECT_EQ(host::of_allocation(512).bytes(), 512u);
  EXPECT_EQ(host::of_allocation(mebi - 1).bytes(), mebi);
  EXPECT_EQ(host::of_allocation(mebi).bytes(), 2 * mebi);
  EXPECT_EQ(host::of_allocation(2 * mebi + 1).bytes(), 4 * mebi);
  EXPECT_EQ(host::of_rows(1, 100).bytes(), 51200u);
  EXPECT_TRUE(host::of_rows(~std::uint64_t{0}, 2).is_absurd());
  EXPECT_TRUE(host::of_allocation(~std::uint64_t{0}).is_absurd());
}

TEST(Footprint, OfArrays) {
  const auto array = [](std::size_t w, std::size_t h, std::size_t d, CUarray_format format, unsigned channels,
                        unsigned flags = 0) {
    return CUDA_ARRAY3D_DESCRIPTOR{
        .Width = w, .Height = h, .Depth = d, .Format = format, .NumChannels = channels, .Flags = flags};
  };
  EXPECT_EQ(host::of_array(array(64, 0, 0, CU_AD_FORMAT_FLOAT, 1)).bytes(), 512u);
  EXPECT_EQ(host::of_array(array(1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4)).bytes(), 16 * mebi);
  EXPECT_EQ(host::of_array(array(256, 256, 256, CU_AD_FORMAT_UNSIGNED_INT8, 1)).bytes(), 16 * mebi);
  EXPECT_EQ(host::of_array(array(1024, 1024, 6, CU_AD_FORMAT_HALF, 1, CUDA_ARRAY3D_LAYERED), 11).bytes(), 18 * mebi)
      << "layers are not halved, and all levels together are a third more";
  EXPECT_EQ(host::of_array(array(1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE)).bytes(), 0u);
  EXPECT_EQ(host::of_array(array(4096, 4096, 0, CU_AD_FORMAT_BC7_UNORM, 4)).bytes(), 16 * mebi);
  EXPECT_TRUE(
      host::of_array(array(~std::size_t{0}, ~std::size_t{0}, ~std::size_t{0}, CU_AD_FORMAT_FLOAT, 4), 17).is_absurd());
}

host::ServeOptions with(host::MemoryReserver& reserver) {
  host::ServeOptions options;
  options.reserver = &reserver;
  options.context_bytes = 40 * mebi;
  return options;
}

// A kind of allocation: the call that makes it, the driver's function, and the call that ends it.
struct Way {
  const char* name;
  int make;
  const char* asked;
  int end;
  std::uint64_t bytes;  // bytes of each allocation; 0: a pool, which reserves memory in pieces
  std::uint64_t (*prepare)(World& world);
  Payload (*one)(World& world, std::uint64_t prepared, unsigned which);
  Payload (*ending)(const Payload& made, const Answer& answer);
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

constexpr CUDA_ARRAY3D_DESCRIPTOR texels{
    .Width = 1024, .Height = 1024, .Depth = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2, .Flags = 0};
constexpr CUDA_ARRAY_DESCRIPTOR flat_texels{
    .Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};

std::uint64_t word_of(const Payload& payload) {
  std::uint64_t word = 0;
  std::memcpy(&word, payload.data().data(), sizeof word);
  return word;
}
Payload by_its_id(const Payload& made, const Answer&) { return Payload::of(word_of(made)); }
Payload by_its_address(const Payload&, const Answer& answer) { return Payload::of(answer.read<std::uint64_t>(), 0); }
std::uint64_t nothing(World&) { return 0; }
std::uint64_t a_pool(World& world) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  const std::uint64_t id = world.next(Handle::MemPool);
  EXPECT_EQ(world.send(ids::cuMemPoolCreate, Payload::of(id, sizeof props).bytes(&props, sizeof props)).result,
            CUDA_SUCCESS);
  return id;
}
Payload a_memory_object(World& world, std::uint64_t, unsigned) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return Payload::of(world.next(Handle::Allocation), 8 * mebi, sizeof p, 0).bytes(&p, sizeof p);
}

const Way all_ways[] = {
    {"Allocation", ids::cuMemAlloc_v2, "cuMemAlloc_v2", ids::cuMemFree_v2, 8 * mebi, nothing,
     [](World&, std::uint64_t, unsigned) {
       return Payload::record(api::AllocateRecord{7 * mebi, 0, 0, 0});
     },
     by_its_address},
    {"AllocationOfRows", ids::cuMemAllocPitch_v2, "cuMemAllocPitch_v2", ids::cuMemFree_v2, 8 * mebi, nothing,
     [](World&, std::uint64_t, unsigned) {
       return Payload::record(api::AllocateRecord{500, 16384, 4, 0});
     },
     by_its_address},
    {"PoolAllocation", ids::cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", ids::cuMemFreeAsync, 0, a_pool,
     [](World&, std::uint64_t pool, unsigned) { return Payload::of(8, 8 * mebi, pool, 0); }, by_its_address},
    {"AllocationInOrder", ids::cuMemAllocAsync, "cuMemAllocAsync", ids::cuMemFreeAsync, 0, nothing,
     [](World&, std::uint64_t, unsigned) { return Payload::of(8, 8 * mebi, 0); }, by_its_address},
    {"MemoryObject", ids::cuMemCreate, "cuMemCreate", ids::cuMemRelease, 8 * mebi, nothing, a_memory_object, by_its_id},
    {"OldArray", ids::cuArrayCreate_v2, "cuArrayCreate_v2", ids::cuArrayDestroy, 8 * mebi, nothing,
     [](World& w, std::uint64_t, unsigned) {
       return Payload::of(w.next(Handle::Array), sizeof flat_texels).bytes(&flat_texels, sizeof flat_texels);
     },
     by_its_id},
    {"Array", ids::cuArray3DCreate_v2, "cuArray3DCreate_v2", ids::cuArrayDestroy, 8 * mebi, nothing,
     [](World& w, std::uint64_t, unsigned) {
       return Payload::of(w.next(Handle::Array), sizeof texels).bytes(&texels, sizeof texels);
     },
     by_its_id},
    {"MipmappedArray", ids::cuMipmappedArrayCreate, "cuMipmappedArrayCreate", ids::cuMipmappedArrayDestroy, 12 * mebi,
     nothing,
     [](World& w, std::uint64_t, unsigned) {
       return Payload::of(w.next(Handle::MipmappedArray), sizeof texels, 11).bytes(&texels, sizeof texels);
     },
     by_its_id},
    {"Context", ids::cuCtxCreate_v4, "cuCtxCreate_v2", ids::cuCtxDestroy_v2, 40 * mebi, nothing,
     [](World&, std::uint64_t, unsigned which) {
       api::CreateContextRecord record{};
       record.number = ring::first_created_context + which;
       return Payload::record(record);
     },
     by_its_id},
};

class EachWay : public testing::TestWithParam<Way> {
 protected:
  static constexpr std::uint64_t quota = 130 * mebi;
  Answer make(unsigned which) {
    made = way.one(world, prepared, which);
    return world.send(way.make, made);
  }
  std::uint64_t taken() const { return world.session->memory.device.taken(0); }
  void expect_refused(unsigned which) {
    const std::uint64_t asked = world.driver.calls(way.asked);
    EXPECT_EQ(make(which).result, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(world.driver.calls(way.asked), asked) << "the driver is not asked";
    EXPECT_FALSE(world.session->protocol.broken) << "a program that wants too much makes a mistake, and no more";
    EXPECT_LE(taken(), quota);
  }

  const Way way = GetParam();
  Purse purse{quota};
  World world{with(purse)};
  const std::uint64_t prepared = way.prepare(world);
  Payload made;
};

TEST_P(EachWay, EndsAtTheQuotaAndGivesBack) {
  ASSERT_EQ(taken(), 0u);
  std::vector<std::pair<Payload, Answer>> all;
  unsigned which = 0;
  for (;; ++which) {
    const Answer answer = make(which);
    if (answer.result != CUDA_SUCCESS) break;
    all.emplace_back(made, answer);
    ASSERT_LE(taken(), quota);
    if (way.bytes != 0) {
      ASSERT_EQ(taken(), all.size() * way.bytes);
    }
  }
  EXPECT_EQ(all.size(), way.bytes != 0 ? quota / way.bytes : 128 / 8) << "pools take 32 MiB at a time";
  expect_refused(which + 1);
  ASSERT_EQ(world.send(way.end, way.ending(all.back().first, all.back().second)).result, CUDA_SUCCESS);
  all.pop_back();
  const Answer again = make(which - 1);
  EXPECT_EQ(again.result, CUDA_SUCCESS) << "what has ended is there again";
  all.emplace_back(made, again);
  for (const auto& [payload, answer] : all)
    EXPECT_EQ(world.send(way.end, way.ending(payload, answer)).result, CUDA_SUCCESS);
  EXPECT_TRUE(way.bytes == 0 || taken() == 0);
  EXPECT_EQ(purse.left + world.session->memory.device.collect(0) + taken(), quota) << "nothing is lost";
}

TEST_P(EachWay, WhatTheDriverRefusesTakesNothing) {
  world.driver.fail_next(way.asked, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(make(0).result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(taken(), 0u);
  EXPECT_EQ(make(0).result, CUDA_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(Quota, EachWay, testing::ValuesIn(all_ways),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- special cases -------------------------------------------------------------------------------------------------

class Quota : public testing::Test {
 protected:
  std::uint64_t taken() const { return world.session->memory.device.taken(0); }
  CUresult allocate(std::uint64_t bytes) {
    return world.send(ids::cuMemAlloc_v2, Payload::record(api::AllocateRecord{bytes, 0, 0, 0})).result;
  }
  std::uint64_t from_pool(std::uint64_t pool, std::uint64_t bytes) {
    const Answer a = world.send(ids::cuMemAllocFromPoolAsync, Payload::of(8, bytes, pool, 0));
    EXPECT_EQ(a.result, CUDA_SUCCESS);
    return a.read<std::uint64_t>();
  }
  CUresult free_in_order(std::uint64_t at) { return world.send(ids::cuMemFreeAsync, Payload::of(at, 0)).result; }
  CUresult limit(CUlimit which, std::uint64_t value) {
    return world.send(ids::cuCtxSetLimit, Payload::of(which, value)).result;
  }

  Purse purse{128 * mebi};
  World world{with(purse)};
};

TEST_F(Quota, AResetGivesAllocationsAndArraysBackAndKeepsObjectsOfMemory) {
  ASSERT_EQ(allocate(8 * mebi), CUDA_SUCCESS);
  const std::uint64_t array = world.next(Handle::Array);
  ASSERT_EQ(world.send(ids::cuArray3DCreate_v2, Payload::of(array, sizeof texels).bytes(&texels, sizeof texels)).result,
            CUDA_SUCCESS);
  ASSERT_EQ(world.send(ids::cuMemCreate, a_memory_object(world, 0, 0)).result, CUDA_SUCCESS);
  EXPECT_EQ(taken(), 24 * mebi);
  EXPECT_EQ(world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)).result, CUDA_SUCCESS);
  EXPECT_EQ(taken(), 8 * mebi);
}

TEST_F(Quota, AMemoryObjectCountsUntilItIsNeitherHeldNorMapped) {
  const Payload made = a_memory_object(world, 0, 0);
  ASSERT_EQ(world.send(ids::cuMemCreate, made).result, CUDA_SUCCESS);
  const std::uint64_t at =
      world.send(ids::cuMemAddressReserve, Payload::of(8, 8 * mebi, 0, 0, 0)).read<std::uint64_t>();
  EXPECT_EQ(taken(), 8 * mebi) << "addresses take no memory";
  ASSERT_EQ(world.send(ids::cuMemMap, Payload::of(at, 8 * mebi, 0, word_of(made), 0)).result, CUDA_SUCCESS);
  ASSERT_EQ(world.send(ids::cuMemRelease, Payload::of(word_of(made))).result, CUDA_SUCCESS);
  EXPECT_EQ(taken(), 8 * mebi);
  ASSERT_EQ(world.send(ids::cuMemUnmap, Payload::of(at, 8 * mebi)).result, CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0u);
}

// A pool counts its reservations, in pieces of 32 MiB, and keeps freed memory.
TEST_F(Quota, APoolCountsWhatItReserves) {
  const std::uint64_t pool = a_pool(world);
  EXPECT_EQ(taken(), 0u);
  const std::uint64_t a = from_pool(pool, 100), b = from_pool(pool, 20 * mebi);
  EXPECT_EQ(taken(), 32 * mebi);
  const std::uint64_t c = from_pool(pool, 20 * mebi);
  EXPECT_EQ(taken(), 64 * mebi);
  for (const std::uint64_t at : {a, b, c}) EXPECT_EQ(free_in_order(at), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 64 * mebi);
  EXPECT_EQ(world.send(ids::cuMemPoolTrimTo, Payload::of(pool, 0)).result, CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0u);
}

TEST_F(Quota, WhatAPoolKeepsIsTrimmedBeforeAnythingIsRefused) {
  const std::uint64_t pool = a_pool(world);
  const std::uint64_t at = from_pool(pool, 90 * mebi);
  EXPECT_EQ(taken(), 96 * mebi);
  ASSERT_EQ(free_in_order(at), CUDA_SUCCESS);
  EXPECT_EQ(allocate(100 * mebi), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 100 * mebi);
}

// If no further piece fits, an allocation within the reserved pieces must still succeed.
TEST_F(Quota, AFullPoolsRoomCanBeUsed) {
  const std::uint64_t pool = a_pool(world);
  from_pool(pool, 8 * mebi);
  ASSERT_EQ(allocate(90 * mebi), CUDA_SUCCESS);
  from_pool(pool, 8 * mebi);
  EXPECT_EQ(taken(), 122 * mebi);
  EXPECT_EQ(world.send(ids::cuMemAllocFromPoolAsync, Payload::of(8, 20 * mebi, pool, 0)).result,
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(taken(), 122 * mebi);
}

TEST_F(Quota, ADestroyedPoolCountsUntilItsLastAllocationEnds) {
  const std::uint64_t pool = a_pool(world), at = from_pool(pool, 8 * mebi);
  ASSERT_EQ(world.send(ids::cuMemPoolDestroy, Payload::of(pool)).result, CUDA_SUCCESS);
  EXPECT_EQ(taken(), 32 * mebi);
  ASSERT_EQ(free_in_order(at), CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0u);
}

TEST_F(Quota, LimitsOfAContextCountWhereTheyGrow) {
  EXPECT_EQ(limit(CU_LIMIT_MALLOC_HEAP_SIZE, 100 * mebi), CUDA_SUCCESS);
  const std::uint64_t heap = taken();
  EXPECT_GT(heap, 80 * mebi);
  EXPECT_LE(heap, 100 * mebi) << "what the context began with is its own";
  EXPECT_EQ(limit(CU_LIMIT_PRINTF_FIFO_SIZE, 100 * mebi), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(limit(CU_LIMIT_STACK_SIZE, 100 * mebi), CUDA_ERROR_OUT_OF_MEMORY)
      << "for all threads that there can be: the fake device runs one";
  EXPECT_EQ(limit(CU_LIMIT_MALLOC_HEAP_SIZE, 50 * mebi), CUDA_SUCCESS);
  EXPECT_EQ(limit(CU_LIMIT_MALLOC_HEAP_SIZE, 100 * mebi), CUDA_SUCCESS);
  EXPECT_EQ(taken(), heap) << "it was there already";
  EXPECT_EQ(world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)).result, CUDA_SUCCESS);
  EXPECT_EQ(taken(), 0u);
}

TEST_F(Quota, CuMemGetInfoReportsTheVmsOwn) {
  const auto info = [&] {
    const Answer a = world.send(ids::cuMemGetInfo_v2, Payload::of(8, 8));
    EXPECT_EQ(a.result, CUDA_SUCCESS);
    return std::pair(a.read<std::uint64_t>(0), a.read<std::uint64_t>(8));
  };
  EXPECT_EQ(info(), std::pair(128 * mebi, 128 * mebi));
  ASSERT_EQ(allocate(30 * mebi), CUDA_SUCCESS);
  EXPECT_EQ(info(), std::pair(98 * mebi, 128 * mebi));
  purse.left = std::uint64_t{1} << 40;
  EXPECT_EQ(info().first, fake::device_memory - 30 * mebi) << "no more than the GPU has";
  EXPECT_EQ(world.send(ids::cuMemGetInfo_v2, Payload::of(ring::absent, ring::absent)).result, CUDA_SUCCESS);
}

// The driver itself refuses sizes that no GPU has.
TEST_F(Quota, AbsurdSizesAreTheDriversToRefuse) {
  EXPECT_EQ(allocate(std::uint64_t{1} << 60), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.driver.calls("cuMemAlloc_v2"), 1u);
  EXPECT_EQ(purse.asked, 0);
}

}  // namespace
