// Address windows of the state spaces other than plain memory. The windows are above all addresses that a process can
// map, so no host pointer lies in a window.
#pragma once

#include <cstdint>

namespace simgpu {

inline constexpr std::uint64_t shared_window = 0x1'0000'0000'0000;
inline constexpr std::uint64_t local_window = 0x1'0100'0000'0000;
inline constexpr std::uint64_t param_window = 0x1'0200'0000'0000;
inline constexpr std::uint64_t function_window = 0x1'0300'0000'0000;  // functions have addresses that are 16 apart
inline constexpr std::uint64_t window_size = std::uint64_t{1} << 32;

// Bits 24 to 31 of an offset in shared memory are 0 for the block's own memory, else 1 plus the rank of a block in the
// cluster. Therefore a block has less than 16 MiB of shared memory.
inline constexpr unsigned rank_shift = 24;
inline constexpr std::uint32_t most_rank_code = 0xff;
inline constexpr std::uint64_t own_shared_size = std::uint64_t{1} << rank_shift;

}  // namespace simgpu
