// The client's side of the broker's control socket (host/broker/ops/control_protocol.h).
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

namespace ivgpu {

// Sends one line and passes each line of the answer, made printable, to `each`. Throws an Error if no broker listens or
// no line arrives within `patience`.
void ask_broker(const std::filesystem::path& runtime_dir, const std::string& request,
                std::chrono::milliseconds patience, const std::function<void(const std::string& line)>& each);

// For "reload": the broker scrubs all memory of a removed VM before it sends the next line.
inline constexpr auto reload_patience = std::chrono::minutes(5);

}  // namespace ivgpu
