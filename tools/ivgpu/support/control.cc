#include "tools/ivgpu/support/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/socket.h"

namespace ivgpu {
namespace {

constexpr std::size_t longest = 4096;  // bytes of a line, for one read

// The bytes that have arrived; "" at the end of the stream.
std::string piece_from(const Fd& socket, std::chrono::milliseconds patience) {
  pollfd wait{socket.get(), POLLIN, 0};
  if (poll(&wait, 1, static_cast<int>(patience.count())) != 1)
    throw Error(exit_code::missing, "the broker did not answer");
  char bytes[512];
  const ssize_t n = read(socket.get(), bytes, sizeof bytes);
  return {bytes, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

std::string printable(std::string line) {
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

}  // namespace

void ask_broker(const std::filesystem::path& runtime_dir, const std::string& request,
                std::chrono::milliseconds patience, const std::function<void(const std::string& line)>& each) {
  const Fd socket = connect_to((runtime_dir / "ivgpud.control").string());
  const std::string line = request + "\n";
  if (send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    throw Error(exit_code::missing, "the broker did not take the request");
  std::string text;
  for (std::string piece; !(piece = piece_from(socket, patience)).empty() && text.size() < longest;) {
    text += piece;
    for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
      each(printable(text.substr(0, end)));
  }
}

}  // namespace ivgpu
