// Computes the shape of an array from its description: the geometry, the limits of the device, and the offset of each
// level.
#include <algorithm>
#include <bit>
#include <initializer_list>
#include <optional>

#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/texture/array.h"
#include "host/simgpu/api/texture/array_format.h"

namespace simgpu {
namespace {

using Description = CUDA_ARRAY3D_DESCRIPTOR;

// An H200 accepts and returns bit 31, which has no name in cuda.h. It refuses the flags for colour attachments and
// depth textures, which only graphics APIs use.
constexpr unsigned nameless_flag = 1U << 31;
constexpr unsigned known_flags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                                 CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING |
                                 CUDA_ARRAY3D_VIDEO_ENCODE_DECODE | nameless_flag;
// The attributes of the device report that it supports neither feature.
constexpr unsigned refused_flags = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

// Alignment in bytes of rows and of levels. 32 keeps vectors of four floats aligned.
constexpr std::size_t row_step = 32, level_step = 512;

std::size_t round_up(std::size_t size, std::size_t step) { return (size + step - 1) / step * step; }

bool has(const Description& d, unsigned flag) { return (d.Flags & flag) != 0; }

std::optional<Geometry> geometry_of(const Description& d) {
  const bool layered = has(d, CUDA_ARRAY3D_LAYERED);
  if (d.Width == 0) return std::nullopt;
  if (has(d, CUDA_ARRAY3D_CUBEMAP)) {
    const bool faces = layered ? d.Depth != 0 && d.Depth % 6 == 0 : d.Depth == 6;
    if (d.Width != d.Height || !faces) return std::nullopt;
    return layered ? Geometry::CubeLayered : Geometry::Cube;
  }
  if (layered) {
    if (d.Depth == 0) return std::nullopt;
    return d.Height == 0 ? Geometry::D1Layered : Geometry::D2Layered;
  }
  if (d.Height == 0) return d.Depth == 0 ? std::optional(Geometry::D1) : std::nullopt;
  return d.Depth == 0 ? Geometry::D2 : Geometry::D3;
}

// The device attributes that limit the dimensions; 0 if a dimension has no attribute of its own.
struct Limits {
  CUdevice_attribute width{}, height{}, depth{};
};

bool within(const Device& device, const Description& d, const Limits& limits) {
  const auto fits = [&](std::size_t size, CUdevice_attribute attribute) {
    return attribute == 0 || size <= static_cast<std::size_t>(device_attribute(device, attribute).value_or(0));
  };
  return fits(d.Width, limits.width) && fits(d.Height, limits.height) && fits(d.Depth, limits.depth);
}

constexpr CUdevice_attribute none{};
#define TEXTURE(limit) CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE##limit
#define SURFACE(limit) CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE##limit

bool fits_surface(const Device& device, const Description& d, Geometry geometry) {
  switch (geometry) {
    case Geometry::Linear:
    case Geometry::D1: return within(device, d, {SURFACE(1D_WIDTH), none, none});
    case Geometry::D2: return within(device, d, {SURFACE(2D_WIDTH), SURFACE(2D_HEIGHT), none});
    case Geometry::D3: return within(device, d, {SURFACE(3D_WIDTH), SURFACE(3D_HEIGHT), SURFACE(3D_DEPTH)});
    case Geometry::D1Layered: return within(device, d, {SURFACE(1D_LAYERED_WIDTH), none, SURFACE(1D_LAYERED_LAYERS)});
    case Geometry::D2Layered:
      return within(device, d, {SURFACE(2D_LAYERED_WIDTH), SURFACE(2D_LAYERED_HEIGHT), SURFACE(2D_LAYERED_LAYERS)});
    case Geometry::Cube: return within(device, d, {SURFACE(CUBEMAP_WIDTH), none, none});
    case Geometry::CubeLayered:
      return within(device, d, {SURFACE(CUBEMAP_LAYERED_WIDTH), none, SURFACE(CUBEMAP_LAYERED_LAYERS)});
  }
  return false;
}

bool fits_texture(const Device& device, const Description& d, Geometry geometry, bool mipmapped) {
  switch (geometry) {
    case Geometry::Linear:
    case Geometry::D1:
      return within(device, d, {mipmapped ? TEXTURE(1D_MIPMAPPED_WIDTH) : TEXTURE(1D_WIDTH), none, none});
    case Geometry::D2:
      if (has(d, CUDA_ARRAY3D_TEXTURE_GATHER))
        return within(device, d, {TEXTURE(2D_GATHER_WIDTH), TEXTURE(2D_GATHER_HEIGHT), none});
      return mipmapped ? within(device, d, {TEXTURE(2D_MIPMAPPED_WIDTH), TEXTURE(2D_MIPMAPPED_HEIGHT), none})
                       : within(device, d, {TEXTURE(2D_WIDTH), TEXTURE(2D_HEIGHT), none});
    case Geometry::D3:
      return within(device, d, {TEXTURE(3D_WIDTH), TEXTURE(3D_HEIGHT), TEXTURE(3D_DEPTH)}) ||
             within(device, d,
                    {TEXTURE(3D_WIDTH_ALTERNATE), TEXTURE(3D_HEIGHT_ALTERNATE), TEXTURE(3D_DEPTH_ALTERNATE)});
    case Geometry::D1Layered: return within(device, d, {TEXTURE(1D_LAYERED_WIDTH), none, TEXTURE(1D_LAYERED_LAYERS)});
    case Geometry::D2Layered:
      return within(device, d, {TEXTURE(2D_LAYERED_WIDTH), TEXTURE(2D_LAYERED_HEIGHT), TEXTURE(2D_LAYERED_LAYERS)});
    case Geometry::Cube: return within(device, d, {TEXTURE(CUBEMAP_WIDTH), none, none});
    case Geometry::CubeLayered:
      return within(device, d, {TEXTURE(CUBEMAP_LAYERED_WIDTH), none, TEXTURE(CUBEMAP_LAYERED_LAYERS)});
  }
  return false;
}
#undef TEXTURE
#undef SURFACE

unsigned levels_at_most(const Description& d, Geometry geometry) {
  const std::size_t longest = std::max({d.Width, d.Height, geometry == Geometry::D3 ? d.Depth : std::size_t{1}});
  return static_cast<unsigned>(std::bit_width(longest));
}

// Adds a level after the existing levels; returns false if the size overflows.
bool add_level(const Description& d, ArrayShape& shape) {
  Level level;
  level.width = static_cast<std::uint32_t>(d.Width);
  level.height = static_cast<std::uint32_t>(std::max<std::size_t>(d.Height, 1));
  level.depth = static_cast<std::uint32_t>(std::max<std::size_t>(d.Depth, 1));
  level.row_pitch = round_up(d.Width * shape.texel_bytes, row_step);
  level.slice_pitch = level.row_pitch * level.height;  // cannot overflow within the device's limits
  const std::size_t start = round_up(shape.bytes, level_step);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(level.slice_pitch, level.depth, &bytes) ||
      __builtin_add_overflow(start, bytes, &shape.bytes))
    return false;
  shape.starts.push_back(start);
  shape.levels.push_back(level);
  return true;
}

}  // namespace

CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned level) {
  CUDA_ARRAY3D_DESCRIPTOR out = description;
  const auto halved = [&](std::size_t size) { return size == 0 ? 0 : std::max<std::size_t>(size >> level, 1); };
  out.Width = halved(out.Width);
  out.Height = halved(out.Height);
  const bool layers = has(description, CUDA_ARRAY3D_LAYERED) || has(description, CUDA_ARRAY3D_CUBEMAP);
  if (!layers) out.Depth = halved(out.Depth);
  return out;
}

CUresult shape_of(const Device& device, const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels, ArrayShape& out) {
  const std::optional<Geometry> geometry = geometry_of(d);
  if (!geometry || (d.Flags & ~known_flags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = check_format(d.Format, d.NumChannels); r != CUDA_SUCCESS) return r;
  if (has(d, CUDA_ARRAY3D_TEXTURE_GATHER) && geometry != Geometry::D2) return CUDA_ERROR_INVALID_VALUE;
  const bool fits = fits_texture(device, d, *geometry, levels > 1) &&
                    (!has(d, CUDA_ARRAY3D_SURFACE_LDST) || fits_surface(device, d, *geometry));
  if (!fits) return CUDA_ERROR_INVALID_VALUE;
  if ((d.Flags & refused_flags) != 0) return CUDA_ERROR_NOT_SUPPORTED;

  out.geometry = *geometry;
  out.format = {.format = d.Format, .channels = d.NumChannels};
  out.texel_bytes = texel_bytes(out.format);
  const unsigned count = std::clamp(levels, 1U, levels_at_most(d, *geometry));
  for (unsigned i = 0; i < count; ++i)
    if (!add_level(level_of(d, i), out)) return CUDA_ERROR_OUT_OF_MEMORY;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
