// The length of a search: a number of seconds, or a number of rounds with a trailing 'x'. The load of the machine
// affects how much a search tries in seconds, but not in rounds.
#pragma once

#include <cstdlib>
#include <ctime>
#include <limits>

namespace hostile {

inline double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

class Bound {
 public:
  explicit Bound(const char* text) {
    char* end = nullptr;
    const double number = std::strtod(text, &end);
    if (*end == 'x')
      rounds_ = static_cast<unsigned long>(number);
    else
      until_ = now() + number;
  }
  bool is_over() const { return rounds_ == 0 || now() >= until_; }
  void round_over() { rounds_ -= rounds_ != unbounded ? 1 : 0; }

 private:
  static constexpr unsigned long unbounded = std::numeric_limits<unsigned long>::max();
  unsigned long rounds_ = unbounded;
  double until_ = std::numeric_limits<double>::infinity();
};

}  // namespace hostile
