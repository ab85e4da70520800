// `ivgpu status` connects to the broker's status socket, reads one JSON document and shows it, once or repeatedly.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "tools/ivgpu/commands/commands.h"
#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/socket.h"
#include "tools/ivgpu/support/standard_output.h"

namespace ivgpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(5);
constexpr std::size_t longest = 16 << 20;

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
  throw Error(exit_code::missing, "the broker did not report its status to the end");
}

// Repeats the status; on a terminal each replaces the previous one.
[[noreturn]] void watch(const StatusOptions& options) {
  const char* between = isatty(STDOUT_FILENO) != 0 ? "\x1b[H\x1b[2J" : "\n";
  std::string before = read_status(options.runtime_dir);
  auto then = Clock::now();
  print(options.json ? before : status_as_text(before));
  for (;;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch_s));
    const std::string now = read_status_again(options.runtime_dir);
    const std::chrono::duration<double> passed = Clock::now() - std::exchange(then, Clock::now());
    print(options.json ? now : between + status_as_text(now, before, passed.count()));
    before = now;
  }
}

}  // namespace

std::string read_status(const std::filesystem::path& runtime_dir) {
  return read_to_end(connect_to(runtime_dir / "ivgpud.status"));
}

std::string read_status_again(const std::filesystem::path& runtime_dir) {
  try {
    return read_status(runtime_dir);
  } catch (const Error&) {
    throw Error(exit_code::missing, "the broker has ended");
  }
}

int status(const StatusOptions& options) {
  if (options.watch_s > 0) watch(options);
  const std::string document = read_status(options.runtime_dir);
  print(options.json ? document : status_as_text(document));
  return 0;
}

}  // namespace ivgpu
