// Measures whether a mapping is cached. The measurement makes dependent loads, one from each cache line. In a
// write-back mapping a cache hit takes a few nanoseconds. In an uncached mapping each load crosses the bus and takes
// 100 ns or more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace guest {

using Nanoseconds = std::uint64_t (*)();
std::uint64_t monotonic_nanoseconds();

// Returns the time of one load in nanoseconds: the best of several passes over [at, at + bytes). Tests pass a clock of
// their own.
double nanoseconds_per_line(const std::byte* at, std::size_t bytes, Nanoseconds clock);

// 50 ns is more than a load from any cache takes, and less than a load across any bus.
constexpr bool uncached(double nanoseconds) { return nanoseconds > 50; }

}  // namespace guest
