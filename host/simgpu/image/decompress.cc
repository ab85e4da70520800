// Both formats state or bound the size of the result, so an entry's claim alone never determines an allocation.
#include "host/simgpu/image/decompress.h"

#include <lz4.h>
#include <zstd.h>

#include <limits>

namespace simgpu {

std::optional<std::string> unpack_zstd(std::span<const std::byte> payload, std::uint64_t plain_size) {
  // The frame also states the size of its content. Memory is allocated only if both sizes are equal.
  if (plain_size > max_text_size || ZSTD_getFrameContentSize(payload.data(), payload.size()) != plain_size)
    return std::nullopt;
  std::string text(plain_size, '\0');
  const std::size_t got = ZSTD_decompress(text.data(), text.size(), payload.data(), payload.size());
  if (ZSTD_isError(got) != 0 || got != plain_size) return std::nullopt;
  return text;
}

std::optional<std::string> unpack_lz4(std::span<const std::byte> payload, std::uint64_t plain_size) {
  constexpr std::uint64_t best_ratio = 255;  // a property of the format: a length byte of 255 stands for 255 bytes
  if (plain_size > max_text_size || payload.size() > std::numeric_limits<int>::max()) return std::nullopt;
  if (plain_size / best_ratio > payload.size()) return std::nullopt;
  std::string text(plain_size, '\0');
  const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(payload.data()), text.data(),
                                      static_cast<int>(payload.size()), static_cast<int>(text.size()));
  if (got < 0 || static_cast<std::uint64_t>(got) != plain_size) return std::nullopt;
  return text;
}

}  // namespace simgpu
