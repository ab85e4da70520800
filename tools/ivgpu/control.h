// The client's side of the broker's control socket (host/broker/control_protocol.h).
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

}  // namespace ivgpu
