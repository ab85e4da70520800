// The messages from the guest program of the jail's test to the misbehaving driver: text in device memory.
#pragma once

#include <cstddef>

namespace misbehave {

inline constexpr unsigned wish = 0x6861'726d;
inline constexpr std::size_t wish_bytes = 4096;

}  // namespace misbehave
