// Pools and virtual memory, with requests from a hostile guest.
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace id_of = api::id_of;

constexpr std::uint64_t piece = 2 << 20;

class SessionMemory : public testing::Test {
 protected:
  Answer send(int call, const Payload& payload, std::uint16_t flags = 0) { return world.send(call, payload, flags); }
  void expect_broken(int call, const Payload& payload, const char* what) {
    const std::size_t live = world.driver.live_handles();
    EXPECT_TRUE(send(call, payload).broken) << what;
    EXPECT_EQ(world.driver.live_handles(), live) << what;
  }
  std::uint64_t reserve(std::uint64_t bytes) {
    return send(id_of::cuMemAddressReserve, Payload::of(8, bytes, 0, 0, 0)).read<std::uint64_t>();
  }
  Payload creation(std::uint64_t id, std::uint64_t bytes, const CUmemAllocationProp& p) {
    return Payload::of(id, bytes, sizeof p, 0).bytes(&p, sizeof p);
  }
  std::uint64_t create(std::uint32_t index, std::uint64_t bytes = piece) {
    const std::uint64_t id = Id{Handle::Allocation, index}.value();
    EXPECT_EQ(send(id_of::cuMemCreate, creation(id, bytes, on_device)).result, CUDA_SUCCESS);
    return id;
  }
  CUresult map(std::uint64_t at, std::uint64_t bytes, std::uint64_t id) {
    return send(id_of::cuMemMap, Payload::of(at, bytes, 0, id, 0)).result;
  }
  CUresult fill(std::uint64_t at, std::uint64_t bytes) {
    return send(id_of::cuMemsetD8Async, Payload::of(at, 7, bytes, 0)).result;
  }
  CUresult release(std::uint64_t id) { return send(id_of::cuMemRelease, Payload::of(id)).result; }

  static constexpr CUmemAllocationProp on_device = [] {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return p;
  }();
  World world;
};

// ---- virtual memory ------------------------------------------------------------------------------------------------

TEST_F(SessionMemory, OnlyWhatIsMappedMayBeNamed) {
  const std::uint64_t at = reserve(4 * piece);
  EXPECT_EQ(fill(at, 1), CUDA_ERROR_INVALID_VALUE);
  const std::uint64_t a = create(2), b = create(3);
  ASSERT_EQ(map(at, piece, a), CUDA_SUCCESS);
  EXPECT_EQ(fill(at, piece), CUDA_SUCCESS);
  EXPECT_EQ(fill(at, piece + 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(map(at + piece, piece, b), CUDA_SUCCESS);
  EXPECT_EQ(fill(at + 1, 2 * piece - 1), CUDA_SUCCESS) << "across two pieces of one reservation";
  EXPECT_EQ(send(id_of::cuMemUnmap, Payload::of(at, piece)).result, CUDA_SUCCESS);
  EXPECT_EQ(fill(at, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(fill(at + piece, piece), CUDA_SUCCESS);
}

TEST_F(SessionMemory, PiecesOfTwoReservationsAreNotJoined) {
  const std::uint64_t first = reserve(piece), second = reserve(piece);
  ASSERT_EQ(map(first, piece, create(2)), CUDA_SUCCESS);
  ASSERT_EQ(map(second, piece, create(3)), CUDA_SUCCESS);
  const std::uint64_t lower = std::min(first, second);
  EXPECT_EQ(fill(lower, piece + 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(SessionMemory, RangesThatAreNotReservedNeverReachTheDriver) {
  const std::uint64_t at = reserve(2 * piece), a = create(2);
  for (const std::uint64_t wrong : {at - 1, at + piece + 1, at + 2 * piece, std::uint64_t{0}, ~std::uint64_t{0}}) {
    EXPECT_EQ(map(wrong, piece, a), CUDA_ERROR_INVALID_VALUE) << std::hex << wrong;
    EXPECT_EQ(send(id_of::cuMemUnmap, Payload::of(wrong, piece)).result, CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(send(id_of::cuMemAddressFree, Payload::of(wrong, piece)).result, CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(map(at, ~std::uint64_t{0}, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send(id_of::cuMemRetainAllocationHandle, Payload::of(8, at - 1)).result, CUDA_ERROR_INVALID_VALUE);
}

TEST_F(SessionMemory, AReservationEndsWholeAndOnce) {
  const std::uint64_t at = reserve(2 * piece);
  EXPECT_EQ(send(id_of::cuMemAddressFree, Payload::of(at, piece)).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send(id_of::cuMemAddressFree, Payload::of(at, 2 * piece)).result, CUDA_SUCCESS);
  EXPECT_EQ(send(id_of::cuMemAddressFree, Payload::of(at, 2 * piece)).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.session->memory.reserved.count(), 0u);
}

TEST_F(SessionMemory, MappedMemoryIsNeitherFreedNorGoneWithAContext) {
  const std::uint64_t at = reserve(piece);
  ASSERT_EQ(map(at, piece, create(2)), CUDA_SUCCESS);
  EXPECT_EQ(send(id_of::cuMemFree_v2, Payload::record(api::FreeRecord{at})).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send(id_of::cuMemFreeAsync, Payload::of(at, 0)).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.session->reset(0), CUDA_SUCCESS);
  EXPECT_EQ(fill(at, piece), CUDA_SUCCESS);
}

TEST_F(SessionMemory, AnAllocationEndsWhenItWasReleasedAsOftenAsGiven) {
  const std::uint64_t at = reserve(piece), a = create(2);
  ASSERT_EQ(map(at, piece, a), CUDA_SUCCESS);
  const Answer again = send(id_of::cuMemRetainAllocationHandle, Payload::of(8, at + 5));
  EXPECT_EQ(again.read<std::uint64_t>(), a) << "the driver gave the same handle";
  EXPECT_EQ(release(a), CUDA_SUCCESS);
  EXPECT_EQ(release(a), CUDA_SUCCESS);
  EXPECT_EQ(release(a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send(id_of::cuMemRetainAllocationHandle, Payload::of(8, at)).read<std::uint64_t>(), a)
      << "it is known as long as it is mapped";
  EXPECT_EQ(release(a), CUDA_SUCCESS);
  const std::uint64_t other = reserve(piece);
  EXPECT_EQ(map(other, piece, a), CUDA_SUCCESS);
  EXPECT_EQ(send(id_of::cuMemUnmap, Payload::of(at, piece)).result, CUDA_SUCCESS);
  EXPECT_EQ(map(at, piece, a), CUDA_SUCCESS) << "it is mapped elsewhere";
  const std::size_t objects = world.session->objects.count();
  EXPECT_EQ(send(id_of::cuMemUnmap, Payload::of(at, piece)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->objects.count(), objects);
  EXPECT_EQ(send(id_of::cuMemUnmap, Payload::of(other, piece)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->objects.count(), objects - 1);
  EXPECT_EQ(map(at, piece, a), CUDA_ERROR_INVALID_VALUE) << "it has ended";
  EXPECT_EQ(release(a), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(SessionMemory, MemoryOfTheHostIsRefused) {
  for (const auto type :
       {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT}) {
    CUmemAllocationProp p = on_device;
    p.location.type = type;
    EXPECT_EQ(send(id_of::cuMemCreate, creation(Id{Handle::Allocation, 2}.value(), piece, p)).result,
              CUDA_ERROR_NOT_SUPPORTED);
  }
  EXPECT_EQ(world.driver.calls("cuMemCreate"), 0u);
}

TEST_F(SessionMemory, DevicesThatTheHostDoesNotHaveAreTheDriversToRefuse) {
  CUmemAllocationProp p = on_device;
  for (const int id : {-1, 1, 99, static_cast<int>(ring::max_devices)}) {
    p.location.id = id;
    EXPECT_EQ(send(id_of::cuMemCreate, creation(Id{Handle::Allocation, 2}.value(), piece, p)).result,
              CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_F(SessionMemory, StructsAreWholeAndHoldNoPointers) {
  const std::uint64_t id = Id{Handle::Allocation, 2}.value();
  CUmemAllocationProp p = on_device;
  p.win32HandleMetaData = &p;
  expect_broken(id_of::cuMemCreate, creation(id, piece, p), "a pointer");
  expect_broken(id_of::cuMemCreate, Payload::of(id, piece, sizeof p - 1, 0).bytes(&p, sizeof p - 1), "too short");
  expect_broken(id_of::cuMemCreate, Payload::of(id, piece, ring::absent, 0), "no struct where one is needed");
  const std::uint64_t at = reserve(piece);
  const CUmemAccessDesc access{.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const auto set = [&](std::uint64_t length, std::uint64_t count) {
    return Payload::of(at, piece, length, count).bytes(&access, sizeof access);
  };
  EXPECT_EQ(send(id_of::cuMemSetAccess, set(sizeof access, 1)).result, CUDA_SUCCESS);
  expect_broken(id_of::cuMemSetAccess, set(sizeof access, 2), "fewer than are counted");
  expect_broken(id_of::cuMemSetAccess, set(sizeof access, std::uint64_t{1} << 62), "a count that overflows");
}

TEST(SmallSession, ObjectsAndReservationsAreBounded) {
  host::ServeOptions options = World::with(host::all_windows);
  options.objects = 8;
  World small(options);
  unsigned made = 0;
  while (made < 100 && small.send(id_of::cuMemAddressReserve, Payload::of(8, piece, 0, 0, 0)).result == CUDA_SUCCESS)
    ++made;
  EXPECT_LE(made, 9u);
  EXPECT_GE(made, 4u);
}

// ---- pools ---------------------------------------------------------------------------------------------------------

TEST_F(SessionMemory, AFoundPoolHasOneId) {
  const auto ask = [&](int call) { return send(call, Payload::of(8, 0)).read<std::uint64_t>(); };
  const std::uint64_t pool = ask(id_of::cuDeviceGetDefaultMemPool);
  EXPECT_EQ(Id::of(pool).kind, Handle::MemPool);
  EXPECT_FALSE(Id::of_guest(Id::of(pool).index));
  EXPECT_EQ(ask(id_of::cuDeviceGetMemPool), pool);
  EXPECT_EQ(send(id_of::cuMemPoolDestroy, Payload::of(pool)).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send(id_of::cuMemPoolTrimTo, Payload::of(pool, 0)).result, CUDA_SUCCESS) << "it lives on";
}

TEST_F(SessionMemory, AGuestCannotChooseFromTheWorkersHalf) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = on_device.location;
  const std::uint64_t id = Id{Handle::MemPool, Id::first_of_worker + 3}.value();
  EXPECT_TRUE(send(id_of::cuMemPoolCreate, Payload::of(id, sizeof props).bytes(&props, sizeof props)).broken);
}

TEST_F(SessionMemory, WhatIsAllocatedInOrderIsNamedUntilItIsFreed) {
  const std::uint64_t at = send(id_of::cuMemAllocAsync, Payload::of(8, 100, 0)).read<std::uint64_t>();
  EXPECT_EQ(fill(at, 100), CUDA_SUCCESS);
  EXPECT_EQ(fill(at, 101), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send(id_of::cuMemFreeAsync, Payload::of(at + 1, 0)).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send(id_of::cuMemFreeAsync, Payload::of(at, 0)).result, CUDA_SUCCESS);
  EXPECT_EQ(send(id_of::cuMemFreeAsync, Payload::of(at, 0)).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(fill(at, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(world.driver.live_allocations(), 0u);
}

TEST_F(SessionMemory, PoolsOfOthersAreInvalid) {
  const std::uint64_t stranger = Id{Handle::MemPool, 77}.value();
  EXPECT_EQ(send(id_of::cuMemAllocFromPoolAsync, Payload::of(8, 100, stranger, 0)).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send(id_of::cuMemPoolTrimTo, Payload::of(stranger, 0)).result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(send(id_of::cuDeviceSetMemPool, Payload::of(0, stranger)).result, CUDA_ERROR_INVALID_VALUE);
}

TEST_F(SessionMemory, AnAttributesLengthIsThatOfItsValue) {
  const std::uint64_t pool = send(id_of::cuDeviceGetMemPool, Payload::of(8, 0)).read<std::uint64_t>();
  const auto get = [&](int attribute, std::uint64_t length) { return Payload::of(pool, attribute, length); };
  EXPECT_EQ(send(id_of::cuMemPoolGetAttribute, get(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 8)).result, CUDA_SUCCESS);
  EXPECT_EQ(send(id_of::cuMemPoolGetAttribute, get(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 4)).result, CUDA_SUCCESS);
  expect_broken(id_of::cuMemPoolGetAttribute, get(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4), "too short");
  expect_broken(id_of::cuMemPoolGetAttribute, get(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 8), "too long");
  expect_broken(id_of::cuMemPoolGetAttribute, get(99, 8), "an attribute without a length");
  expect_broken(id_of::cuMemPoolGetAttribute, get(99, 0), "an attribute without a length, and none");
}

}  // namespace
