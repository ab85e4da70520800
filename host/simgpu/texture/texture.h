// Texture and surface objects as kernels use them: texel memory, sampling parameters, and the table of object numbers.
// The driver (arrays, descriptors, cuTexObjectCreate) fills the table; the interpreter reads it.
// AddressSpace::textures() is the table of a device.
//
// Kernels read zeros from an Image without levels.
//
// Preconditions of an Image, which its creator ensures: each level lies wholly in memory that `keeps` owns. If `keeps`
// is null, the level lies in AddressSpace memory, and each access is checked against the live ranges. texel_bytes() of
// the format is not 0.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ring/base/mutex.h"

namespace simgpu {

// Linear: one row of `width` texels in linear memory. D2 includes pitch memory.
enum class Geometry : std::uint8_t { Linear, D1, D2, D3, D1Layered, D2Layered, Cube, CubeLayered };

struct TexelFormat {  // the format after applying a resource view
  CUarray_format format = CU_AD_FORMAT_UNSIGNED_INT8;
  unsigned channels = 1;  // 1, 2 or 4; the format's own number if it implies one (UNORM_INT8X4)
};

// Returns the bytes of a texel; 0 for formats that are not supported (block compression, video).
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
  std::vector<Level> levels;  // only a mipmapped array has several; the first level of the view comes first
  std::shared_ptr<void> keeps;
  bool gather = false;  // created with CUDA_ARRAY3D_TEXTURE_GATHER; no effect on kernels
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
  unsigned max_anisotropy = 0;  // stored without effect: sampling is isotropic
  float border[4] = {0, 0, 0, 0};
};

struct Texture {
  Image image;
  Sampler sampler;
};
struct Surface {
  Image image;  // has at most one level
};

// A table entry: a texture or a surface.
struct TextureObject {
  std::uint64_t number = 0;
  std::shared_ptr<const Texture> texture;
  std::shared_ptr<const Surface> surface;
};

// A snapshot of the table. The objects keep their memory while the snapshot exists.
class TextureList {
 public:
  const Texture* texture(std::uint64_t number) const;  // null: no texture has this number
  const Surface* surface(std::uint64_t number) const;
  // Returns true if the table has a slot for the number, even an empty slot: for 0, or for a destroyed object's number.
  bool has_entry(std::uint64_t number) const;

 private:
  friend class TextureTable;
  const TextureObject* find(std::uint64_t number) const;
  std::vector<TextureObject> objects_;  // indexed by slot
};

// The texture and surface objects of a device by number. Numbers are never 0 and never reused: the upper bits count the
// uses of the slot. Thread-safe. A running kernel may use a destroyed object. Such an object exists until the kernel's
// worker refreshes its snapshot or ends its time slice.
//
// Memory order A: a writer changes the objects and then increments `generation`, both under the mutex. A reader that
// loads the new number with acquire order and then takes a list sees the change.
class TextureTable {
 public:
  TextureTable() = default;
  TextureTable(const TextureTable&) = delete;
  TextureTable& operator=(const TextureTable&) = delete;

  std::uint64_t insert(Texture texture);
  std::uint64_t insert(Surface surface);
  bool remove_texture(std::uint64_t number);  // false: no texture has this number
  bool remove_surface(std::uint64_t number);
  std::shared_ptr<const Texture> texture(std::uint64_t number) const;  // null: no texture has this number
  std::shared_ptr<const Surface> surface(std::uint64_t number) const;

  // These two functions are for the interpreter's workers.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }  // memory order A
  std::shared_ptr<const TextureList> list() const;

 private:
  std::uint64_t insert(TextureObject object);
  bool remove(std::uint64_t number, bool is_texture);
  void changed() REQUIRES(mutex_);

  std::atomic<std::uint64_t> generation_{1};
  mutable ring::Mutex mutex_;
  TextureList current_ GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_slots_ GUARDED_BY(mutex_);
  // A copy of current_, created at the first use after a change.
  mutable std::shared_ptr<const TextureList> list_ GUARDED_BY(mutex_);
};

}  // namespace simgpu
