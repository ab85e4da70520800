// Texels: their bytes in memory as what an instruction gets, and back. Pure functions.
#pragma once

#include <array>

#include "host/simgpu/texture/texture.h"

namespace simgpu {

// What a texture instruction gives for each channel: the bits of an integer or of a single.
using ChannelBits = std::array<std::uint32_t, 4>;
using Color = std::array<float, 4>;

// How a format lies in memory, its normalisation apart.
enum class ChannelKind : std::uint8_t { Unsigned, Signed, Float, Packed };  // Packed: 10, 10, 10 and 2 bits
struct Layout {
  ChannelKind kind = ChannelKind::Unsigned;
  unsigned bytes = 0;     // of a channel; 0: not served
  unsigned channels = 0;  // that the format itself says; 0: TexelFormat::channels
  bool normalized = false;
};
Layout layout_of(CUarray_format format);
// The greatest value of a channel: what 1.0 is in a normalised format.
float greatest(const Layout& layout);

// Whether a read of this texture gives singles: floats, and integers up to 16 bits unless they are read as such.
bool gives_floats(const Texture& texture);

// Channels that the format lacks are 0, the fourth too.
ChannelBits read_integers(TexelFormat format, const std::byte* texel);
Color read_floats(TexelFormat format, const std::byte* texel, bool srgb);

// A formatted store: singles for floats and normalised formats, integers otherwise, each held to the channel's range.
// Writes the first `count` channels that the format has.
void write_texel(TexelFormat format, std::byte* texel, const ChannelBits& words, unsigned count);

float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);

}  // namespace simgpu
