// The unit of time and the clock of the GPU scheduler.
#pragma once

#include <chrono>

namespace host::scheduler {

using Time = std::chrono::nanoseconds;  // a duration, or a time since boot

inline Time since_boot() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace host::scheduler
