// Limits a log line that a guest or a client can cause at will. It admits `lines` lines a second, one by default, and
// counts the lines that it drops. The caller passes the time, so tests need not wait.
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

  // Returns nothing if the line is to be dropped. Else returns the line's ending: "", or the number dropped since the
  // last.
  [[nodiscard]] std::optional<std::string> admit(Time now = std::chrono::steady_clock::now()) {
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
  const int lines_;            // lines admitted per second
  std::optional<Time> first_;  // start of the second that `written_` counts
  int written_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace host::broker
