// Invalid records about texture and surface references. As in hostile_textures_test.cc, each record ends the session or
// gets the documented error. The fake driver aborts if a record reaches it with an object or address that the session
// does not have.
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "ring/api/texture_records.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

class ReferenceRecords : public testing::Test {
 protected:
  void expect_broken(int call, const Payload& payload, const std::string& what = "") {
    const Answer a = world.send(call, payload);
    EXPECT_TRUE(a.broken) << call << " " << what;
    EXPECT_TRUE(a.reply.empty()) << call << " " << what;
  }
  void expect(CUresult result, int call, const Payload& payload, const std::string& what = "") {
    const Answer a = world.send(call, payload);
    EXPECT_FALSE(a.broken) << call << " " << what;
    EXPECT_EQ(a.result, result) << call << " " << what;
  }
  std::uint64_t reference() {
    const std::uint64_t id = world.next(Handle::TextureReference);
    expect(CUDA_SUCCESS, ids::cuTexRefCreate, Payload::of(id));
    return id;
  }
  std::uint64_t array() {
    const CUDA_ARRAY3D_DESCRIPTOR d{
        .Width = 64, .Height = 0, .Depth = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = 0};
    const std::uint64_t id = world.next(Handle::Array);
    expect(CUDA_SUCCESS, ids::cuArray3DCreate_v2, Payload::of(id, sizeof d).bytes(&d, sizeof d));
    return id;
  }
  std::uint64_t mipmapped() {
    const CUDA_ARRAY3D_DESCRIPTOR d{
        .Width = 64, .Height = 0, .Depth = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = 0};
    const std::uint64_t id = world.next(Handle::MipmappedArray);
    expect(CUDA_SUCCESS, ids::cuMipmappedArrayCreate, Payload::of(id, sizeof d, 3).bytes(&d, sizeof d));
    return id;
  }
  // Looks up a reference by its name in a module.
  std::uint64_t found(int call, std::uint64_t module, std::uint64_t proposed, const char* name = "picture") {
    const Answer a = world.send(call, world.lookup(module, proposed, name));
    EXPECT_EQ(a.result, CUDA_SUCCESS) << call;
    return a.read<api::DeriveReply>().id;
  }
  std::uint64_t texture_of(std::uint64_t module) {
    return found(ids::cuModuleGetTexRef, module, world.next(Handle::TextureReference));
  }
  std::uint64_t array_of(std::uint64_t of) {
    return world.send(ids::cuTexRefGetArray, Payload::of(8, of)).read<std::uint64_t>();
  }
  static Payload rows(std::uint64_t of, std::uint64_t at, std::uint64_t width, std::uint64_t height,
                      std::uint64_t pitch, unsigned channels = 1) {
    return Payload::record(api::BindRowsRecord{of, at, width, height, pitch, CU_AD_FORMAT_FLOAT, channels});
  }

  World world;
};

TEST_F(ReferenceRecords, AModulesReferenceGoesWithItsModuleAndNotBefore) {
  const std::uint64_t module = world.module(), r = texture_of(module);
  expect(CUDA_SUCCESS, ids::cuTexRefSetFlags, Payload::of(r, 1));
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexRefDestroy, Payload::of(r), "the module's");
  EXPECT_EQ(world.driver.calls("cuTexRefDestroy"), 0u);
  expect(CUDA_SUCCESS, ids::cuModuleUnload, Payload::of(module));
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexRefSetFlags, Payload::of(r, 1));
}

TEST_F(ReferenceRecords, LookupsOfWhatIsNotThere) {
  const std::uint64_t module = world.module(), library = world.library();
  for (const int call : {ids::cuModuleGetTexRef, ids::cuModuleGetSurfRef}) {
    const Handle kind = call == ids::cuModuleGetTexRef ? Handle::TextureReference : Handle::SurfaceReference;
    const Handle other = call == ids::cuModuleGetTexRef ? Handle::SurfaceReference : Handle::TextureReference;
    expect(CUDA_ERROR_NOT_FOUND, call, world.lookup(module, world.next(kind), "none"));
    for (const std::uint64_t from : {library, std::uint64_t{0}, most, module + 16})
      expect(CUDA_ERROR_INVALID_HANDLE, call, world.lookup(from, world.next(kind), "picture"));
    expect_broken(call, world.lookup(module, world.next(other), "picture"), "an id of another kind");
    expect_broken(call, world.lookup(module, module, "picture"), "a taken id");
    const std::uint64_t of_worker = Id{kind, Id::first_of_worker + 3}.value();
    expect_broken(call, world.lookup(module, of_worker, "picture"), "an id of the worker's half");
    expect_broken(call, Payload::record(api::LookupRecord{module, world.next(kind), most}).text("picture"), "a length");
    expect_broken(call, Payload::record(api::LookupRecord{module, world.next(kind), 0}), "no name");
  }
}

TEST_F(ReferenceRecords, ReferencesOfOthersAreInvalid) {
  const std::uint64_t r = reference(), surface = found(ids::cuModuleGetSurfRef, world.module(),
                                                       world.next(Handle::SurfaceReference), "board");
  for (const std::uint64_t id : {std::uint64_t{0}, r + 16, surface, world.stream(), most}) {
    expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexRefSetFlags, Payload::of(id, 0));
    expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexRefGetArray, Payload::of(8, id));
    expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexRefSetAddress2D_v3, rows(id, 0, 0, 0, 0));
    expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexRefDestroy, Payload::of(id));
  }
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuSurfRefSetArray, Payload::of(r, array(), 0));
  expect(CUDA_SUCCESS, ids::cuSurfRefSetArray, Payload::of(surface, array(), 0));
  expect(CUDA_SUCCESS, ids::cuTexRefDestroy, Payload::of(r));
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexRefDestroy, Payload::of(r));
}

TEST_F(ReferenceRecords, AnArrayIsGivenBackByItsId) {
  const std::uint64_t r = reference(), one = array(), levels = mipmapped();
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexRefGetArray, Payload::of(8, r), "of none");
  expect(CUDA_SUCCESS, ids::cuTexRefSetArray, Payload::of(r, one, 1));
  EXPECT_EQ(array_of(r), one);
  expect(CUDA_SUCCESS, ids::cuTexRefSetMipmappedArray, Payload::of(r, levels, 1));
  EXPECT_EQ(world.send(ids::cuTexRefGetMipmappedArray, Payload::of(8, r)).read<std::uint64_t>(), levels);
  expect_broken(ids::cuTexRefGetArray, Payload::of(16, r), "room for two");
  for (const std::uint64_t id : {levels, r, std::uint64_t{0}, most})
    expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexRefSetArray, Payload::of(r, id, 1));
}

// The driver returns the handle of the destroyed array. The guest must get no id for this handle.
TEST_F(ReferenceRecords, AnArrayThatHasEndedIsNotGivenBack) {
  const std::uint64_t r = reference(), one = array(), before = world.session->objects.count();
  expect(CUDA_SUCCESS, ids::cuTexRefSetArray, Payload::of(r, one, 1));
  expect(CUDA_SUCCESS, ids::cuArrayDestroy, Payload::of(one));
  const Answer a = world.send(ids::cuTexRefGetArray, Payload::of(8, r));
  EXPECT_EQ(a.result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(a.reply.empty());
  EXPECT_EQ(world.driver.calls("cuTexRefGetArray"), 1u);
  EXPECT_EQ(world.session->objects.count(), before - 1);
}

TEST_F(ReferenceRecords, MemoryThatIsNotTheSessions) {
  const std::uint64_t r = reference(), memory = world.memory(4096);
  const auto bind = [&](std::uint64_t at, std::uint64_t bytes) { return Payload::of(8, r, at, bytes); };
  expect(CUDA_SUCCESS, ids::cuTexRefSetAddress_v2, bind(memory, 4096));
  expect(CUDA_SUCCESS, ids::cuTexRefSetAddress_v2, Payload::of(ring::absent, r, memory, 4096), "no offset");
  expect(CUDA_SUCCESS, ids::cuTexRefSetAddress_v2, bind(0, 64), "none");
  EXPECT_EQ(world.driver.calls("cuTexRefSetAddress_v2"), 3u);
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexRefSetAddress_v2, bind(memory - 8, 16));
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexRefSetAddress_v2, bind(memory + 4096, 16), "behind the end");
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexRefSetAddress_v2, bind(0x1000, 16));
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexRefSetAddress_v2, bind(0x1000, 0));
  expect_broken(ids::cuTexRefSetAddress_v2, Payload::of(4, r, memory, 16), "an offset of another length");
  for (const int call : {ids::cuTexRefSetAddress2D_v2, ids::cuTexRefSetAddress2D_v3}) {
    expect(CUDA_SUCCESS, call, rows(r, memory, 64, 16, 256));
    expect(CUDA_SUCCESS, call, rows(r, memory, 0, 16, 256), "nothing of it");
    expect(CUDA_SUCCESS, call, rows(r, 0, 64, 16, 256), "none");
    expect(CUDA_ERROR_INVALID_VALUE, call, rows(r, memory - 8, 64, 16, 256));
    expect(CUDA_ERROR_INVALID_VALUE, call, rows(r, memory + 4096, 0, 0, 0));
    expect_broken(call, rows(r, memory, 64, 16, 256).slot(0).slot(0), "bytes left over");
  }
}

// As for texture objects, only the driver checks the length of the memory.
TEST_F(ReferenceRecords, MemoryThatIsTooShortReachesTheDriver) {
  const std::uint64_t r = reference(), memory = world.memory(4096);
  for (const std::uint64_t bytes : {std::uint64_t{4097}, most})
    expect(CUDA_SUCCESS, ids::cuTexRefSetAddress_v2, Payload::of(8, r, memory, bytes));
  for (const int call : {ids::cuTexRefSetAddress2D_v2, ids::cuTexRefSetAddress2D_v3}) {
    expect(CUDA_SUCCESS, call, rows(r, memory, 64, 17, 256));
    expect(CUDA_SUCCESS, call, rows(r, memory, 65, 16, 256, 2));
    expect(CUDA_SUCCESS, call, rows(r, memory, most, 2, 256));
    expect(CUDA_SUCCESS, call, rows(r, memory, 1, 1ULL << 40, 1ULL << 40));
  }
}

// A float crosses as its bits, an array of floats as bytes.
TEST_F(ReferenceRecords, Floats) {
  const std::uint64_t r = reference();
  const float border[4] = {0, 0.25f, 0.5f, 1};
  expect(CUDA_SUCCESS, ids::cuTexRefSetMipmapLevelBias, Payload::of(r, std::bit_cast<std::uint32_t>(-1.5f)));
  EXPECT_EQ(world.send(ids::cuTexRefGetMipmapLevelBias, Payload::of(4, r)).read<float>(), -1.5f);
  expect_broken(ids::cuTexRefSetMipmapLevelBias, Payload::of(r, 1ULL << 32), "more than a float");
  expect(CUDA_SUCCESS, ids::cuTexRefSetBorderColor, Payload::of(r, 16).bytes(border, 16));
  expect_broken(ids::cuTexRefSetBorderColor, Payload::of(r, 4).bytes(border, 4), "one");
  expect_broken(ids::cuTexRefSetBorderColor, Payload::of(r, ring::absent), "none");
  expect_broken(ids::cuTexRefGetBorderColor, Payload::of(20, r), "room for five");
  EXPECT_EQ(world.send(ids::cuTexRefGetBorderColor, Payload::of(16, r)).reply.size(), 16u);
}

}  // namespace
