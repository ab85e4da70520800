// The worker's own ioctl(), which the driver library finds before the C library's ioctl(). It logs the number of each
// request that the jail refuses, so that the needs of a new driver show at once. It also records the channels that the
// driver library makes.
//
// This function only reports. The seccomp filter refuses the request, so a subverted worker that calls the kernel
// directly only avoids the report. The filter could raise SIGSYS instead, but SIGSYS would kill the worker if a thread
// blocks signals, as a library's threads may.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

#include "host/jail/ioctls.h"
#include "host/jail/seccomp.h"
#include "host/worker/channel_report.h"

namespace {

using Ioctl = int (*)(int, unsigned long, ...);

// The function is looked up before the jail closes, and before there are other threads.
const auto next = reinterpret_cast<Ioctl>(dlsym(RTLD_NEXT, "ioctl"));

constexpr std::size_t most_reported = 32;
std::atomic<std::uint32_t> reported[most_reported] = {};  // request numbers; 0: a free entry

// Returns true at a number's first report. Returns false if the table is full.
bool first_time(std::uint32_t number) {
  for (std::atomic<std::uint32_t>& place : reported) {
    std::uint32_t seen = 0;
    if (place.compare_exchange_strong(seen, number, std::memory_order_relaxed)) return true;
    if (seen == number) return false;
  }
  return false;
}

void report(int fd, std::uint32_t number) {
  char link[32], path[64] = {};
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) < 0) path[0] = '?';
  char line[192];
  const int length =
      std::snprintf(line, sizeof line,
                    "the jail refused ioctl 0x%08x of %s, which is not in its list: tools/dev/record-ioctls "
                    "records it anew\n",
                    number, path);
  static_cast<void>(!write(STDERR_FILENO, line, static_cast<std::size_t>(length)));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const int result =
      next != nullptr ? next(fd, request, argument) : static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
  if (result == 0) host::worker::note_request(fd, request, argument);
  if (result != -1 || errno != EPERM || !host::jail::list_in_force()) return result;
  const auto number = static_cast<std::uint32_t>(request);
  if (number != 0 && !host::jail::is_listed(number) && first_time(number)) report(fd, number);
  errno = EPERM;
  return result;
}
