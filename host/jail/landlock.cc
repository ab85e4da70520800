#include "host/jail/landlock.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace host::jail {
namespace {

// Debian 12's header ends at version 2 of the interface. The kernel reports the version that it supports.
constexpr std::uint64_t fs_execute = 1ULL << 0, fs_write_file = 1ULL << 1, fs_read_file = 1ULL << 2;
constexpr std::uint64_t fs_read_dir = 1ULL << 3, fs_truncate = 1ULL << 14, fs_ioctl_dev = 1ULL << 15;
constexpr std::uint64_t net_bind_and_connect_tcp = 3;
constexpr std::uint64_t scope_abstract_socket = 1ULL << 0, scope_signal = 1ULL << 1;

struct RulesetAttributes {
  std::uint64_t handled_fs, handled_net, scoped;
};

struct Version {
  long number;
  std::uint64_t all_fs() const {
    const int bits = number >= 5 ? 16 : number >= 3 ? 15 : number >= 2 ? 14 : 13;
    return (1ULL << bits) - 1;
  }
  std::size_t attributes_size() const { return number >= 6 ? 24 : number >= 4 ? 16 : 8; }
};

std::string failed(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

class Ruleset {
 public:
  Ruleset(int fd, Version version) : fd_(fd), version_(version) {}
  ~Ruleset() { close(fd_); }
  Ruleset(const Ruleset&) = delete;
  Ruleset& operator=(const Ruleset&) = delete;

  // Adds a rule for a path. A missing path needs no rule. For a file, the rights that only folders can have are
  // dropped.
  void allow(const std::string& path, std::uint64_t rights) {
    const int target = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (target < 0) return;
    struct stat status {};
    if (fstat(target, &status) == 0) {
      if (!S_ISDIR(status.st_mode)) rights &= fs_read_file | fs_write_file | fs_truncate | fs_ioctl_dev;
      landlock_path_beneath_attr rule{};
      rule.allowed_access = rights & version_.all_fs();
      rule.parent_fd = target;
      if (syscall(SYS_landlock_add_rule, fd_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0 && broken_.empty()) {
        broken_ = failed(path.c_str());
      }
    }
    close(target);
  }

  std::string enforce() {
    if (!broken_.empty()) return broken_;
    return syscall(SYS_landlock_restrict_self, fd_, 0) == 0 ? std::string() : failed("landlock_restrict_self");
  }

 private:
  int fd_;
  Version version_;
  std::string broken_;
};

constexpr std::uint64_t reading = fs_read_file | fs_read_dir;
constexpr std::uint64_t device = fs_read_file | fs_write_file | fs_ioctl_dev;

void allow_system(Ruleset& rules) {
  for (const char* folder : {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/proc", "/sys"}) {
    rules.allow(folder, reading);
  }
  // In /etc, allows only the files that the loader, the C library's clock and the driver read, and nothing about users
  // or services.
  for (const char* path : {"/etc/ld.so.cache", "/etc/localtime", "/etc/nvidia"}) rules.allow(path, reading);
  // fopen("w") requests truncation, even for these files
  rules.allow("/proc/self/task", reading | fs_write_file | fs_truncate);
  rules.allow("/dev/null", device);
  for (const char* file : {"/dev/zero", "/dev/urandom"}) rules.allow(file, reading);
}

void allow_all_gpu_devices(Ruleset& rules) {
  DIR* folder = opendir("/dev");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (name.rfind("nvidia", 0) == 0) rules.allow("/dev/" + name, device | fs_read_dir);
  }
  closedir(folder);
}

}  // namespace

Result apply_landlock(const LandlockPaths& paths) {
  Result result{Layer::Landlock, {}};
  const Version version{syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION)};
  if (version.number < 1) {
    result.missing = failed("the kernel has no Landlock");
    return result;
  }
  // The driver communicates with a sharing daemon over sockets, which may be abstract.
  const std::uint64_t scopes = scope_signal | (paths.write.empty() ? scope_abstract_socket : 0);
  const RulesetAttributes attributes{version.all_fs(), net_bind_and_connect_tcp, scopes};
  const long fd = syscall(SYS_landlock_create_ruleset, &attributes, version.attributes_size(), 0);
  if (fd < 0) {
    result.missing = failed("landlock_create_ruleset");
    return result;
  }
  Ruleset rules(static_cast<int>(fd), version);
  allow_system(rules);
  if (paths.devices.empty()) allow_all_gpu_devices(rules);
  for (const std::string& path : paths.devices) rules.allow(path, device);
  for (const std::string& path : paths.read) rules.allow(path, reading);
  for (const std::string& path : paths.write) rules.allow(path, version.all_fs() & ~fs_execute);
  result.missing = rules.enforce();
  return result;
}

}  // namespace host::jail
