// Converts texels between memory and instruction operands. Pure functions.
#pragma once

#include <array>

#include "host/simgpu/texture/texture.h"

namespace simgpu {

// The channels of a texture instruction's result. Each element holds the bits of an integer or a float.
using ChannelBits = std::array<std::uint32_t, 4>;
using Color = std::array<float, 4>;

// The memory layout of a format, without normalisation. Packed stands for channels of 10, 10, 10 and 2 bits.
enum class ChannelKind : std::uint8_t { Unsigned, Signed, Float, Packed };
struct Layout {
  ChannelKind kind = ChannelKind::Unsigned;
  unsigned bytes = 0;     // bytes of a channel; 0: the format is not supported
  unsigned channels = 0;  // number of channels that the format implies; 0: use TexelFormat::channels
  bool normalized = false;
};
Layout layout_of(CUarray_format format);
// Returns the largest value of a channel, which represents 1.0 in a normalised format.
float greatest(const Layout& layout);

// Returns true if reads yield floats: for float formats, and for integers of up to 16 bits unless they are read as
// integers.
bool gives_floats(const Texture& texture);

// Missing channels are 0, including the fourth.
ChannelBits read_integers(TexelFormat format, const std::byte* texel);
Color read_floats(TexelFormat format, const std::byte* texel, bool srgb);

// Executes a formatted store. Float and normalised formats convert from floats, other formats from integers, clamped to
// the channel's range. Writes the format's channels, at most `count`.
void write_texel(TexelFormat format, std::byte* texel, const ChannelBits& words, unsigned count);

float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);

}  // namespace simgpu
