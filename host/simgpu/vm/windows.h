// The windows of the spaces that are no plain memory among generic addresses. All lie above the addresses that a
// process can map, so that no host pointer is mistaken for one.
#pragma once

#include <cstdint>

namespace simgpu {

inline constexpr std::uint64_t shared_window = 0x1'0000'0000'0000;
inline constexpr std::uint64_t local_window = 0x1'0100'0000'0000;
inline constexpr std::uint64_t param_window = 0x1'0200'0000'0000;
inline constexpr std::uint64_t function_window = 0x1'0300'0000'0000;  // addresses of functions, 16 apart
inline constexpr std::uint64_t window_size = std::uint64_t{1} << 32;

}  // namespace simgpu
