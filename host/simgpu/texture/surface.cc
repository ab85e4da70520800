#include "host/simgpu/texture/surface.h"

#include <algorithm>

namespace simgpu {
namespace {

// Clamps an index to 0 to `count` - 1 if `bounds` says so. Returns false if the index stays outside.
bool hold(std::int64_t& index, std::int64_t count, Bounds bounds) {
  if (index >= 0 && index < count) return true;
  if (bounds != Bounds::Clamp || count <= 0) return false;
  index = std::clamp<std::int64_t>(index, 0, count - 1);
  return true;
}

}  // namespace

SurfacePlace surface_place(const Surface& surface, const SurfacePoint& point, unsigned bytes, Bounds bounds) {
  if (surface.image.levels.empty()) {
    return {bounds == Bounds::Trap ? SurfacePlace::Kind::Trapped : SurfacePlace::Kind::Nothing, nullptr};
  }
  const Level& level = surface.image.levels.front();
  const std::int64_t texel = texel_bytes(surface.image.format);
  const std::int64_t row = std::int64_t{level.width} * texel;
  std::int64_t x = std::int64_t{point.at[0]} * (point.formatted ? texel : 1);
  if (x % bytes != 0) return {SurfacePlace::Kind::Misaligned, nullptr};
  const bool layered = point.geometry == Geometry::D1Layered || point.geometry == Geometry::D2Layered;
  const bool flat = point.geometry == Geometry::D1 || point.geometry == Geometry::D1Layered;
  std::int64_t y = flat ? 0 : point.at[1];
  std::int64_t z = layered ? std::int64_t{point.layer} : point.geometry == Geometry::D3 ? std::int64_t{point.at[2]} : 0;
  // The accesses of one size begin at multiples of that size, so a row contains row / bytes of them.
  std::int64_t number = x < 0 ? -1 : x / bytes;
  if (!hold(number, row / bytes, bounds) || !hold(y, level.height, bounds) || !hold(z, level.depth, bounds)) {
    return {bounds == Bounds::Zero ? SurfacePlace::Kind::Nothing : SurfacePlace::Kind::Trapped, nullptr};
  }
  return {SurfacePlace::Kind::Inside, level.texels + static_cast<std::size_t>(z) * level.slice_pitch +
                                          static_cast<std::size_t>(y) * level.row_pitch +
                                          static_cast<std::size_t>(number) * bytes};
}

}  // namespace simgpu
