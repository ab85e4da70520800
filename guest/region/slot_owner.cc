#include "guest/region/slot_owner.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ring/abi/descriptor.h"

namespace guest {
namespace {

constexpr std::uint64_t first_pid_space = 0xeffffffc;  // the kernel's inode number of the first pid namespace

std::uint64_t hash_file(const char* path) {
  char text[64] = {};
  const int fd = cuabi::open_file(path, O_RDONLY);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  std::uint64_t hash = 0xcbf29ce484222325;  // the offset basis of FNV-1a
  for (ssize_t i = 0; i < n; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3;
  return hash;
}

// Fields of /proc/PID/stat; all zero if there is no process with this PID.
struct Stat {
  char state = 0;
  std::uint64_t threads = 0, start_time = 0;
};

// The name in field 2 may contain any byte, so fields are counted from the last parenthesis.
Stat stat_of(std::uint32_t pid) {
  char path[64], text[1024] = {};
  std::snprintf(path, sizeof path, "/proc/%u/stat", pid);
  const int fd = cuabi::open_file(path, O_RDONLY);
  if (fd < 0) return {};
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  Stat stat;
  const char* at = n > 0 ? std::strrchr(text, ')') : nullptr;
  for (int field = 3; at != nullptr && field <= 22; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at == nullptr) return {};
    if (field == 3) stat.state = at[1];
    if (field == 20) stat.threads = std::strtoull(at, nullptr, 10);
    if (field == 22) stat.start_time = std::strtoull(at, nullptr, 10);
  }
  return stat;
}

// Returns true for an ended process for which its parent has not waited. If only the first thread has ended, the state
// is the same, but the process has more threads.
bool is_zombie(const Stat& stat) { return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1; }

}  // namespace

ring::SlotOwner this_process(std::uint32_t peer) {
  struct stat space {};
  stat("/proc/self/ns/pid", &space);
  const auto pid = static_cast<std::uint32_t>(getpid());
  return {.boot = hash_file("/proc/sys/kernel/random/boot_id"),
          .pid_space = space.st_ino,
          .start_time = stat_of(pid).start_time,
          .pid = pid,
          .peer = peer};
}

ProgramName this_program() {
  ProgramName name{};
  std::strncpy(name.text, program_invocation_short_name, sizeof name.text - 1);
  return name;
}

ProgramName printable(ProgramName name) {
  name.text[sizeof name.text - 1] = '\0';
  for (char* at = name.text; *at != '\0'; ++at)
    if (*at < ' ' || *at > '~') *at = '?';
  return name;
}

bool certainly_dead(const ring::SlotOwner& owner, const ring::SlotOwner& self) {
  if (owner.pid == 0 || owner.pid_space != self.pid_space || self.pid_space == 0) return false;
  // A different boot id of the same ivshmem peer means that the VM was rebooted within one QEMU. A container may have
  // its own boot id, so this counts only in the machine's first pid namespace.
  if (owner.boot != self.boot)
    return owner.peer == self.peer && owner.boot != 0 && self.boot != 0 && self.pid_space == first_pid_space;
  if (kill(static_cast<pid_t>(owner.pid), 0) != 0 && errno == ESRCH) return true;
  const Stat now = stat_of(owner.pid);
  return now.start_time != 0 && (now.start_time != owner.start_time || is_zombie(now));
}

}  // namespace guest
