// Invalid records about arrays, textures and surfaces. As in hostile_test.cc, each record ends the session or gets the
// documented error. The fake driver aborts if a record reaches it with an object or address that the session does not
// have.
#include <gtest/gtest.h>

#include <limits>

#include "ring/api/texture_records.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
namespace ids = api::id_of;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

class TextureRecords : public testing::Test {
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
  static CUDA_ARRAY3D_DESCRIPTOR description() {
    return {.Width = 64,
            .Height = 16,
            .Depth = 0,
            .Format = CU_AD_FORMAT_FLOAT,
            .NumChannels = 1,
            .Flags = CUDA_ARRAY3D_SURFACE_LDST};
  }
  std::uint64_t array() { return created(ids::cuArray3DCreate_v2, Handle::Array, Payload()); }
  std::uint64_t mipmapped() { return created(ids::cuMipmappedArrayCreate, Handle::MipmappedArray, Payload::of(3)); }
  std::uint64_t level_of(std::uint64_t owner, std::uint64_t which) {
    const Answer a = world.send(ids::cuMipmappedArrayGetLevel, Payload::of(8, owner, which));
    EXPECT_EQ(a.result, CUDA_SUCCESS);
    return a.read<std::uint64_t>();
  }

  api::CreateTextureRecord of_array(std::uint64_t id) {
    api::CreateTextureRecord record{};
    record.id = world.next(Handle::Texture);
    record.resource.array = id;
    return record;
  }
  api::CreateTextureRecord of_memory(std::uint64_t at, std::uint64_t bytes) {
    api::CreateTextureRecord record{};
    record.id = world.next(Handle::Texture);
    record.resource.type = CU_RESOURCE_TYPE_LINEAR;
    record.resource.address = at, record.resource.width = bytes;
    record.resource.format = CU_AD_FORMAT_FLOAT, record.resource.channels = 1;
    return record;
  }
  api::CreateTextureRecord of_rows(std::uint64_t at, std::uint64_t width, std::uint64_t height, std::uint64_t pitch) {
    api::CreateTextureRecord record = of_memory(at, width);
    record.resource.type = CU_RESOURCE_TYPE_PITCH2D;
    record.resource.height = height, record.resource.pitch = pitch;
    return record;
  }
  static Payload payload(const api::CreateTextureRecord& record) { return Payload::record(record); }

  api::CopyTexelsRecord to_array(std::uint64_t id, std::uint64_t from) {
    api::CopyTexelsRecord record{};
    record.to.array = id;
    record.from.address = from, record.from.pitch = 64, record.from.rows = 4;
    record.width = 64, record.height = 4, record.depth = 1;
    return record;
  }

  World world;

 private:
  std::uint64_t created(int call, Handle kind, Payload rest) {
    const std::uint64_t id = world.next(kind);
    const CUDA_ARRAY3D_DESCRIPTOR d = description();
    Payload p = Payload::of(id, sizeof d);
    p.bytes(rest.data().data(), rest.size());
    p.bytes(&d, sizeof d);
    EXPECT_EQ(world.send(call, p).result, CUDA_SUCCESS) << call;
    return id;
  }
};

TEST_F(TextureRecords, LevelsHaveOneIdAndGoWithTheirOwner) {
  const std::uint64_t owner = mipmapped(), level = level_of(owner, 1);
  CUDA_ARRAY3D_DESCRIPTOR d{};
  expect(CUDA_SUCCESS, ids::cuArray3DGetDescriptor_v2, Payload::of(sizeof d, level));
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuMipmappedArrayGetLevel, Payload::of(8, owner, 3));
  expect_broken(ids::cuMipmappedArrayGetLevel, Payload::of(4, owner, 0), "no room for an id");
  expect_broken(ids::cuMipmappedArrayGetLevel, Payload::of(8, owner, most), "a number that no unsigned holds");
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuMipmappedArrayGetLevel, Payload::of(8, level, 0), "of an array");
  expect(CUDA_SUCCESS, ids::cuMipmappedArrayDestroy, Payload::of(owner));
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuArray3DGetDescriptor_v2, Payload::of(sizeof d, level));
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuMipmappedArrayDestroy, Payload::of(owner));
}

TEST_F(TextureRecords, DescriptionsOfAnotherLengthBreak) {
  const CUDA_ARRAY3D_DESCRIPTOR d = description();
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{8}, sizeof d - 8, sizeof d + 8, most})
    expect_broken(ids::cuArray3DCreate_v2, Payload::of(world.next(Handle::Array), length).bytes(&d, sizeof d));
  expect_broken(ids::cuArray3DGetDescriptor_v2, Payload::of(8, array()));
}

TEST_F(TextureRecords, TexturesOfWhatIsNotTheSessions) {
  const std::uint64_t one = array(), levels = mipmapped(), memory = world.memory(4096), stream = world.stream();
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(of_array(one)));
  for (const std::uint64_t id : {stream, levels, one + 16, most, std::uint64_t{1}})
    expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexObjectCreate, payload(of_array(id)));
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(of_memory(memory, 4096)));
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexObjectCreate, payload(of_memory(memory + 4096, 16)), "behind the end");
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexObjectCreate, payload(of_memory(memory - 8, 16)));
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexObjectCreate, payload(of_memory(0x1000, 16)));
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(of_rows(memory, 16, 16, 256)));
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexObjectCreate, payload(of_rows(memory + 4096, 16, 1, 256)));
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexObjectCreate, payload(of_rows(memory - 8, 16, 16, 256)));
}

// Kernels read through a texture, but a kernel can read any address anyway. Hence only the driver checks the length.
TEST_F(TextureRecords, TexturesLongerThanTheirMemoryReachTheDriver) {
  const std::uint64_t memory = world.memory(4096);
  for (const std::uint64_t bytes : {std::uint64_t{4097}, std::uint64_t{1} << 30, most})
    expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(of_memory(memory + 8, bytes)));
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(of_rows(memory, 16, 17, 256)));
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(of_rows(memory, 65, 16, 256)));
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(of_rows(memory, most, 2, 256)));
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(of_rows(memory, 1, 1ULL << 40, 1ULL << 40)));
  EXPECT_EQ(world.driver.calls("cuTexObjectCreate"), 7u);
}

TEST_F(TextureRecords, TexturesThatOurLibraryNeverDescribes) {
  const std::uint64_t one = array(), memory = world.memory(4096);
  const auto broken = [&](const char* what, auto change) {
    api::CreateTextureRecord record = of_array(one);
    change(record);
    expect_broken(ids::cuTexObjectCreate, payload(record), what);
  };
  broken("no array", [](auto& r) { r.resource.array = 0; });
  broken("no mipmapped array", [](auto& r) { r.resource.type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY; });
  broken("a type that there is not", [](auto& r) { r.resource.type = CU_RESOURCE_TYPE_PITCH2D + 1; });
  broken("padding", [](auto& r) { r.resource.pad = 1; });
  broken("padding of the view", [](auto& r) { r.has_view = 1, r.view.pad = 1; });
  broken("a view that is none", [](auto& r) { r.view.width = 1; });
  broken("two views", [](auto& r) { r.has_view = 2; });
  const Payload good = payload(of_memory(memory, 16));
  expect_broken(ids::cuTexObjectCreate, Payload(good).slot(0).slot(0).slot(0), "bytes left over");
  EXPECT_TRUE(world.send_exactly(ids::cuTexObjectCreate, Payload(good).cut(good.size() - 8)).broken);
  EXPECT_EQ(world.driver.calls("cuTexObjectCreate"), 0u);
  // The worker checks the proposed id after the driver has made the object. Both the session and the object then end.
  broken("an id of another kind", [&](auto& r) { r.id = world.next(Handle::Surface); });
  broken("a taken id", [&](auto& r) { r.id = one; });
}

// Even a texture of zero texels must lie in the session's memory.
TEST_F(TextureRecords, TexturesOfNothingLieInTheSessionsMemory) {
  const std::uint64_t memory = world.memory(4096);
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexObjectCreate, payload(of_memory(0, 0)), "nowhere");
  expect(CUDA_ERROR_INVALID_VALUE, ids::cuTexObjectCreate, payload(of_memory(memory + 4096, 0)), "behind the end");
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(of_memory(memory, 0)), "nothing");
}

// The worker clears members that the resource type does not use; otherwise the driver would abort.
TEST_F(TextureRecords, TheDriverGetsWhatTheTypeUses) {
  const std::uint64_t one = array(), memory = world.memory(4096);
  api::CreateTextureRecord record = of_array(one);
  record.resource.address = memory, record.resource.width = 7, record.resource.pitch = 9;
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(record));
  record = of_memory(memory, 64);
  record.resource.array = one, record.resource.height = 3;
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(record));
}

TEST_F(TextureRecords, ObjectsEndOnce) {
  const std::uint64_t one = array();
  const api::CreateTextureRecord record = of_array(one);
  const Answer a = world.send(ids::cuTexObjectCreate, payload(record));
  EXPECT_EQ(a.result, CUDA_SUCCESS);
  EXPECT_NE(a.read<api::TextureReply>().number, 0u);
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuSurfObjectDestroy, Payload::of(record.id), "a texture");
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexObjectDestroy, Payload::of(a.read<api::TextureReply>().number),
         "a number");
  expect(CUDA_SUCCESS, ids::cuTexObjectDestroy, Payload::of(record.id));
  expect(CUDA_ERROR_INVALID_HANDLE, ids::cuTexObjectDestroy, Payload::of(record.id));
}

// A surface outlives its array, since the program still has the surface's handle.
TEST_F(TextureRecords, ObjectsOutliveTheirArray) {
  const std::uint64_t one = array(), surface = world.next(Handle::Surface);
  const api::CreateTextureRecord record = of_array(one);
  expect(CUDA_SUCCESS, ids::cuTexObjectCreate, payload(record));
  expect(CUDA_SUCCESS, ids::cuSurfObjectCreate, Payload::of(surface, one));
  expect(CUDA_SUCCESS, ids::cuArrayDestroy, Payload::of(one));
  expect(CUDA_SUCCESS, ids::cuTexObjectDestroy, Payload::of(record.id));
  expect(CUDA_SUCCESS, ids::cuSurfObjectDestroy, Payload::of(surface));
}

TEST_F(TextureRecords, SurfacesAreOfArrays) {
  expect_broken(ids::cuSurfObjectCreate, Payload::of(world.next(Handle::Surface), 0), "no array");
  for (const std::uint64_t id : {mipmapped(), world.stream(), most})
    expect(CUDA_ERROR_INVALID_HANDLE, ids::cuSurfObjectCreate, Payload::of(world.next(Handle::Surface), id));
}

TEST_F(TextureRecords, CopiesOfWhatIsNotTheSessions) {
  const std::uint64_t one = array(), memory = world.memory(256);
  const api::CopyTexelsRecord good = to_array(one, memory);
  const auto change = [&](CUresult result, const char* what, auto changed) {
    api::CopyTexelsRecord record = good;
    changed(record);
    expect(result, ids::cuMemcpyAtoD_v2, Payload::record(record), what);
    expect(result, ids::cuMemcpyHtoAAsync_v2, Payload::record(record), what);
  };
  change(CUDA_SUCCESS, "good", [](auto&) {});
  change(CUDA_SUCCESS, "between arrays", [&](auto& r) { r.from = r.to; });
  change(CUDA_SUCCESS, "with places", [](auto& r) { r.to.x = 4, r.to.y = 2, r.to.z = 1; });
  change(CUDA_ERROR_INVALID_HANDLE, "another's array", [](auto& r) { r.to.array += 16; });
  change(CUDA_ERROR_INVALID_HANDLE, "a stream", [&](auto& r) { r.to.array = world.stream(); });
  change(CUDA_ERROR_INVALID_VALUE, "beyond the memory", [](auto& r) { r.from.address += 1; });
  change(CUDA_ERROR_INVALID_VALUE, "a row too many", [](auto& r) { r.height = 5; });
  change(CUDA_ERROR_INVALID_VALUE, "no memory", [](auto& r) { r.from.address = 0; });
  change(CUDA_ERROR_INVALID_VALUE, "an address beside an array", [](auto& r) { r.to.address = 8; });
  change(CUDA_ERROR_INVALID_VALUE, "nothing", [](auto& r) { r.width = 0; });
  change(CUDA_ERROR_INVALID_VALUE, "a product that overflows",
         [](auto& r) { r.from.pitch = most, r.depth = 2, r.from.rows = most; });
}

TEST_F(TextureRecords, CopiesThatOurLibraryNeverDescribes) {
  const std::uint64_t one = array(), memory = world.memory(256);
  const auto broken = [&](const char* what, auto change) {
    api::CopyTexelsRecord record = to_array(one, memory);
    change(record);
    expect_broken(ids::cuMemcpyAtoD_v2, Payload::record(record), what);
    expect_broken(ids::cuMemcpyHtoAAsync_v2, Payload::record(record), what);
  };
  broken("a pitch below the width", [](auto& r) { r.from.pitch = 63; });
  broken("slices that overlap", [](auto& r) { r.depth = 2, r.from.rows = 3; });
  broken("a place in memory", [](auto& r) { r.from.x = 4; });
  broken("a row's place in memory", [](auto& r) { r.from.y = 1; });
  broken("a slice's place in memory", [](auto& r) { r.from.z = 1; });
  EXPECT_EQ(world.driver.calls("cuMemcpy3D_v2"), 0u);
}

}  // namespace
