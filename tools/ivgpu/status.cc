// `ivgpu status`: connects to the broker's status socket, reads one JSON document, and shows it.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/ivgpu/child.h"
#include "tools/ivgpu/commands.h"
#include "tools/ivgpu/error.h"

namespace ivgpu {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int known_format = 1;
constexpr auto patience = std::chrono::seconds(5);
constexpr std::size_t longest = 16 << 20;

Fd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw Error(exit_code::usage, path + " is too long for a socket's path");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw Error(exit_code::missing, "no ivgpud answers at " + path + ": " + std::strerror(errno));
  return socket;
}

std::string read_to_end(const Fd& socket) {
  std::string text;
  const auto end = Clock::now() + patience;
  while (text.size() < longest) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    pollfd wait{socket.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) != 1) break;
    char buffer[16384];
    const ssize_t n = read(socket.get(), buffer, sizeof buffer);
    if (n == 0) return text;
    if (n < 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  throw Error(exit_code::missing, "the broker did not tell its status to the end");
}

std::string size_of(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string seconds_of(const json& seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds.get<double>());
  return text;
}

std::string joined(const json& words) {
  std::string text;
  for (const json& word : words) text += (text.empty() ? "" : ", ") + word.get<std::string>();
  return text.empty() ? "nothing" : text;
}

// "no_new_privs, user; missing: landlock (...)"
std::string jail_of(const json& jail) {
  const std::string missing = jail.at("missing");
  return joined(jail.at("layers")) + (missing.empty() ? "" : "; missing: " + missing);
}

std::string slot_line(const json& slot) {
  const std::string worker = slot.contains("worker") ? std::to_string(slot["worker"].get<long>()) : "-";
  char text[96];
  std::snprintf(text, sizeof text, "  slot %-2d  %-8s  worker %-8s", slot.at("slot").get<int>(),
                slot.at("state").get<std::string>().c_str(), worker.c_str());
  std::string line = text;
  if (slot.contains("owner")) {
    const json& owner = slot["owner"];
    line += "  process " + std::to_string(owner.at("process").get<long>()) + " of peer " +
            std::to_string(owner.at("peer").get<long>()) + ", for " + seconds_of(slot.at("claimed_s"));
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

// Once where all workers have the same, else for each.
std::string jail_lines(const json& vm) {
  std::string lines, first;
  bool same = true;
  for (const json& slot : vm.at("slots")) {
    if (!slot.contains("jail")) continue;
    const std::string jail = jail_of(slot["jail"]);
    same = same && (first.empty() || jail == first);
    if (first.empty()) first = jail;
    lines += "  jail of slot " + std::to_string(slot.at("slot").get<int>()) + ": " + jail + "\n";
  }
  return same && !first.empty() ? "  jail: " + first + "\n" : lines;
}

std::string vm_text(const json& vm) {
  std::string text = "VM " + vm.at("name").get<std::string>() + ": " + vm.at("socket").get<std::string>() + vm.value("memory", "") +
                     ", region " + size_of(vm.at("region_bytes")) + ", slots of " + size_of(vm.at("slot_bytes")) +
                     ", connections " + std::to_string(vm.at("connections").get<long>()) + ", jail " +
                     vm.at("jail").get<std::string>() + "\n";
  for (const json& slot : vm.at("slots")) text += slot_line(slot);
  return text + jail_lines(vm);
}

}  // namespace

std::string status_as_text(const std::string& document) {
  const json status = json::parse(document, nullptr, false);
  if (!status.is_object() || status.value("format", json()) != known_format)
    throw Error(exit_code::missing, "the broker is of another version: this is not the status that this ivgpu knows");
  try {
    std::string text = "ivgpud " + status.at("version").get<std::string>() + ", process " +
                       std::to_string(status.at("process").get<long>()) + ", up " + seconds_of(status.at("up_s")) +
                       ", driver " + status.at("library").get<std::string>() + "\n";
    for (const json& vm : status.at("vms")) text += vm_text(vm);
    return text;
  } catch (const json::exception& failed) {
    throw Error(exit_code::missing, std::string("the broker's status is not complete: ") + failed.what());
  }
}

std::string read_status(const std::filesystem::path& runtime_dir) {
  return read_to_end(connect_to(runtime_dir / "ivgpud.status"));
}

int status(const StatusOptions& options) {
  const std::string document = read_status(options.runtime_dir);
  const std::string text = options.json ? document : status_as_text(document);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace ivgpu
