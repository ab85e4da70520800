// The unit of the scheduler of GPU time.
#pragma once

#include <chrono>

namespace host::scheduler {

using Time = std::chrono::nanoseconds;  // a duration, or a moment since boot

}  // namespace host::scheduler
