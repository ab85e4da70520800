// `ivgpu end`: one line to the broker's control socket, and one back (host/broker/control_server.h).
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tools/ivgpu/commands.h"
#include "tools/ivgpu/error.h"
#include "tools/ivgpu/say.h"
#include "tools/ivgpu/socket.h"

namespace ivgpu {
namespace {

constexpr int patience_ms = 5000;
constexpr std::size_t longest = 4096;

std::string line_from(const Fd& socket) {
  std::string line;
  pollfd wait{socket.get(), POLLIN, 0};
  while (line.find('\n') == std::string::npos && line.size() < longest && poll(&wait, 1, patience_ms) == 1) {
    char bytes[512];
    const ssize_t n = read(socket.get(), bytes, sizeof bytes);
    if (n <= 0) break;
    line.append(bytes, static_cast<std::size_t>(n));
  }
  const std::size_t end = line.find('\n');
  if (end == std::string::npos) throw Error(exit_code::missing, "the broker did not answer");
  line.resize(end);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

// Refuses a target that would not arrive as one line, or as this name.
void check(const std::string& target) {
  const auto strange = [](char c) { return c <= ' ' || c > '~'; };
  if (target.empty() || target.size() > 100 || std::any_of(target.begin(), target.end(), strange))
    throw Error(exit_code::usage, "end needs a VM, or a VM and a session as in VM/3");
}

}  // namespace

int end_sessions(const EndOptions& options) {
  check(options.target);
  const Fd socket = connect_to((options.runtime_dir / "ivgpud.control").string());
  const std::string request = "end " + options.target + "\n";
  if (send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
    throw Error(exit_code::missing, "the broker did not take the request");
  const std::string answer = line_from(socket);
  const std::string vm = options.target.substr(0, options.target.find('/'));
  if (answer.starts_with("error ")) throw Error(exit_code::refused, answer.substr(6));
  if (!answer.starts_with("ok ")) throw Error(exit_code::missing, "what answered is no broker of this version");
  const std::string count = answer.substr(3);
  say("VM " + vm + ": " + count + (count == "1" ? " session ends\n" : " sessions end\n"));
  return 0;
}

}  // namespace ivgpu
