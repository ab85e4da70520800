// Decompresses payloads of fat binaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace simgpu {

// 256 MiB. Limits the memory that a small payload can make us allocate; the largest PTX text in NVIDIA's libraries has
// some MB.
inline constexpr std::uint64_t max_text_size = std::uint64_t{256} << 20;

// Returns nullopt if the payload is damaged or does not unpack to `plain_size` bytes.
std::optional<std::string> unpack_zstd(std::span<const std::byte> payload, std::uint64_t plain_size);
std::optional<std::string> unpack_lz4(std::span<const std::byte> payload, std::uint64_t plain_size);

}  // namespace simgpu
