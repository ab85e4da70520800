// Decompresses the payloads of fat binaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace simgpu {

// 256 MiB. This limits how much memory a small payload can make the process allocate. The largest PTX text in NVIDIA's
// libraries has a few MB.
inline constexpr std::uint64_t max_text_size = std::uint64_t{256} << 20;

// These functions return nullopt if the payload is damaged or does not unpack to `plain_size` bytes.
std::optional<std::string> unpack_zstd(std::span<const std::byte> payload, std::uint64_t plain_size);
std::optional<std::string> unpack_lz4(std::span<const std::byte> payload, std::uint64_t plain_size);

}  // namespace simgpu
