#include "host/jail/namespaces.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace host::jail {
namespace {

constexpr unsigned long ms_rec_private = (1UL << 14) | (1UL << 18);  // MS_REC | MS_PRIVATE; sys/mount.h and
                                                                     // linux/mount.h cannot both be included

std::string failed(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

bool write_file(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return written;
}

std::string map_own_user(uid_t uid, gid_t gid) {
  const auto to_itself = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  if (!write_file("/proc/self/setgroups", "deny")) return failed("/proc/self/setgroups");
  if (!write_file("/proc/self/uid_map", to_itself(uid))) return failed("/proc/self/uid_map");
  if (!write_file("/proc/self/gid_map", to_itself(gid))) return failed("/proc/self/gid_map");
  return {};
}

bool set_mount(const char* path, unsigned flags, std::uint64_t set, std::uint64_t clear) {
  mount_attr attributes{};
  attributes.attr_set = set;
  attributes.attr_clr = clear;
  return syscall(SYS_mount_setattr, AT_FDCWD, path, flags, &attributes, sizeof attributes) == 0;
}

std::string make_mounts_private() {
  if (syscall(SYS_mount, "none", "/", nullptr, ms_rec_private, nullptr) != 0) return failed("private mounts");
  return {};
}

// Mounts a /proc that does not show the command lines and states of other processes. Only root may do so without a PID
// namespace. Without this mount, Landlock still protects the memory, descriptors and environment of other processes.
std::string hide_other_processes() {
  constexpr unsigned long flags = 2 | 4 | 8;  // MS_NOSUID | MS_NODEV | MS_NOEXEC
  if (syscall(SYS_mount, "proc", "/proc", "proc", flags, "hidepid=ptraceable") != 0) return failed("/proc of its own");
  return {};
}

// Makes a folder a mount point if needed. A missing folder is ignored.
bool make_writable(const char* folder) {
  constexpr unsigned long ms_bind = 1UL << 12;  // MS_BIND
  if (access(folder, F_OK) != 0 || set_mount(folder, 0, 0, MOUNT_ATTR_RDONLY)) return true;
  return syscall(SYS_mount, folder, folder, nullptr, ms_bind, nullptr) == 0 &&
         set_mount(folder, 0, 0, MOUNT_ATTR_RDONLY);
}

// Makes all mounts read-only. Landlock also refuses writes, so either layer alone suffices if the other is missing.
std::string make_mounts_read_only(const std::vector<std::string>& writable) {
  if (!set_mount("/", AT_RECURSIVE, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0)) return failed("read-only mounts");
  if (!set_mount("/proc", 0, 0, MOUNT_ATTR_RDONLY)) return failed("writable /proc");
  for (const std::string& folder : writable)
    if (!make_writable(folder.c_str())) return failed(("writable " + folder).c_str());
  return {};
}

}  // namespace

Result apply_namespaces(const std::vector<std::string>& writable) {
  Result result{Layer::Namespaces, {}};
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  const bool root = uid == 0;
  if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | (root ? 0 : CLONE_NEWUSER)) != 0) {
    result.missing = failed("unshare");
    return result;
  }
  if (!root) result.missing = map_own_user(uid, gid);
  if (result.missing.empty()) result.missing = make_mounts_private();
  if (result.missing.empty() && root) result.missing = hide_other_processes();
  if (result.missing.empty()) result.missing = make_mounts_read_only(writable);
  return result;
}

}  // namespace host::jail
