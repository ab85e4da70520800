// A fat binary's compressed payloads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace simgpu {

// 256 MiB: the largest PTX text seen in NVIDIA's own libraries is some MB. Bounds what a few bytes can make us
// allocate.
inline constexpr std::uint64_t max_text_size = std::uint64_t{256} << 20;

// Nothing if the payload is damaged or is not `plain_size` bytes long once unpacked.
std::optional<std::string> unpack_zstd(std::span<const std::byte> payload, std::uint64_t plain_size);
std::optional<std::string> unpack_lz4(std::span<const std::byte> payload, std::uint64_t plain_size);

}  // namespace simgpu
