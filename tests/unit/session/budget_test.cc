// The limits of a session: bounded sums, and a guest that loads, makes and allocates up to the bound. Each way of
// freeing must return the share.
#include "host/session/memory/budget.h"

#include <gtest/gtest.h>

#include <limits>
#include <ostream>
#include <thread>
#include <vector>

#include "ring/abi/image.h"
#include "ring/api/texture_records.h"
#include "tests/unit/session/records.h"

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

// Returns a text of 1000 bytes. The text costs 1000 bytes while it loads, and 1000 bytes while it stays loaded.
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
  // Loads texts until a load is refused. Returns how many loads succeeded.
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
  EXPECT_EQ(fill(), 4);  // the fifth text would fit once loaded, but not while it loads
  const std::uint64_t asked = world.driver.calls("cuModuleLoadDataEx");
  EXPECT_EQ(load(world.next(Handle::Module)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(load_library(world.next(Handle::Library)), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.driver.calls("cuModuleLoadDataEx"), asked);
  EXPECT_EQ(world.driver.calls("cuLibraryLoadData"), 0u);
  EXPECT_FALSE(world.session->protocol.broken) << "a program that loads too much makes a mistake, and no more";
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
  EXPECT_EQ(world.session->code.budget.used(), 4000u);
}

TEST_F(ImageBudget, AResetGivesModulesBackAndKeepsLibraries) {
  EXPECT_EQ(load_library(world.next(Handle::Library)), CUDA_SUCCESS);
  EXPECT_EQ(fill(), 3);
  EXPECT_EQ(world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->code.budget.used(), 1000u);
  EXPECT_EQ(fill(), 3);
}

TEST_F(ImageBudget, WhatFailsComesBack) {
  world.driver.fail_next("cuModuleLoadDataEx", CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(load(world.next(Handle::Module)), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(world.session->code.budget.used(), 0u);
  const std::uint64_t module = world.next(Handle::Module);
  EXPECT_EQ(load(module), CUDA_SUCCESS);
  EXPECT_EQ(load(module), CUDA_ERROR_UNKNOWN) << "its id is taken: no program does that";
  EXPECT_EQ(world.session->code.budget.used(), 1000u);
  world.driver.fail_next("cuModuleUnload", CUDA_ERROR_NOT_READY);
  EXPECT_EQ(world.send(ids::cuModuleUnload, Payload::of(module)).result, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(world.session->code.budget.used(), 1000u) << "it is still loaded";
}

// A record of a few bytes may claim 5 GiB. The worker copies nothing, and the session continues.
TEST_F(ImageBudget, WhatOneRecordMayNotHaveIsNotCopied) {
  const Answer a = world.send(ids::cuModuleLoadData,
                              Payload::record(api::LoadRecord{world.next(Handle::Module), 0, 0, 1, 0, 0}).slot(6000));
  EXPECT_EQ(a.result, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.session->code.budget.used(), 0u);
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
  load_it();  // the fake driver finds no code in the text
  EXPECT_EQ(world.driver.calls("cuModuleLoadDataEx"), 1u);
  EXPECT_EQ(world.session->code.budget.used(), 0u);
}

// ---- processors ----------------------------------------------------------------------------------------------------

// If a worker may not poll, its contexts make waiting threads sleep, even after a reset.
TEST(Waits, SleepWhereTheSessionMayNotSpin) {
  for (const bool asleep : {false, true}) {
    host::ServeOptions options;
    options.waits_asleep = asleep;
    World world(options);
    // A thread caches its current context, so each session gets a new thread.
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
    EXPECT_FALSE(world.session->protocol.broken);
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
  EXPECT_EQ(world.session->objects.count() + world.session->memory.addresses.count(), 3u)
      << "its function and global went, too";
}

TEST_F(ObjectBudget, AResetGivesThemBack) {
  for (int i = 0; i < 3; ++i) world.stream(), world.memory(256);
  expect_full();
  EXPECT_EQ(world.send(ids::cuDevicePrimaryCtxReset_v2, Payload::of(0)).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->objects.count() + world.session->memory.addresses.count(), 0u);
}

TEST_F(ObjectBudget, TheSameGlobalCountsOnce) {
  const std::uint64_t module = world.module();
  const Payload look_up = Payload::record(api::GlobalRecord{module, sizeof "counter"}).text("counter");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(world.send(ids::cuModuleGetGlobal_v2, look_up).result, CUDA_SUCCESS);
  EXPECT_EQ(world.session->objects.count() + world.session->memory.addresses.count(), 2u);
}

TEST_F(ObjectBudget, PinnedPiecesCount) {
  for (int i = 0; i < 6; ++i) world.event();
  EXPECT_EQ(world.session->arena.pin(0, ring::huge_page), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(world.driver.registered_bytes(), 0u);
}

// ---- objects of each kind ------------------------------------------------------------------------------------------

constexpr std::uint64_t piece = 2 << 20;
constexpr std::uint64_t room = 2;  // the number of objects that the session may still make after `prepare`

using Ids = std::vector<std::uint64_t>;

// A kind of counted object: the call that makes an object, and the call that ends it.
struct Counted {
  const char* name;
  int make;
  const char* asked;  // the driver's function that must be called
  int end;
  std::uint64_t prepared;  // the number of prepared objects from which the counted objects are made
  bool ends_all;           // ending the first prepared object ends all other objects
  Ids (*prepare)(World& world);
  Payload (*one)(World& world, const Ids& prepared, std::uint64_t which);
  // Returns the payload of the call that ends an object. `made`: the payload that made the object.
  Payload (*ending)(const Ids& prepared, const Payload& made, const Answer& answer);
};
void PrintTo(const Counted& kind, std::ostream* out) { *out << kind.name; }

constexpr CUDA_ARRAY3D_DESCRIPTOR picture{
    .Width = 64, .Height = 0, .Depth = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = 0};

Payload new_array(World& world) {
  return Payload::of(world.next(Handle::Array), sizeof picture).bytes(&picture, sizeof picture);
}
Payload new_mipmapped(World& world) {
  return Payload::of(world.next(Handle::MipmappedArray), sizeof picture, 3).bytes(&picture, sizeof picture);
}
Payload new_pool(World& world) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return Payload::of(world.next(Handle::MemPool), sizeof props).bytes(&props, sizeof props);
}
Payload new_memory_object(World& world) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return Payload::of(world.next(Handle::Allocation), piece, sizeof p, 0).bytes(&p, sizeof p);
}
Payload new_reservation(std::uint64_t bytes) { return Payload::of(8, bytes, 0, 0, 0); }

std::uint64_t word_of(const Payload& payload, std::size_t i = 0) {
  std::uint64_t word = 0;
  std::memcpy(&word, payload.data().data() + i * sizeof word, sizeof word);
  return word;
}
std::uint64_t made_of(World& world, int call, const Payload& payload) {
  EXPECT_EQ(world.send(call, payload).result, CUDA_SUCCESS) << call;
  return word_of(payload);
}

Ids nothing(World&) { return {}; }
Ids an_array(World& world) { return {made_of(world, ids::cuArray3DCreate_v2, new_array(world))}; }
Ids a_mipmapped_array(World& world) { return {made_of(world, ids::cuMipmappedArrayCreate, new_mipmapped(world))}; }
Ids a_pool(World& world) { return {made_of(world, ids::cuMemPoolCreate, new_pool(world))}; }
Ids a_module(World& world) { return {world.module()}; }
// Makes a memory object and reserves addresses to map it.
Ids mappable(World& world) {
  const std::uint64_t object = made_of(world, ids::cuMemCreate, new_memory_object(world));
  const Answer at = world.send(ids::cuMemAddressReserve, new_reservation((room + 1) * piece));
  EXPECT_EQ(at.result, CUDA_SUCCESS);
  return {object, at.read<std::uint64_t>()};
}

Payload a_texture(World& world, const Ids& prepared, std::uint64_t) {
  api::CreateTextureRecord record{};
  record.id = world.next(Handle::Texture);
  record.resource.array = prepared[0];
  return Payload::record(record);
}

// Returns the payload with the object's id, for the call that ends the object.
Payload by_its_id(const Ids&, const Payload& made, const Answer&) { return Payload::of(word_of(made)); }
Payload by_its_owner(const Ids& prepared, const Payload&, const Answer&) { return Payload::of(prepared[0]); }
Payload by_its_address(const Ids&, const Payload&, const Answer& answer) {
  return Payload::of(answer.read<std::uint64_t>(), 0);
}

const Counted all_counted[] = {
    {"Array", ids::cuArray3DCreate_v2, "cuArray3DCreate_v2", ids::cuArrayDestroy, 0, false, nothing,
     [](World& w, const Ids&, std::uint64_t) { return new_array(w); }, by_its_id},
    {"ArrayPlane", ids::cuArrayGetPlane, "cuArrayGetPlane", ids::cuArrayDestroy, 1, true, an_array,
     [](World&, const Ids& of, std::uint64_t which) { return Payload::of(8, of[0], which); }, by_its_owner},
    {"MipmappedArray", ids::cuMipmappedArrayCreate, "cuMipmappedArrayCreate", ids::cuMipmappedArrayDestroy, 0, false,
     nothing, [](World& w, const Ids&, std::uint64_t) { return new_mipmapped(w); }, by_its_id},
    {"MipLevel", ids::cuMipmappedArrayGetLevel, "cuMipmappedArrayGetLevel", ids::cuMipmappedArrayDestroy, 1, true,
     a_mipmapped_array, [](World&, const Ids& of, std::uint64_t which) { return Payload::of(8, of[0], which); },
     by_its_owner},
    {"Pool", ids::cuMemPoolCreate, "cuMemPoolCreate", ids::cuMemPoolDestroy, 0, false, nothing,
     [](World& w, const Ids&, std::uint64_t) { return new_pool(w); }, by_its_id},
    {"PoolAllocation", ids::cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", ids::cuMemFreeAsync, 1, false, a_pool,
     [](World&, const Ids& of, std::uint64_t) { return Payload::of(8, 100, of[0], 0); }, by_its_address},
    {"AllocationInOrder", ids::cuMemAllocAsync, "cuMemAllocAsync", ids::cuMemFreeAsync, 0, false, nothing,
     [](World&, const Ids&, std::uint64_t) { return Payload::of(8, 100, 0); }, by_its_address},
    {"MemoryObject", ids::cuMemCreate, "cuMemCreate", ids::cuMemRelease, 0, false, nothing,
     [](World& w, const Ids&, std::uint64_t) { return new_memory_object(w); }, by_its_id},
    {"Reservation", ids::cuMemAddressReserve, "cuMemAddressReserve", ids::cuMemAddressFree, 0, false, nothing,
     [](World&, const Ids&, std::uint64_t) { return new_reservation(piece); },
     [](const Ids&, const Payload&, const Answer& a) { return Payload::of(a.read<std::uint64_t>(), piece); }},
    {"Mapping", ids::cuMemMap, "cuMemMap", ids::cuMemUnmap, 2, false, mappable,
     [](World&, const Ids& of, std::uint64_t which) { return Payload::of(of[1] + which * piece, piece, 0, of[0], 0); },
     [](const Ids&, const Payload& made, const Answer&) { return Payload::of(word_of(made), piece); }},
    {"Texture", ids::cuTexObjectCreate, "cuTexObjectCreate", ids::cuTexObjectDestroy, 1, false, an_array, a_texture,
     by_its_id},
    {"Surface", ids::cuSurfObjectCreate, "cuSurfObjectCreate", ids::cuSurfObjectDestroy, 1, false, an_array,
     [](World& w, const Ids& of, std::uint64_t) {
       return Payload::record(api::CreateSurfaceRecord{w.next(Handle::Surface), of[0]});
     },
     by_its_id},
    {"TextureReference", ids::cuTexRefCreate, "cuTexRefCreate", ids::cuTexRefDestroy, 0, false, nothing,
     [](World& w, const Ids&, std::uint64_t) { return Payload::of(w.next(Handle::TextureReference)); }, by_its_id},
    {"ModulesReference", ids::cuModuleGetTexRef, "cuModuleGetTexRef", ids::cuModuleUnload, 1, true, a_module,
     [](World& w, const Ids& of, std::uint64_t which) {
       return w.lookup(of[0], w.next(Handle::TextureReference), which == 0 ? "picture" : "picture2");
     },
     by_its_owner},
    {"Link", ids::cuLinkCreate_v2, "cuLinkCreate_v2", ids::cuLinkDestroy, 0, false, nothing,
     [](World& w, const Ids&, std::uint64_t) {
       return Payload::record(api::CreateLinkRecord{w.next(Handle::Link), 0, 0});
     },
     by_its_id},
};

class EachKind : public testing::TestWithParam<Counted> {
 protected:
  std::uint64_t counted() const {
    return world.session->objects.count() + world.session->memory.addresses.count() +
           world.session->memory.reserved.count();
  }
  Answer make(std::uint64_t which) {
    made = kind.one(world, prepared, which);
    return world.send(kind.make, made);
  }
  void expect_refused(std::uint64_t which) {
    const std::uint64_t asked = world.driver.calls(kind.asked);
    EXPECT_FALSE(world.session->may_make_another());
    EXPECT_EQ(make(which).result, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(world.driver.calls(kind.asked), asked) << "the driver is not asked";
    EXPECT_FALSE(world.session->protocol.broken) << "a program that makes too much makes a mistake, and no more";
    EXPECT_EQ(counted(), kind.prepared + room);
  }

  const Counted kind = GetParam();
  World world{with_objects(kind.prepared + room)};
  const Ids prepared = kind.prepare(world);
  Payload made;
};

TEST_P(EachKind, CountsUntilItEnds) {
  ASSERT_EQ(counted(), kind.prepared);
  Answer last;
  Payload last_made;
  for (std::uint64_t i = 0; i < room; ++i) {
    last = make(i);
    last_made = made;
    ASSERT_EQ(last.result, CUDA_SUCCESS) << i;
    EXPECT_EQ(counted(), kind.prepared + i + 1) << "one more";
  }
  expect_refused(room);
  ASSERT_EQ(world.send(kind.end, kind.ending(prepared, last_made, last)).result, CUDA_SUCCESS);
  EXPECT_EQ(counted(), kind.ends_all ? 0 : kind.prepared + room - 1) << "what has ended counts no more";
  if (kind.ends_all) return;
  EXPECT_EQ(make(room - 1).result, CUDA_SUCCESS) << "its place is free";
  expect_refused(room);
}

INSTANTIATE_TEST_SUITE_P(ObjectBudget, EachKind, testing::ValuesIn(all_counted),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
