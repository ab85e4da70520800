// Converts time limits to the kernel's `timespec`.
#pragma once

#include <cstdint>
#include <ctime>

namespace guest {

inline timespec timespec_of(std::uint64_t nanoseconds) {
  return {.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000),
          .tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000)};
}

}  // namespace guest
