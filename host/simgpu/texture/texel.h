// Converts texels between memory and instruction operands. Pure functions.
#pragma once

#include <array>

#include "host/simgpu/texture/texture.h"

namespace simgpu {

// The channels of a texture instruction's result: bits of an integer or a float.
using ChannelBits = std::array<std::uint32_t, 4>;
using Color = std::array<float, 4>;

// The memory layout of a format, without normalisation.
enum class ChannelKind : std::uint8_t { Unsigned, Signed, Float, Packed };  // Packed: 10, 10, 10 and 2 bits
struct Layout {
  ChannelKind kind = ChannelKind::Unsigned;
  unsigned bytes = 0;     // bytes of a channel; 0: not served
  unsigned channels = 0;  // fixed by the format; 0: use TexelFormat::channels
  bool normalized = false;
};
Layout layout_of(CUarray_format format);
// The largest value of a channel, which represents 1.0 in a normalised format.
float greatest(const Layout& layout);

// True if reads give floats: for float formats, and for integers of up to 16 bits unless read as integers.
bool gives_floats(const Texture& texture);

// Missing channels are 0, including the fourth.
ChannelBits read_integers(TexelFormat format, const std::byte* texel);
Color read_floats(TexelFormat format, const std::byte* texel, bool srgb);

// Formatted store: floats for float and normalised formats, else integers, clamped to the channel's range. Writes the
// format's channels, at most `count`.
void write_texel(TexelFormat format, std::byte* texel, const ChannelBits& words, unsigned count);

float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);

}  // namespace simgpu
