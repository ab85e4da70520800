// The queries of kernels for texture and surface objects (txq, suq, istypep), one lane after another.
#include <bit>

#include "host/simgpu/vm/objects.h"
#include "host/simgpu/vm/state.h"
#include "host/simgpu/vm/texture.h"

namespace simgpu {
namespace {

template <class T>
T* lanes(Ctx& c, Place place) {
  return reinterpret_cast<T*>(c.base[place >> 31] + (place & ~constant_place));
}

// Returns the number of slices or layers; 0 if the image has neither.
std::uint32_t depth_of(const Image& image, const Level& level) {
  switch (image.geometry) {
    case Geometry::D3:
    case Geometry::D1Layered:
    case Geometry::D2Layered: return level.depth;
    case Geometry::CubeLayered: return level.depth / 6;
    default: return 0;
  }
}

// The sizes of a level that the image lacks are 0.
std::uint32_t answer_of(const Image& image, Query query, std::uint32_t number) {
  if (number >= image.levels.size()) return 0;
  const Level& level = image.levels[number];
  switch (query) {
    case Query::Width: return level.width;
    case Query::Height: return level.height;
    default: return depth_of(image, level);
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
      answer = answer_of(texture->image, asked, lanes<std::uint32_t>(c, i->b)[lane]);
    } else {
      const Surface* const surface = objects.surface(number, lane);
      if (surface == nullptr) return c.stop;
      answer = answer_of(surface->image, asked, 0);
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
