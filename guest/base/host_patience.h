// Reads IVGPU_HOST_PATIENCE, for the guest library and for ivgpu-check.
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace guest {

// IVGPU_HOST_PATIENCE: the number of unanswered questions after which the guest treats the host as gone; 1 to 36,000.
// The guest asks ten questions a second.
struct HostPatience {
  static constexpr unsigned most = 36'000;
  const char* text = std::getenv("IVGPU_HOST_PATIENCE");  // null if the variable is not set

  // Returns nothing if the variable is not set or is no number in that range.
  std::optional<unsigned> questions() const {
    const std::string_view given = text != nullptr ? text : "";
    unsigned number = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
    const bool whole = error == std::errc() && end == given.data() + given.size();
    return whole && number >= 1 && number <= most ? std::optional(number) : std::nullopt;
  }
};

}  // namespace guest
