// A line of the log that a guest or a client can cause as often as it likes: written once a second at most, or so many
// times, and then with how many were left out since. The time is passed in, so that it is tested without waiting.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace host::broker {

class LogLimiter {
 public:
  static constexpr auto between = std::chrono::seconds(1);
  using Time = std::chrono::steady_clock::time_point;

  explicit LogLimiter(int lines = 1) : lines_(lines) {}

  // Nothing if the line is to be left out. Else the words that end it: "", or the number of lines left out before.
  std::optional<std::string> admit(Time now = std::chrono::steady_clock::now()) {
    if (!first_ || now - *first_ >= between) {
      first_ = now;
      written_ = 0;
    }
    if (written_ == lines_) {
      ++left_out_;
      return std::nullopt;
    }
    ++written_;
    const auto before = std::exchange(left_out_, 0);
    return before == 0 ? "" : fmt::format(" ({} more such lines were left out before)", before);
  }

 private:
  const int lines_;            // that a second may have
  std::optional<Time> first_;  // when the second began that `written_` counts
  int written_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace host::broker
