// Texture and surface objects as kernels use them: texel memory, sampling parameters, and the table of object numbers.
// The driver (arrays, descriptors, cuTexObjectCreate) fills the table; the interpreter reads it.
// AddressSpace::textures() is the device's table.
//
// Kernels read zeros from an Image without levels.
//
// Preconditions of an Image, ensured by its creator: each level lies wholly in memory that `keeps` owns. If `keeps` is
// null, the level lies in AddressSpace memory, and each access is checked against the live ranges. texel_bytes() of the
// format is not 0.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace simgpu {

// Linear: `width` texels of linear memory in a row. D2 includes pitch memory.
enum class Geometry : std::uint8_t { Linear, D1, D2, D3, D1Layered, D2Layered, Cube, CubeLayered };

struct TexelFormat {  // after a resource view
  CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
  unsigned channels = 1;  // 1, 2 or 4; equals the format's own count if it has one (UNORM_INT8X4)
};

// The bytes of a texel; 0 for unserved formats (block compression, video).
unsigned texel_bytes(TexelFormat format);
bool is_signed_format(CUarray_format format);

struct Level {
  std::byte* texels = nullptr;
  std::uint32_t width = 1;
  std::uint32_t height = 1;     // 1 for Linear, D1 and D1Layered
  std::uint32_t depth = 1;      // D3: slices; arrays: layers; Cube: 6 faces; CubeLayered: 6 * layers; else 1
  std::size_t row_pitch = 0;    // bytes between rows
  std::size_t slice_pitch = 0;  // bytes between slices, layers or faces
};

struct Image {
  Geometry geometry = Geometry::D2;
  TexelFormat format;
  std::vector<Level> levels;  // several only for a mipmapped array; the view's first level first
  std::shared_ptr<void> keeps;
  bool gather = false;  // made with CUDA_ARRAY3D_TEXTURE_GATHER; no effect on kernels
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
  unsigned max_anisotropy = 0;  // stored but unused: sampling is isotropic
  float border[4] = {0, 0, 0, 0};
};

struct Texture {
  Image image;
  Sampler sampler;
};
struct Surface {
  Image image;  // one level at most
};

// A table entry: a texture or a surface.
struct TextureObject {
  std::uint64_t number = 0;
  std::shared_ptr<const Texture> texture;
  std::shared_ptr<const Surface> surface;
};

// A snapshot of a table. While it exists, its objects keep their memory.
class TextureList {
 public:
  const Texture* texture(std::uint64_t number) const;  // null: no such texture
  const Surface* surface(std::uint64_t number) const;
  // True if the table has a slot for the number, even an empty one: for 0, or a destroyed object's number.
  bool has_entry(std::uint64_t number) const;

 private:
  friend class TextureTable;
  const TextureObject* find(std::uint64_t number) const;
  std::vector<TextureObject> objects_;  // by slot
};

// The objects by number. Numbers are never 0 or reused: the upper bits count the uses of the slot. Thread-safe. A
// running kernel may use a destroyed object, which lives until the kernel's worker refreshes its snapshot or ends its
// time slice.
//
// Ordering. A: a writer increments `generation` after changing the objects, under the mutex. A reader that loads the
// new number (A, acquire) and then takes a list sees that change.
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
  mutable std::shared_ptr<const TextureList> list_;  // copy of current_, made at the first use after a change
};

}  // namespace simgpu
