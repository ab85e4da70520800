// What kernels ask about texture and surface objects (txq, suq, istypep), lane after lane. See texture.h.
#include <algorithm>
#include <bit>

#include "host/simgpu/texture/texel.h"
#include "host/simgpu/vm/objects.h"
#include "host/simgpu/vm/state.h"
#include "host/simgpu/vm/texture.h"

namespace simgpu {
namespace {

template <class T>
T* lanes(Ctx& c, Place place) {
  return reinterpret_cast<T*>(c.base[place >> 31] + (place & ~constant_place));
}

// PTX names these values without giving them; they are those of OpenCL's image formats, after which it names them.
enum ChannelType : std::uint32_t {
  snorm_int8 = 0x10d0,
  unorm_int8 = 0x10d2,
  unorm_int_101010 = 0x10d6,
  signed_int8 = 0x10d7,
  unsigned_int8 = 0x10da,
  half_float = 0x10dd,
  single_float = 0x10de,
};
enum ChannelOrder : std::uint32_t { order_r = 0x10b0, order_rg = 0x10b2, order_rgba = 0x10b5 };

// Within each family the widths follow one another.
std::uint32_t channel_type(TexelFormat format, bool as_integer) {
  const Layout layout = layout_of(format.format);
  const auto width = static_cast<std::uint32_t>(std::countr_zero(layout.bytes));
  const bool normalized = layout.normalized || (!as_integer && layout.bytes < 4);
  switch (layout.kind) {
    case ChannelKind::Packed: return unorm_int_101010;
    case ChannelKind::Float: return layout.bytes == 2 ? half_float : single_float;
    case ChannelKind::Signed: return (normalized ? snorm_int8 : signed_int8) + width;
    default: return (normalized ? unorm_int8 : unsigned_int8) + width;
  }
}

std::uint32_t channel_order(TexelFormat format) {
  const Layout layout = layout_of(format.format);
  const unsigned channels = layout.channels != 0 ? layout.channels : format.channels;
  return channels == 1 ? order_r : channels == 2 ? order_rg : order_rgba;
}

std::uint32_t array_size(const Image& image) {
  const std::uint32_t depth = image.levels.front().depth;
  switch (image.geometry) {
    case Geometry::D1Layered:
    case Geometry::D2Layered: return depth;
    case Geometry::CubeLayered: return depth / 6;
    default: return 0;
  }
}

// A level that the image lacks has no size.
std::uint32_t image_answer(const Image& image, Query query, std::uint32_t number) {
  if (query == Query::ArraySize) return array_size(image);
  if (query == Query::ChannelOrder) return channel_order(image.format);
  if (query == Query::MipmapLevels) return static_cast<std::uint32_t>(image.levels.size());
  if (query == Query::Samples) return 1;
  if (number >= image.levels.size()) return 0;
  const Level& level = image.levels[number];
  switch (query) {
    case Query::Width: return level.width;
    case Query::Height: return level.height;
    case Query::Depth: return image.geometry == Geometry::D3 ? level.depth : 1;
    default: return 0;
  }
}

// In PTX's order: wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border.
std::uint32_t address_mode(CUaddress_mode mode) {
  switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP: return 0;
    case CU_TR_ADDRESS_MODE_MIRROR: return 1;
    case CU_TR_ADDRESS_MODE_BORDER: return 4;
    default: return 3;
  }
}

std::uint32_t texture_answer(const Texture& texture, Query query, std::uint32_t level) {
  const Sampler& sampler = texture.sampler;
  switch (query) {
    case Query::ChannelDataType: return channel_type(texture.image.format, sampler.read_as_integer);
    case Query::NormalizedCoords: return sampler.normalized;
    case Query::ForceUnnormalizedCoords: return !sampler.normalized;
    case Query::FilterMode: return sampler.filter == CU_TR_FILTER_MODE_LINEAR;
    case Query::AddressMode0: return address_mode(sampler.address[0]);
    case Query::AddressMode1: return address_mode(sampler.address[1]);
    case Query::AddressMode2: return address_mode(sampler.address[2]);
    default: return image_answer(texture.image, query, level);
  }
}

std::uint32_t surface_answer(const Surface& surface, Query query) {
  switch (query) {
    case Query::ChannelDataType: return channel_type(surface.image.format, true);
    case Query::MemoryLayout: return surface.image.geometry == Geometry::Linear;
    default: return image_answer(surface.image, query, 0);
  }
}

template <bool is_texture>
const Ins* query(Ctx& c, const Ins* i) {
  Objects objects(c, i);
  const auto asked = static_cast<Query>(i->count);
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t number = lanes<std::uint64_t>(c, i->a)[lane];
    std::uint32_t& answer = lanes<std::uint32_t>(c, i->d)[lane];
    if constexpr (is_texture) {
      const Texture* const texture = objects.texture(number, lane);
      if (texture == nullptr) return c.stop;
      answer = texture_answer(*texture, asked, lanes<std::uint32_t>(c, i->b)[lane]);
    } else {
      const Surface* const surface = objects.surface(number, lane);
      if (surface == nullptr) return c.stop;
      answer = surface_answer(*surface, asked);
    }
  }
  return i + 1;
}

template <bool asks_texture>
const Ins* is_object(Ctx& c, const Ins* i) {
  const Objects objects(c, i);
  std::uint32_t found = 0;
  for (std::uint32_t left = c.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t number = lanes<std::uint64_t>(c, i->a)[lane];
    found |= std::uint32_t{asks_texture ? objects.is_texture(number) : objects.is_surface(number)} << lane;
  }
  std::uint32_t& word = *lanes<std::uint32_t>(c, i->d);
  word = (word & ~c.mask) | found;
  return i + 1;
}

}  // namespace

Handlers texture_query_handler() { return {&query<true>, &query<true>}; }
Handlers surface_query_handler() { return {&query<false>, &query<false>}; }
Handlers is_texture_handler() { return {&is_object<true>, &is_object<true>}; }
Handlers is_surface_handler() { return {&is_object<false>, &is_object<false>}; }

}  // namespace simgpu
