#include "host/simgpu/texture/texel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "host/simgpu/isa/half.h"

namespace simgpu {

float greatest(const Layout& layout) {
  const unsigned bits = 8 * layout.bytes - (layout.kind == ChannelKind::Signed ? 1 : 0);
  return static_cast<float>((std::uint64_t{1} << bits) - 1);
}

namespace {

constexpr Layout unsigned_of(unsigned bytes) { return {ChannelKind::Unsigned, bytes, 0, false}; }
constexpr Layout signed_of(unsigned bytes) { return {ChannelKind::Signed, bytes, 0, false}; }
constexpr Layout unorm(unsigned bytes, unsigned channels) { return {ChannelKind::Unsigned, bytes, channels, true}; }
constexpr Layout snorm(unsigned bytes, unsigned channels) { return {ChannelKind::Signed, bytes, channels, true}; }

unsigned channels_of(TexelFormat format, const Layout& layout) {
  return layout.channels != 0 ? layout.channels : format.channels;
}

std::uint32_t load(const std::byte* at, unsigned bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

std::int32_t sign_extended(std::uint32_t word, unsigned bytes) {
  const unsigned unused = 32 - 8 * bytes;
  return static_cast<std::int32_t>(word << unused) >> unused;
}

float read_float(const Layout& layout, const std::byte* at) {
  const std::uint32_t word = load(at, layout.bytes);
  switch (layout.kind) {
    case ChannelKind::Unsigned: return static_cast<float>(word) / greatest(layout);
    case ChannelKind::Signed:
      // SNORM: the minimum is clamped, so that both extremes map to ±1.
      return std::max(static_cast<float>(sign_extended(word, layout.bytes)) / greatest(layout), -1.0F);
    default: return layout.bytes == 2 ? half_to_float(static_cast<std::uint16_t>(word)) : std::bit_cast<float>(word);
  }
}

Color read_packed(const std::byte* texel) {
  const std::uint32_t word = load(texel, 4);
  Color color;
  for (unsigned k = 0; k < 3; ++k) color[k] = static_cast<float>(word >> (10 * k) & 1023) / 1023.0F;
  color[3] = static_cast<float>(word >> 30) / 3.0F;
  return color;
}

// The transfer function of IEC 61966-2-1.
float linear_of_srgb(float value) {
  return value <= 0.04045F ? value / 12.92F : std::pow((value + 0.055F) / 1.055F, 2.4F);
}

// NaN becomes 0, as in the conversion of floats to integers.
std::uint32_t normalised_bits(float value, float greatest, bool negative_too) {
  if (std::isnan(value)) return 0;
  const float held = std::clamp(value, negative_too ? -1.0F : 0.0F, 1.0F);
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(std::nearbyint(held * greatest)));
}

std::uint32_t integer_bits(const Layout& layout, std::uint32_t word) {
  if (layout.bytes == 4) return word;
  const auto most = static_cast<std::int64_t>(greatest(layout));
  if (layout.kind == ChannelKind::Unsigned) return std::min(word, static_cast<std::uint32_t>(most));
  const auto value = std::int64_t{static_cast<std::int32_t>(word)};
  return static_cast<std::uint32_t>(std::clamp(value, -most - 1, most));
}

std::uint32_t stored_bits(const Layout& layout, std::uint32_t word) {
  if (layout.kind == ChannelKind::Float) {
    return layout.bytes == 2 ? float_to_half(std::bit_cast<float>(word)) : word;
  }
  if (!layout.normalized) return integer_bits(layout, word);
  return normalised_bits(std::bit_cast<float>(word), greatest(layout), layout.kind == ChannelKind::Signed);
}

void write_packed(std::byte* texel, const ChannelBits& words, unsigned count) {
  std::uint32_t packed = load(texel, 4);
  for (unsigned k = 0; k < std::min(count, 4U); ++k) {
    const std::uint32_t most = k < 3 ? 1023 : 3;
    const std::uint32_t bits = normalised_bits(std::bit_cast<float>(words[k]), static_cast<float>(most), false);
    packed = (packed & ~(most << (10 * k))) | bits << (10 * k);
  }
  std::memcpy(texel, &packed, sizeof packed);
}

}  // namespace

Layout layout_of(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: return unsigned_of(1);
    case CU_AD_FORMAT_UNSIGNED_INT16: return unsigned_of(2);
    case CU_AD_FORMAT_UNSIGNED_INT32: return unsigned_of(4);
    case CU_AD_FORMAT_SIGNED_INT8: return signed_of(1);
    case CU_AD_FORMAT_SIGNED_INT16: return signed_of(2);
    case CU_AD_FORMAT_SIGNED_INT32: return signed_of(4);
    case CU_AD_FORMAT_HALF: return {ChannelKind::Float, 2, 0, false};
    case CU_AD_FORMAT_FLOAT: return {ChannelKind::Float, 4, 0, false};
    case CU_AD_FORMAT_UNORM_INT8X1: return unorm(1, 1);
    case CU_AD_FORMAT_UNORM_INT8X2: return unorm(1, 2);
    case CU_AD_FORMAT_UNORM_INT8X4: return unorm(1, 4);
    case CU_AD_FORMAT_UNORM_INT16X1: return unorm(2, 1);
    case CU_AD_FORMAT_UNORM_INT16X2: return unorm(2, 2);
    case CU_AD_FORMAT_UNORM_INT16X4: return unorm(2, 4);
    case CU_AD_FORMAT_SNORM_INT8X1: return snorm(1, 1);
    case CU_AD_FORMAT_SNORM_INT8X2: return snorm(1, 2);
    case CU_AD_FORMAT_SNORM_INT8X4: return snorm(1, 4);
    case CU_AD_FORMAT_SNORM_INT16X1: return snorm(2, 1);
    case CU_AD_FORMAT_SNORM_INT16X2: return snorm(2, 2);
    case CU_AD_FORMAT_SNORM_INT16X4: return snorm(2, 4);
    case CU_AD_FORMAT_UNORM_INT_101010_2: return {ChannelKind::Packed, 1, 4, true};
    default: return {};
  }
}

unsigned texel_bytes(TexelFormat format) {
  const Layout layout = layout_of(format.format);
  const unsigned channels = channels_of(format, layout);
  return channels == 1 || channels == 2 || channels == 4 ? layout.bytes * channels : 0;
}

bool is_signed_format(CUarray_format format) { return layout_of(format).kind == ChannelKind::Signed; }

bool gives_floats(const Texture& texture) {
  const Layout layout = layout_of(texture.image.format.format);
  if (layout.kind == ChannelKind::Float || layout.normalized) return true;
  return layout.bytes < 4 && !texture.sampler.read_as_integer;
}

ChannelBits read_integers(TexelFormat format, const std::byte* texel) {
  const Layout layout = layout_of(format.format);
  ChannelBits words{};
  for (unsigned k = 0; k < channels_of(format, layout); ++k) {
    const std::uint32_t word = load(texel + k * layout.bytes, layout.bytes);
    words[k] =
        layout.kind == ChannelKind::Signed ? static_cast<std::uint32_t>(sign_extended(word, layout.bytes)) : word;
  }
  return words;
}

Color read_floats(TexelFormat format, const std::byte* texel, bool srgb) {
  const Layout layout = layout_of(format.format);
  if (layout.kind == ChannelKind::Packed) return read_packed(texel);
  Color color{};
  const bool decode = srgb && layout.kind == ChannelKind::Unsigned && layout.bytes == 1;
  for (unsigned k = 0; k < channels_of(format, layout); ++k) {
    color[k] = read_float(layout, texel + k * layout.bytes);
    if (decode && k < 3) color[k] = linear_of_srgb(color[k]);
  }
  return color;
}

void write_texel(TexelFormat format, std::byte* texel, const ChannelBits& words, unsigned count) {
  const Layout layout = layout_of(format.format);
  if (layout.kind == ChannelKind::Packed) return write_packed(texel, words, count);
  for (unsigned k = 0; k < std::min(count, channels_of(format, layout)); ++k) {
    const std::uint32_t bits = stored_bits(layout, words[k]);
    std::memcpy(texel + k * layout.bytes, &bits, layout.bytes);
  }
}

float half_to_float(std::uint16_t bits) { return static_cast<float>(isa_base::widen<isa_base::Half>(bits)); }
std::uint16_t float_to_half(float value) { return isa_base::narrow<isa_base::Half>(value, 0); }

}  // namespace simgpu
