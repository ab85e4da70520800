// Texture and surface objects as kernels see them: where texels lie, how they are read, and the table of the numbers
// that kernels hold. The driver's side (arrays, descriptors, cuTexObjectCreate) fills the table; the interpreter reads
// it. AddressSpace::textures() is the device's table.
//
// An Image without levels is one of nothing: kernels read zeros from it.
//
// Preconditions of an Image, held by whoever inserts it: every level that its geometry names lies wholly in memory that
// `keeps` keeps alive; with `keeps` null it lies in memory of the AddressSpace, and each access of a kernel is held
// against the ranges that are live then. The format is one for which texel_bytes() is not 0.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace simgpu {

// Linear: of a linear-memory resource, width texels in a row. D2 also for pitch memory.
enum class Geometry : std::uint8_t { Linear, D1, D2, D3, D1Layered, D2Layered, Cube, CubeLayered };

struct TexelFormat {  // after a resource view
  CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
  unsigned channels = 1;  // 1, 2 or 4; a format that names its own count (UNORM_INT8X4) has the same here
};

// The bytes of one texel; 0 for a format that textures and surfaces here do not have (block compression, video).
unsigned texel_bytes(TexelFormat format);
bool is_signed_format(CUarray_format format);

struct Level {
  std::byte* texels = nullptr;
  std::uint32_t width = 1;
  std::uint32_t height = 1;     // 1 for Linear, D1 and D1Layered
  std::uint32_t depth = 1;      // slices of D3, layers, 6 faces of Cube, 6 times layers of CubeLayered; else 1
  std::size_t row_pitch = 0;    // bytes from row to row
  std::size_t slice_pitch = 0;  // bytes from slice (layer, face) to slice
};

struct Image {
  Geometry geometry = Geometry::D2;
  TexelFormat format;
  std::vector<Level> levels;  // more than one only of a mipmapped array, the view's first level first
  std::shared_ptr<void> keeps;
  bool gather = false;  // of an array made with CUDA_ARRAY3D_TEXTURE_GATHER; changes nothing for a kernel
};

struct Sampler {
  CUaddress_mode address[3] = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP};
  CUfilter_mode filter = CU_TR_FILTER_MODE_POINT;
  CUfilter_mode mipmap_filter = CU_TR_FILTER_MODE_POINT;
  bool normalized = false;       // CU_TRSF_NORMALIZED_COORDINATES
  bool read_as_integer = false;  // CU_TRSF_READ_AS_INTEGER
  bool srgb = false;             // CU_TRSF_SRGB
  bool seamless_cube = false;    // CU_TRSF_SEAMLESS_CUBEMAP
  bool trilinear_optimization_off = false;
  float level_bias = 0;
  float min_level = 0;
  float max_level = 0;
  unsigned max_anisotropy = 0;  // kept, not used: sampling is isotropic
  float border[4] = {0, 0, 0, 0};
};

struct Texture {
  Image image;
  Sampler sampler;
};
struct Surface {
  Image image;  // one level at most
};

// What a number stands for: one of the two.
struct TextureObject {
  std::uint64_t number = 0;
  std::shared_ptr<const Texture> texture;
  std::shared_ptr<const Surface> surface;
};

// A table's objects at one moment. Alive as long as somebody holds it, with all that its objects keep.
class TextureList {
 public:
  const Texture* texture(std::uint64_t number) const;  // null: no such texture
  const Surface* surface(std::uint64_t number) const;
  // Whether the table has an entry for the number, be it empty: 0 has one, and so has a number whose object is gone.
  bool has_entry(std::uint64_t number) const;

 private:
  friend class TextureTable;
  const TextureObject* find(std::uint64_t number) const;
  std::vector<TextureObject> objects_;  // by slot
};

// The objects by number. A number is never 0, and is not given out again: its upper bits count the uses of its slot.
// Any thread may call anything at any time. A kernel that runs while its object goes away may still use it; the object
// and what it keeps live until that kernel's worker looks at the table again or ends its turn.
//
// Ordering. A: `generation` is advanced after the objects changed, under the mutex; a reader that sees the new number
// (A, acquire) and then takes a list sees at least that change.
class TextureTable {
 public:
  TextureTable() = default;
  TextureTable(const TextureTable&) = delete;
  TextureTable& operator=(const TextureTable&) = delete;

  std::uint64_t insert(Texture texture);
  std::uint64_t insert(Surface surface);
  bool remove_texture(std::uint64_t number);  // false: no such texture
  bool remove_surface(std::uint64_t number);
  std::shared_ptr<const Texture> texture(std::uint64_t number) const;  // null: no such texture
  std::shared_ptr<const Surface> surface(std::uint64_t number) const;

  // For the interpreter's workers.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }  // A
  std::shared_ptr<const TextureList> list() const;

 private:
  std::uint64_t insert(TextureObject object);
  bool remove(std::uint64_t number, bool is_texture);
  void changed();

  std::atomic<std::uint64_t> generation_{1};
  mutable std::mutex mutex_;  // for the members below
  TextureList current_;
  std::vector<std::uint32_t> free_slots_;
  mutable std::shared_ptr<const TextureList> list_;  // a copy of current_, made when first asked for after a change
};

}  // namespace simgpu
