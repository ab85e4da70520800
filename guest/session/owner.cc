#include "guest/session/owner.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace guest {
namespace {

std::uint64_t hash_file(const char* path) {
  char text[64] = {};
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (ssize_t i = 0; i < n; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3;
  return hash;
}

// Field 22 of /proc/PID/stat; the name in field 2 may hold anything, so count from the last parenthesis.
std::uint64_t start_time(std::uint32_t pid) {
  char path[64], text[1024] = {};
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  const char* at = n > 0 ? std::strrchr(text, ')') : nullptr;
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at != nullptr ? std::strtoull(at, nullptr, 10) : 0;
}

}  // namespace

ring::SlotOwner this_process(std::uint32_t peer) {
  struct stat space {};
  stat("/proc/self/ns/pid", &space);
  const auto pid = static_cast<std::uint32_t>(getpid());
  return {.boot = hash_file("/proc/sys/kernel/random/boot_id"),
          .pid_space = space.st_ino,
          .start_time = start_time(pid),
          .pid = pid,
          .peer = peer};
}

bool certainly_dead(const ring::SlotOwner& owner, const ring::SlotOwner& self) {
  if (owner.pid == 0 || owner.boot != self.boot || owner.pid_space != self.pid_space || self.pid_space == 0)
    return false;
  if (kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) return true;
  const std::uint64_t started = start_time(owner.pid);
  return started != 0 && started != owner.start_time;
}

}  // namespace guest
