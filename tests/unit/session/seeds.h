// Objects of the kinds that larger records refer to, and valid records about these objects, for tests that mutate
// records. Random words alone would hardly ever form a valid record.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "ring/api/texture_records.h"
#include "tests/unit/session/records.h"

namespace session_test {

// Makes arrays, textures, pools, memory objects, reservations and links.
class Seeds {
 public:
  struct Whole {
    int call;
    Payload payload;
    Handle proposes = Handle::None;  // the kind of id that the record proposes, if any, and the word with this id
    std::size_t at = 0;
  };
  Seeds(World& world, std::uint64_t module) : world_(world), module_(module), memory_(world.memory(4096)) {
    add_arrays();
    add_textures();
    add_references();
    add_pools();
    add_virtual_memory();
    add_links();
  }
  const std::vector<Whole>& whole() const { return whole_; }
  const std::vector<std::uint64_t>& words() const { return words_; }
  // Returns the record. If the record proposes an id, the result has a new id.
  Payload fresh(const Whole& whole) {
    return whole.proposes == Handle::None ? whole.payload
                                          : changed(whole.payload, whole.at, world_.next(whole.proposes));
  }
  static Payload changed(const Payload& payload, std::size_t i, std::uint64_t word) {
    std::vector<std::byte> bytes = payload.data();
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
    return Payload().bytes(bytes.data(), bytes.size());
  }

 private:
  static constexpr std::uint64_t piece = 2 << 20;

  Answer send(int call, const Payload& payload) {
    Answer a = world_.send(call, payload);
    EXPECT_EQ(a.result, CUDA_SUCCESS) << call;
    return a;
  }
  std::uint64_t seed(std::uint64_t word) { return words_.push_back(word), word; }
  // Adds a record whose first word proposes an id, and makes the object.
  std::uint64_t makes(int call, Handle kind, const Payload& payload) {
    whole_.push_back({call, payload, kind, 0});
    return makes_one_more(call);
  }
  // Sends the last record added for this call again, with a new id, so that there is a second object to use or to end.
  std::uint64_t makes_one_more(int call) {
    const auto whole = std::find_if(whole_.rbegin(), whole_.rend(), [&](const Whole& w) { return w.call == call; });
    const std::uint64_t id = world_.next(whole->proposes);
    send(call, changed(whole->payload, whole->at, id));
    return seed(id);
  }
  void names(int call, const Payload& payload) { whole_.push_back({call, payload}); }
  void finds(int call, Handle kind, const Payload& payload) { whole_.push_back({call, payload, kind, 1}); }

  void add_arrays() {
    const CUDA_ARRAY3D_DESCRIPTOR d{.Width = 64,
                                    .Height = 16,
                                    .Depth = 0,
                                    .Format = CU_AD_FORMAT_FLOAT,
                                    .NumChannels = 1,
                                    .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    array_ = makes(api::id_of::cuArray3DCreate_v2, Handle::Array, Payload::of(0, sizeof d).bytes(&d, sizeof d));
    names(api::id_of::cuArrayDestroy, Payload::of(makes_one_more(api::id_of::cuArray3DCreate_v2)));
    names(api::id_of::cuArrayGetPlane, Payload::of(8, array_, 1));
    mipmapped_ = makes(api::id_of::cuMipmappedArrayCreate, Handle::MipmappedArray,
                       Payload::of(0, sizeof d, 3).bytes(&d, sizeof d));
    names(api::id_of::cuMipmappedArrayDestroy, Payload::of(makes_one_more(api::id_of::cuMipmappedArrayCreate)));
    names(api::id_of::cuMipmappedArrayGetLevel, Payload::of(8, mipmapped_, 2));
    api::CopyTexelsRecord copy{};
    copy.width = 64, copy.height = 4, copy.depth = 1;
    copy.to.array = array_;
    copy.from.address = memory_, copy.from.pitch = 64, copy.from.rows = 4;
    names(api::id_of::cuMemcpyAtoD_v2, Payload::record(copy));
    std::swap(copy.to, copy.from);
    names(api::id_of::cuMemcpyHtoAAsync_v2, Payload::record(copy));
  }
  void add_textures() {
    constexpr int call = api::id_of::cuTexObjectCreate;
    api::CreateTextureRecord record{};
    record.resource.array = array_;
    names(api::id_of::cuTexObjectDestroy, Payload::of(makes(call, Handle::Texture, Payload::record(record))));
    record.resource = {};
    record.resource.mipmapped_array = mipmapped_, record.resource.type = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    makes(call, Handle::Texture, Payload::record(record));
    record.resource = {};
    record.resource.address = memory_, record.resource.type = CU_RESOURCE_TYPE_PITCH2D;
    record.resource.width = 64, record.resource.height = 16, record.resource.pitch = 256;
    record.resource.format = CU_AD_FORMAT_FLOAT, record.resource.channels = 1;
    makes(call, Handle::Texture, Payload::record(record));
    record.resource.type = CU_RESOURCE_TYPE_LINEAR;
    makes(call, Handle::Texture, Payload::record(record));
    const std::uint64_t surface =
        makes(api::id_of::cuSurfObjectCreate, Handle::Surface, Payload::record(api::CreateSurfaceRecord{0, array_}));
    names(api::id_of::cuSurfObjectDestroy, Payload::of(surface));
  }
  void add_references() {
    const std::uint64_t reference = makes(api::id_of::cuTexRefCreate, Handle::TextureReference, Payload::of(0));
    for (const int call : {api::id_of::cuTexRefSetAddress2D_v2, api::id_of::cuTexRefSetAddress2D_v3})
      names(call, Payload::record(api::BindRowsRecord{reference, memory_, 64, 16, 256, CU_AD_FORMAT_FLOAT, 1}));
    names(api::id_of::cuTexRefSetArray, Payload::of(reference, array_, 1));
    names(api::id_of::cuTexRefGetArray, Payload::of(8, reference));
    finds(api::id_of::cuModuleGetTexRef, Handle::TextureReference, world_.lookup(module_, 0, "picture"));
    finds(api::id_of::cuModuleGetSurfRef, Handle::SurfaceReference, world_.lookup(module_, 0, "board"));
  }
  void add_pools() {
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const Payload creation = Payload::of(0, sizeof props).bytes(&props, sizeof props);
    const std::uint64_t pool = makes(api::id_of::cuMemPoolCreate, Handle::MemPool, creation);
    names(api::id_of::cuMemPoolDestroy, Payload::of(makes_one_more(api::id_of::cuMemPoolCreate)));
    const Payload allocation = Payload::of(8, 256, pool, 0);
    names(api::id_of::cuMemAllocFromPoolAsync, allocation);
    names(api::id_of::cuMemFreeAsync,
          Payload::of(seed(send(api::id_of::cuMemAllocFromPoolAsync, allocation).read<std::uint64_t>()), 0));
  }
  void add_virtual_memory() {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    const CUmemAccessDesc access{.location = p.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const std::uint64_t object =
        makes(api::id_of::cuMemCreate, Handle::Allocation, Payload::of(0, piece, sizeof p, 0).bytes(&p, sizeof p));
    names(api::id_of::cuMemRelease, Payload::of(makes_one_more(api::id_of::cuMemCreate)));
    const std::uint64_t at = reserved(), doomed = reserved();
    send(api::id_of::cuMemMap, Payload::of(at, piece, 0, object, 0));
    names(api::id_of::cuMemAddressReserve, Payload::of(8, piece, 0, 0, 0));
    names(api::id_of::cuMemAddressFree, Payload::of(doomed, 2 * piece));
    names(api::id_of::cuMemMap, Payload::of(at + piece, piece, 0, object, 0));
    names(api::id_of::cuMemUnmap, Payload::of(at + piece, piece));
    names(api::id_of::cuMemSetAccess, Payload::of(at, piece, sizeof access, 1).bytes(&access, sizeof access));
    names(api::id_of::cuMemRetainAllocationHandle, Payload::of(8, at));
    seed(piece), seed(at + piece);
  }
  std::uint64_t reserved() {
    return seed(send(api::id_of::cuMemAddressReserve, Payload::of(8, 2 * piece, 0, 0, 0)).read<std::uint64_t>());
  }
  void add_links() {
    const std::uint64_t link =
        makes(api::id_of::cuLinkCreate_v2, Handle::Link, Payload::record(api::CreateLinkRecord{0, 0, 0}));
    names(api::id_of::cuLinkDestroy, Payload::of(makes_one_more(api::id_of::cuLinkCreate_v2)));
    api::AddToLinkRecord record{};
    record.id = link;
    record.arena = ring::absent;
    record.parts = record.named = 1;
    record.type = CU_JIT_INPUT_PTX;
    record.name_bytes = 6;
    const Payload input =
        Payload::record(record).slot(std::strlen(module_text)).bytes(module_text, std::strlen(module_text));
    names(api::id_of::cuLinkAddData_v2, Payload(input).text("input"));
    send(api::id_of::cuLinkAddData_v2, whole_.back().payload);
    names(api::id_of::cuLinkComplete, Payload::of(link));
    names(api::id_of::take_image, Payload::record(api::TakeImageRecord{link, 0, 64}));
  }

  World& world_;
  const std::uint64_t module_, memory_;
  std::uint64_t array_ = 0, mipmapped_ = 0;
  std::vector<Whole> whole_;
  std::vector<std::uint64_t> words_;
};

}  // namespace session_test
