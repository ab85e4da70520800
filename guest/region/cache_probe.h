// Whether a mapping is cached, measured: dependent loads, one cache line each. Mapped write-back a load that hits takes
// a few nanoseconds; uncached it goes over the bus every time, 100 ns and more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace guest {

using Nanoseconds = std::uint64_t (*)();
std::uint64_t monotonic_nanoseconds();

// The time of one load, the best of several passes over [at, at + bytes). The clock comes from the caller.
double nanoseconds_per_line(const std::byte* at, std::size_t bytes, Nanoseconds clock);

// More than any cache takes, less than any bus.
constexpr bool uncached(double nanoseconds) { return nanoseconds > 50; }

}  // namespace guest
