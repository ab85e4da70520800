// How long the silence of one whose turn it is lasts before the turn is over. Its worker judges by this when to give a turn
// back, and the scheduler when one is done whose gate stays open.
//
// Passing a turn on costs about as much as a pause of 150 us, so that is the longest. Where several pauses in a row outlasted
// it, the next is believed to do so, too.
#pragma once

#include <chrono>

namespace ring {

class TurnPatience {
 public:
  static constexpr std::chrono::microseconds longest{150};

  // `shortest`: where its pauses outlast `longest`.
  std::chrono::microseconds now(std::chrono::microseconds shortest) const {
    return misses_ < most_misses ? longest : shortest;
  }
  void came_back() { misses_ = 0; }  // within `longest`
  void stayed_away() { misses_ += misses_ < most_misses; }

 private:
  static constexpr int most_misses = 4;
  int misses_ = 0;
};

}  // namespace ring
