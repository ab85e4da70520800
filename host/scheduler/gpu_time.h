// The unit and the clock of the scheduler of GPU time.
#pragma once

#include <chrono>

namespace host::scheduler {

using Time = std::chrono::nanoseconds;  // a duration, or a moment since boot

inline Time since_boot() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace host::scheduler
