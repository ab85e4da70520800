// The optimisations of a worker that its guest can switch off (guest/base/switches.h), as bits of the call switch_off.
//
// ```cpp
// bool uses_chains(std::uint64_t switched_off) { return (switched_off & ring::switch_launch_chains) == 0; }
// ```
#pragma once

#include <cstdint>

namespace ring {

inline constexpr std::uint64_t switch_launch_graphs = 1;  // launches by graphs that the worker keeps
inline constexpr std::uint64_t switch_launch_chains = 2;  // several launches by one graph
inline constexpr std::uint64_t known_switches = switch_launch_graphs | switch_launch_chains;

}  // namespace ring
