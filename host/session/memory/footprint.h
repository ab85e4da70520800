// Computes the GPU memory that the driver will use for a call, from the call's arguments, before the call.
//
// An H200's driver allocates pages of 2 MiB, and packs small allocations into shared pages in steps of 512 bytes. The
// unused rest of a page belongs to no call; the broker finds this rest by measurement
// (docs/design/029-memory-quotas.md).
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstdint>

#include "ring/api/texture_records.h"

namespace host {

// More than any GPU has. The driver itself refuses such a size, with the proper error.
inline constexpr std::uint64_t absurd_footprint = std::uint64_t{1} << 50;

// A number of bytes that saturates above absurd_footprint.
class Footprint {
 public:
  constexpr Footprint(std::uint64_t bytes)
      : bytes_(std::min(bytes, absurd_footprint + 1)) {}  // NOLINT: implicit on purpose
  constexpr std::uint64_t bytes() const { return bytes_; }
  constexpr bool is_absurd() const { return bytes_ > absurd_footprint; }
  friend constexpr Footprint operator*(Footprint a, Footprint b) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a.bytes_, b.bytes_, &product) ? Footprint(~std::uint64_t{0}) : Footprint(product);
  }
  friend constexpr Footprint operator+(Footprint a, Footprint b) { return {a.bytes_ + b.bytes_}; }
  constexpr Footprint rounded_up(std::uint64_t step) const { return {(bytes_ + step - 1) / step * step}; }

 private:
  std::uint64_t bytes_;
};

// Returns the footprint of an allocation of this many bytes.
constexpr Footprint of_allocation(Footprint bytes) {
  constexpr std::uint64_t page = 2 << 20, granule = 512;
  return bytes.rounded_up(bytes.bytes() < page / 2 ? granule : page);
}

constexpr Footprint of_rows(std::uint64_t row_bytes, std::uint64_t rows) {
  constexpr std::uint64_t pitch = 512;  // an upper bound: the driver rounds a row up to a multiple of 512 bytes or less
  return of_allocation(Footprint(row_bytes).rounded_up(pitch) * Footprint(rows));
}

// Returns an upper bound, also for formats whose exact size only the driver knows.
constexpr std::uint64_t texel_bytes_at_most(CUarray_format format, unsigned channels) {
  if (const auto bytes = api::texel_bytes(static_cast<std::uint32_t>(format), channels)) return *bytes;
  const bool blocks = format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB;
  return blocks ? 1 : 8;  // BC: 4 by 4 texels in 8 or 16 bytes; video: 4 channels of 16 bits
}

// Returns the footprint of an array, or of a mipmapped array with `levels`. Texels are stored in tiles of 64 bytes by 8
// rows.
constexpr Footprint of_array(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels = 1) {
  // Such an array has no memory of its own.
  if ((d.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0) return {0};
  const bool layers = (d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  const std::uint64_t texel = texel_bytes_at_most(d.Format, d.NumChannels);
  const auto size = [](std::size_t full, unsigned level) { return std::max<std::uint64_t>(full >> level, 1); };
  Footprint sum = 0;
  for (unsigned level = 0; level < std::clamp(levels, 1U, 32U); ++level) {
    const std::uint64_t height = d.Height == 0 ? 1 : Footprint(size(d.Height, level)).rounded_up(8).bytes();
    const std::uint64_t depth = layers ? size(d.Depth, 0) : size(d.Depth, level);
    sum = sum + (Footprint(size(d.Width, level)) * texel).rounded_up(64) * height * depth;
  }
  return of_allocation(sum);
}

inline Footprint of_array(const CUDA_ARRAY_DESCRIPTOR& d) {
  CUDA_ARRAY3D_DESCRIPTOR full{};
  full.Width = d.Width, full.Height = d.Height, full.Format = d.Format, full.NumChannels = d.NumChannels;
  return of_array(full);
}

}  // namespace host
