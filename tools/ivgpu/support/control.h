// The client's side of the broker's control socket (host/broker/ops/control_protocol.h).
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

namespace ivgpu {

// Sends one line, and hands on the lines of the answer, made printable, until the connection ends. An Error where there is
// no broker, or where for so long nothing comes.
void ask_broker(const std::filesystem::path& runtime_dir, const std::string& request,
                std::chrono::milliseconds patience, const std::function<void(const std::string& line)>& each);

// Of "reload": a VM that leaves has its memory wiped, however large that is, before the next line comes.
inline constexpr auto reload_patience = std::chrono::minutes(5);

}  // namespace ivgpu
