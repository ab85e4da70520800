// How long waits of late have been, in a few numbers: counts of waits by their length, of which four lengths are an
// octave. Older waits count less and less, so that what is told is what goes on.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace host::turns {

class WaitTimes {
 public:
  void add(std::chrono::nanoseconds wait) {
    const double us = std::chrono::duration<double, std::micro>(wait).count();
    const double place = us > 1 ? each_octave * std::log2(us) : 0;
    ++counts_[std::min(static_cast<std::size_t>(std::lround(place)), counts_.size() - 1)];
    if (++count_ < most) return;
    count_ = 0;
    for (std::uint32_t& one : counts_) count_ += one /= 2;
  }
  WaitTimes& operator+=(const WaitTimes& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    return *this;
  }
  // The length that this part of the waits, from 0 to 1, do not exceed, within a tenth; in seconds. 0: there were none.
  double quantile(double part) const {
    if (count_ == 0) return 0;
    const double wanted = part * static_cast<double>(count_ - 1);
    std::uint64_t below = 0;
    std::size_t i = 0;
    while (i + 1 < counts_.size() && static_cast<double>(below += counts_[i]) <= wanted) ++i;
    return std::exp2(static_cast<double>(i) / each_octave) * 1e-6;
  }

 private:
  static constexpr double each_octave = 4;
  static constexpr std::uint64_t most = 4096;
  std::array<std::uint32_t, 100> counts_{};  // from a microsecond to half a minute
  std::uint64_t count_ = 0;
};

}  // namespace host::turns
