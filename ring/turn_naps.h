// While processes take turns the scheduler and the keepers look at each other's pages all the time, each on a processor of
// its own. Where there are few of these, the programs and the workers that they look at would wait for them. So there
// both sleep between two looks, and see all up to a nap later (docs/design/028-turns.md).
#pragma once

#include <chrono>

namespace ring {

constexpr std::chrono::microseconds turn_nap{50};

// `processors`: how many the machine has, whichever of them the caller may use.
constexpr bool takes_turn_naps(unsigned processors) { return processors <= 2; }

}  // namespace ring
