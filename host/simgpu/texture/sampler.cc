#include "host/simgpu/texture/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "host/simgpu/texture/address.h"
#include "host/simgpu/texture/cube.h"

namespace simgpu {
namespace {

bool is_cube(Geometry geometry) { return geometry == Geometry::Cube || geometry == Geometry::CubeLayered; }

unsigned dimensions(Geometry geometry) {
  switch (geometry) {
    case Geometry::Linear:
    case Geometry::D1:
    case Geometry::D1Layered: return 1;
    case Geometry::D3: return 3;
    default: return 2;
  }
}

// Returns the slice, layer or face of a level in which the other coordinates apply.
std::uint32_t slice_of(Geometry geometry, const Level& level, std::uint32_t layer, unsigned face) {
  switch (geometry) {
    case Geometry::D1Layered:
    case Geometry::D2Layered: return std::min(layer, level.depth - 1);
    case Geometry::Cube: return std::min(face, level.depth - 1);
    case Geometry::CubeLayered: {
      const std::uint32_t layers = std::max(1U, level.depth / 6);
      return std::min(6 * std::min(layer, layers - 1) + face, level.depth - 1);
    }
    default: return 0;
  }
}

// Reads texels of one level of a texture.
class Reader {
 public:
  Reader(const Texture& texture, std::size_t level, Reach* reach)
      : level(texture.image.levels[level]), floats(gives_floats(texture)), texture_(texture), reach_(reach) {
    bytes_ = texel_bytes(texture.image.format);
  }

  // Returns the border colour if x, y or z is no_texel.
  Color color(std::int32_t x, std::int32_t y, std::int32_t z) const {
    if (x == no_texel || y == no_texel || z == no_texel) return border();
    return read_floats(texture_.image.format, at(x, y, z), texture_.sampler.srgb);
  }
  ChannelBits bits(std::int32_t x, std::int32_t y, std::int32_t z) const {
    if (floats) return std::bit_cast<ChannelBits>(color(x, y, z));
    if (x == no_texel || y == no_texel || z == no_texel) return border_bits();
    return read_integers(texture_.image.format, at(x, y, z));
  }

  const Level& level;
  const bool floats;

 private:
  const std::byte* at(std::int32_t x, std::int32_t y, std::int32_t z) const {
    const std::size_t offset = static_cast<std::size_t>(z) * level.slice_pitch +
                               static_cast<std::size_t>(y) * level.row_pitch + static_cast<std::size_t>(x) * bytes_;
    const bool inside = reach_ == nullptr || (bytes_ <= reach_->bytes && offset <= reach_->bytes - bytes_);
    return inside ? level.texels + offset : leave();
  }
  const std::byte* leave() const {
    static constexpr std::array<std::byte, 16> zeros{};  // as long as the longest texel
    reach_->left = true;
    return zeros.data();
  }
  unsigned channels() const { return bytes_ / std::max(1U, channel_bytes()); }
  unsigned channel_bytes() const { return layout_of(texture_.image.format.format).bytes; }

  // Returns the border colour, restricted to the channels of the format and rounded to the nearest value of a
  // normalised format.
  Color border() const {
    const Layout layout = layout_of(texture_.image.format.format);
    Color color{};
    for (unsigned k = 0; k < channels(); ++k) {
      const float given = texture_.sampler.border[k];
      color[k] = layout.kind == ChannelKind::Float ? given : fraction_next_to(given, layout);
    }
    return color;
  }
  // Returns the nearest value that the format can represent. sRGB values are not rounded, since their encoding is not
  // linear.
  float fraction_next_to(float given, const Layout& layout) const {
    const float held = std::clamp(given, layout.kind == ChannelKind::Signed ? -1.0F : 0.0F, 1.0F);
    const bool plain = layout.kind == ChannelKind::Signed || layout.kind == ChannelKind::Unsigned;
    if (!plain || texture_.sampler.srgb) return held;
    const float most = greatest(layout);
    return std::nearbyint(held * most) / most;
  }
  // Returns the border colour for integer reads. The floats of the descriptor are the bits of 32-bit integers; the
  // border of shorter integers is 0.
  ChannelBits border_bits() const {
    ChannelBits bits{};
    if (channel_bytes() != sizeof(float)) return bits;
    for (unsigned k = 0; k < channels(); ++k) bits[k] = std::bit_cast<std::uint32_t>(texture_.sampler.border[k]);
    return bits;
  }

  const Texture& texture_;
  Reach* const reach_;
  unsigned bytes_ = 0;
};

AxisRule rule_of(const Texture& texture, unsigned axis, bool linear) {
  return {texture.sampler.address[axis], texture.sampler.normalized, linear, false};
}

// The texels around a point that contribute to a sample: one or two per axis.
struct Footprint {
  std::array<Taps, 3> taps{};
  unsigned axes = 0;        // number of filtered axes
  std::uint32_t slice = 0;  // slice to read if z is not a filtered axis
  bool seamless = false;    // indices may lie outside a face of the cube
  unsigned face = 0;
};

Footprint across_cube(const Texture& texture, const Level& level, const SamplePoint& point, bool linear) {
  Footprint print;
  print.axes = 2;
  print.face = face_of(point.at);
  print.slice = slice_of(point.geometry, level, point.layer, print.face);
  print.seamless = linear && texture.sampler.seamless_cube && level.width == level.height && level.depth >= 6;
  const FaceVector seen = seen_from(print.face, point.at);
  const float places[2] = {(seen.s / seen.m + 1) / 2, (seen.t / seen.m + 1) / 2};
  for (unsigned k = 0; k < 2; ++k) {
    const CUaddress_mode mode = print.seamless ? CU_TR_ADDRESS_MODE_CLAMP : texture.sampler.address[k];
    const AxisRule rule{mode, true, linear, print.seamless};
    print.taps[k] = taps_of(places[k], k == 0 ? level.width : level.height, rule, 0);
  }
  return print;
}

Footprint footprint(const Texture& texture, const Level& level, const SamplePoint& point, bool linear) {
  if (is_cube(point.geometry)) return across_cube(texture, level, point, linear);
  Footprint print;
  print.axes = dimensions(point.geometry);
  print.slice = slice_of(point.geometry, level, point.layer, 0);
  const std::uint32_t sizes[3] = {level.width, level.height, level.depth};
  for (unsigned k = 0; k < print.axes; ++k) {
    print.taps[k] = taps_of(point.at[k], sizes[k], rule_of(texture, k, linear), point.offset[k]);
  }
  // An H200 filters a one-dimensional texture like an image of one row, sampled at the row's edge. If the second
  // address mode is the border, half of the weight is therefore the border's. Layered textures have no such rule.
  if (linear && point.geometry == Geometry::D1 && texture.sampler.address[1] == CU_TR_ADDRESS_MODE_BORDER) {
    print.axes = 2;
    print.taps[1] = taps_of(0, 1, rule_of(texture, 1, linear), 0);
  }
  return print;
}

// The position of a tap. For a face of a cube it may lie beyond an edge.
struct Place {
  std::int32_t x, y, z;
  bool corner = false;  // beyond two edges, where no texel exists
};

Place place_of(const Footprint& print, const Level& level, unsigned x, unsigned y, unsigned z) {
  const auto slice = static_cast<std::int32_t>(print.slice);
  Place place{print.taps[0].index[x], print.axes > 1 ? print.taps[1].index[y] : 0,
              print.axes > 2 ? print.taps[2].index[z] : slice};
  if (!print.seamless) return place;
  const auto size = static_cast<std::int32_t>(level.width);
  const bool over_x = place.x < 0 || place.x >= size;
  const bool over_y = place.y < 0 || place.y >= size;
  if (over_x && over_y) return {0, 0, 0, true};
  if (!over_x && !over_y) return place;
  const CubeTexel texel = beyond_edge({print.face, place.x, place.y}, size);
  const auto first = slice - static_cast<std::int32_t>(print.face);
  return {texel.x, texel.y, first + static_cast<std::int32_t>(texel.face)};
}

Color color_at(const Reader& reader, const Place& place) { return reader.color(place.x, place.y, place.z); }

bool of_own_face(const Footprint& print, const Place& place) {
  return place.z == static_cast<std::int32_t>(print.slice);
}

// Three faces meet at a corner of a cube, so the fourth texel of a sample does not exist. Its colour is the mean of the
// other three.
Color corner_color(const Reader& reader, const Footprint& print) {
  Color mean{};
  for (unsigned k = 0; k < 4; ++k) {
    const Place place = place_of(print, reader.level, k & 1, k >> 1, 0);
    if (place.corner) continue;
    const Color color = color_at(reader, place);
    for (unsigned c = 0; c < 4; ++c) mean[c] += color[c] / 3;
  }
  return mean;
}

// Returns the part of the missing corner texel's weight that one of the other texels gets. It is a third, rounded down
// to a multiple of 1/256; the texel of the face itself gets the remainder.
double share_of_corner(const Footprint& print, const Place& place, double missing) {
  const double third = std::floor(missing * whole_weight / 3) / whole_weight;
  return of_own_face(print, place) ? missing - 2 * third : third;
}

ChannelBits corner_bits(const Reader& reader, const Footprint& print) {
  if (reader.floats) return std::bit_cast<ChannelBits>(corner_color(reader, print));
  // Integers are not averaged: the texel of the face itself replaces the missing texel.
  for (unsigned k = 0;; ++k) {
    const Place place = place_of(print, reader.level, k & 1, k >> 1, 0);
    if (!place.corner && of_own_face(print, place)) {
      return reader.bits(place.x, place.y, place.z);
    }
  }
}

double weight_of(const Footprint& print, unsigned corner) {
  double weight = 1;
  for (unsigned k = 0; k < print.axes; ++k) {
    const std::uint32_t second = print.taps[k].weight;
    weight *= static_cast<double>((corner >> k & 1) != 0 ? second : whole_weight - second) / whole_weight;
  }
  return weight;
}

Place place_of(const Footprint& print, const Level& level, unsigned corner) {
  return place_of(print, level, corner & 1, corner >> 1 & 1, corner >> 2);
}

double weight_of_missing(const Reader& reader, const Footprint& print) {
  if (!print.seamless) return 0;
  for (unsigned corner = 0; corner < 4; ++corner)
    if (place_of(print, reader.level, corner).corner) return weight_of(print, corner);
  return 0;
}

// Converts a sum to float. Every NaN becomes the GPU's canonical NaN.
float single_of(double sum) {
  constexpr std::uint32_t no_number = 0x7fff'ffff;
  return std::isnan(sum) ? std::bit_cast<float>(no_number) : static_cast<float>(sum);
}

// Computes the weighted sum. A texel with weight 0 is skipped, so that infinities and NaNs in it have no effect.
Color filtered(const Reader& reader, const Footprint& print) {
  const double missing = weight_of_missing(reader, print);
  std::array<double, 4> sum{};
  for (unsigned corner = 0; corner < 1U << print.axes; ++corner) {
    const Place place = place_of(print, reader.level, corner);
    if (place.corner) continue;
    const double weight = weight_of(print, corner) + share_of_corner(print, place, missing);
    if (weight == 0) continue;
    const Color color = color_at(reader, place);
    for (unsigned c = 0; c < 4; ++c) sum[c] += weight * static_cast<double>(color[c]);
  }
  Color result;
  for (unsigned c = 0; c < 4; ++c) result[c] = single_of(sum[c]);
  return result;
}

Color sample_level(const Texture& texture, const SamplePoint& point, std::size_t number, Reach* reach) {
  const Reader reader(texture, number, reach);
  return filtered(reader, footprint(texture, reader.level, point, true));
}

ChannelBits nearest(const Texture& texture, const SamplePoint& point, std::size_t number, Reach* reach) {
  const Reader reader(texture, number, reach);
  const Footprint print = footprint(texture, reader.level, point, false);
  const Place place = place_of(print, reader.level, 0, 0, 0);
  return reader.bits(place.x, place.y, place.z);
}

Color level_color(const Texture& texture, const SamplePoint& point, std::size_t number, Reach* reach) {
  if (texture.sampler.filter == CU_TR_FILTER_MODE_LINEAR) return sample_level(texture, point, number, reach);
  return std::bit_cast<Color>(nearest(texture, point, number, reach));
}

float length(const std::array<float, 3>& vector) { return std::hypot(vector[0], vector[1], vector[2]); }

// Converts a change of the direction to a change of the position in its face, in texels.
std::array<float, 3> across_face(const Direction& at, const Direction& change, float size) {
  const unsigned face = face_of(at);
  const FaceVector place = seen_from(face, at);
  const FaceVector step = seen_from(face, change);
  return {size / 2 * (step.s - place.s / place.m * step.m) / place.m,
          size / 2 * (step.t - place.t / place.m * step.m) / place.m, 0};
}

std::array<float, 3> in_texels(const Texture& texture, const SamplePoint& point, const std::array<float, 3>& change) {
  const Level& level = texture.image.levels.front();
  if (is_cube(point.geometry)) return across_face(point.at, change, static_cast<float>(level.width));
  const std::uint32_t sizes[3] = {level.width, level.height, level.depth};
  std::array<float, 3> texels{};
  for (unsigned k = 0; k < dimensions(point.geometry); ++k) {
    texels[k] = texture.sampler.normalized ? change[k] * static_cast<float>(sizes[k]) : change[k];
  }
  return texels;
}

}  // namespace

LevelTaps levels_of(const Texture& texture, std::optional<float> level) {
  const Sampler& sampler = texture.sampler;
  const auto last = static_cast<float>(texture.image.levels.size() - 1);
  float wanted = level ? *level + sampler.level_bias : 0;
  if (std::isnan(wanted)) wanted = 0;
  wanted = std::max(std::min(wanted, sampler.max_level), sampler.min_level);
  wanted = std::isnan(wanted) ? 0 : std::clamp(wanted, 0.0F, last);
  if (sampler.mipmap_filter != CU_TR_FILTER_MODE_LINEAR || !gives_floats(texture)) {
    const auto only = static_cast<std::size_t>(std::floor(wanted + 0.5F));
    return {only, only, 0};
  }
  const auto fixed = static_cast<std::uint32_t>(std::floor(wanted * whole_weight));
  const std::size_t first = fixed / whole_weight;
  return {first, std::min(first + 1, texture.image.levels.size() - 1), fixed % whole_weight};
}

ChannelBits sample(const Texture& texture, const SamplePoint& point, std::optional<float> level, Reach* reach) {
  // Textures in linear memory are neither filtered nor mipmapped.
  if (texture.image.geometry == Geometry::Linear) {
    const float x = std::floor(point.at[0]);
    const bool inside = x >= 0 && x < static_cast<float>(texture.image.levels.front().width);
    return fetch(texture, {Geometry::D1, {inside ? static_cast<std::int32_t>(x) : no_texel, 0, 0}, 0}, 0, reach);
  }
  const LevelTaps levels = levels_of(texture, level);
  if (!gives_floats(texture)) return nearest(texture, point, levels.first, reach);
  const Color first = level_color(texture, point, levels.first, reach);
  if (levels.weight == 0) return std::bit_cast<ChannelBits>(first);
  const Color second = level_color(texture, point, levels.second, reach);
  const double weight = static_cast<double>(levels.weight) / whole_weight;
  Color mixed;
  for (unsigned c = 0; c < 4; ++c) {
    mixed[c] = single_of((1 - weight) * static_cast<double>(first[c]) + weight * static_cast<double>(second[c]));
  }
  return std::bit_cast<ChannelBits>(mixed);
}

ChannelBits fetch(const Texture& texture, const FetchPoint& point, std::int32_t level, Reach* reach) {
  if (level < 0 || static_cast<std::size_t>(level) >= texture.image.levels.size()) return {};
  const bool is_linear = texture.image.geometry == Geometry::Linear;
  if (point.geometry == Geometry::D1 && !is_linear) return {};
  const Reader reader(texture, static_cast<std::size_t>(level), reach);
  const std::uint32_t sizes[3] = {reader.level.width, reader.level.height, reader.level.depth};
  // outside level 0 the result is 0; outside a smaller level, clamped
  const Level& largest = texture.image.levels.front();
  const std::uint32_t whole[3] = {largest.width, largest.height, largest.depth};
  std::array<std::int32_t, 3> at{0, 0,
                                 static_cast<std::int32_t>(slice_of(point.geometry, reader.level, point.layer, 0))};
  for (unsigned k = 0; k < dimensions(point.geometry); ++k) {
    const bool outside = static_cast<std::uint32_t>(point.texel[k]) >= whole[k];
    if (outside && (is_linear || texture.sampler.normalized)) return {};
    at[k] = texel_of(point.texel[k], sizes[k], texture.sampler.address[k]);
  }
  return reader.bits(at[0], at[1], at[2]);
}

ChannelBits gather(const Texture& texture, const SamplePoint& point, unsigned channel, Reach* reach) {
  const Reader reader(texture, 0, reach);
  const Footprint print = footprint(texture, reader.level, point, true);
  constexpr unsigned order[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  ChannelBits result{};
  for (unsigned k = 0; k < 4; ++k) {
    const Place place = place_of(print, reader.level, order[k][0], order[k][1], 0);
    const ChannelBits texel = place.corner ? corner_bits(reader, print) : reader.bits(place.x, place.y, place.z);
    result[k] = texel[channel];
  }
  return result;
}

float level_of_gradient(const Texture& texture, const SamplePoint& point, const std::array<float, 3>& dx,
                        const std::array<float, 3>& dy) {
  return std::log2(std::max(length(in_texels(texture, point, dx)), length(in_texels(texture, point, dy))));
}

}  // namespace simgpu
