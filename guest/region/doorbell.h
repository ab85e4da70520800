// Rings the doorbell of a host peer (ring::peer_broker, ring::peer_of_slot). On an ivshmem device with doorbells, that
// is a register; otherwise a bit in the region's header, which the broker polls.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout/region_view.h"

namespace guest {

// The ivshmem device's BAR0: the number of bytes mapped, and the byte offsets of its 32-bit registers.
inline constexpr std::size_t registers_bytes = 256;
inline constexpr std::size_t register_id = 8, register_doorbell = 12;

inline void ring_by_register(volatile std::uint32_t* registers, std::uint32_t peer) {
  registers[register_doorbell / 4] = peer << 16;
}

inline void ring_by_header(ring::Shared<ring::RegionHeader> header, std::uint32_t peer) {
  header[&ring::RegionHeader::doorbell_bits][peer / 64].fetch_or(1ULL << peer % 64, std::memory_order_release);
}

}  // namespace guest
