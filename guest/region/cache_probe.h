// Measures whether a mapping is cached, by dependent loads, one from each cache line. In a write-back mapping a load
// that hits the cache takes a few nanoseconds. In an uncached mapping each load goes over the bus and takes 100 ns or
// more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace guest {

using Nanoseconds = std::uint64_t (*)();
std::uint64_t monotonic_nanoseconds();

// The time of one load in nanoseconds: the best of several passes over [at, at + bytes). The caller gives the clock, so
// that tests can.
double nanoseconds_per_line(const std::byte* at, std::size_t bytes, Nanoseconds clock);

// The limit is more than any cache takes, and less than any bus.
constexpr bool uncached(double nanoseconds) { return nanoseconds > 50; }

}  // namespace guest
