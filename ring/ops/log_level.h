// The levels of IVGPU_LOG by their names, for the library that logs and for the commands that list the levels. All
// functions are pure.
//
// ```cpp
// ring::LogLevel level_of(const char* variable) {
//   if (variable == nullptr) return ring::LogLevel::Warn;
//   return ring::log_level_of(variable).value_or(ring::LogLevel::Warn);  // nothing: no such level
// }
// ```
#pragma once

#include <optional>
#include <string_view>

namespace ring {

enum class LogLevel { Off, Error, Warn, Info, Debug, Trace };  // Trace: one line for each call of the program

inline constexpr const char* log_level_names = "off, error, warn, info, debug or trace";

// Returns nothing if no level has that name.
constexpr std::optional<LogLevel> log_level_of(std::string_view name) {
  constexpr std::string_view names[] = {"off", "error", "warn", "info", "debug", "trace"};
  for (int level = 0; level < 6; ++level)
    if (name == names[level]) return static_cast<LogLevel>(level);
  return std::nullopt;
}

}  // namespace ring
