#include "host/broker/region/plain_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

namespace host::broker {
namespace {

// Retries, because a killed broker's workers hold the lock until they end a moment later.
bool lock_soon(int fd) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

const char* kind_in_words(mode_t mode) {
  return S_ISREG(mode)    ? "a file"
         : S_ISDIR(mode)  ? "a folder"
         : S_ISLNK(mode)  ? "a symbolic link"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

// In /dev/shm any user can create the name first.
std::string in_the_way(const struct stat& status) {
  return fmt::format(
      "{} of user {} is in the way: remove it, or name a file in a folder where nobody else may make any",
      kind_in_words(status.st_mode), user_in_words(status.st_uid));
}

// True if the path is free or holds a killed broker's file. False if another object is there, which must not be
// removed.
bool find_leftover(const std::string& path, Fd& old, std::string& error) {
  struct stat status {};
  const bool is_there = lstat(path.c_str(), &status) == 0;
  if (!is_there && errno == ENOENT) return true;
  if (!is_there) return error = std::strerror(errno), false;
  if (!S_ISREG(status.st_mode)) return error = in_the_way(status), false;
  if (status.st_uid != geteuid()) {
    error = fmt::format(
        "user {} has made one: QEMU does where the VM is started before ivgpud; end the VM and remove the file",
        status.st_uid);
    return false;
  }
  old.reset(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat opened {};
  if (old && fstat(old.get(), &opened) == 0 && opened.st_ino == status.st_ino && opened.st_dev == status.st_dev)
    return true;
  error = old ? "another process changes it" : std::strerror(errno);
  return false;
}

bool remove_leftover(const std::string& path, std::string& error) {
  Fd old;
  if (!find_leftover(path, old, error)) return false;
  if (!old) return true;
  if (!lock_soon(old.get())) {
    error =
        fmt::format("another ivgpud serves it, or another process has locked it: `fuser {}` names the process", path);
    return false;
  }
  if (unlink(path.c_str()) == 0) return true;
  error = std::strerror(errno);
  return false;
}

// Refuses other file systems, which would write guest memory to a disk. `asked`: the result of statfs or fstatfs.
bool lives_in_memory(int asked, const struct statfs& system, bool& huge, std::string& error) {
  if (asked != 0) return error = std::strerror(errno), false;
  huge = system.f_type == HUGETLBFS_MAGIC;
  if (huge || system.f_type == TMPFS_MAGIC) return true;
  error = "it must lie in a file system in memory: tmpfs, as /dev/shm is, or hugetlbfs";
  return false;
}

bool give_to_group(int fd, const std::string& name, std::string& error) {
  if (name.empty()) return true;
  const auto found = group_of(name);
  if (!found) {
    error = fmt::format("there is no group {}", name);
    return false;
  }
  if (fchown(fd, static_cast<uid_t>(-1), *found) == 0) return true;
  error = fmt::format("it cannot be given to the group {}: {}", name, std::strerror(errno));
  return false;
}

}  // namespace

Fd make_plain_file(const std::string& path, std::size_t bytes, const FileAccess& access, bool& huge,
                   std::string& error) {
  if (!remove_leftover(path, error)) return {};
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    const int why = errno;
    struct stat squatter {};
    const bool is_taken = why == EEXIST && lstat(path.c_str(), &squatter) == 0;
    return error = is_taken ? in_the_way(squatter) : std::strerror(why), Fd();
  }
  const auto refuse = [&] { return unlink(path.c_str()), Fd(); };
  struct statfs system {};
  if (!lives_in_memory(fstatfs(fd.get(), &system), system, huge, error)) return refuse();
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fchmod(fd.get(), access.mode & 0666) != 0) {
    error = std::strerror(errno);
    return refuse();
  }
  return give_to_group(fd.get(), access.group, error) ? std::move(fd) : refuse();
}

bool may_make_plain_file(const std::string& path, const FileAccess& access, std::string& error) {
  const std::string folder = std::filesystem::path(path).parent_path();
  struct statfs system {};
  bool huge = false;
  if (!lives_in_memory(statfs(folder.c_str(), &system), system, huge, error)) return false;
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return error = std::strerror(errno), false;
  if (Fd old; !find_leftover(path, old, error)) return false;
  if (const auto may = may_give({access.mode, "", access.group}); !may)
    return error = "socket_" + may.error().message, false;
  return true;
}

bool is_plain_file(const Fd& memory, const std::string& path, bool& huge) {
  struct stat own {
  }, named{};
  struct statfs system {};
  std::string error;
  return fstat(memory.get(), &own) == 0 && lstat(path.c_str(), &named) == 0 && own.st_ino == named.st_ino &&
         own.st_dev == named.st_dev && S_ISREG(own.st_mode) &&
         lives_in_memory(fstatfs(memory.get(), &system), system, huge, error);
}

// rename() replaces an old link atomically, so that QEMU always finds one.
std::unique_ptr<MemoryLink> MemoryLink::make(const std::string& path, int memory, std::string& error) {
  const std::string target = fmt::format("/proc/{}/fd/{}", getpid(), memory), fresh = path + ".new";
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0 && !S_ISLNK(there.st_mode)) {
    error = fmt::format(
        "{}: is in the way and no link; QEMU does that where the VM is started before ivgpud: end the VM "
        "and remove the file",
        path);
    return nullptr;
  }
  unlink(fresh.c_str());
  if (symlink(target.c_str(), fresh.c_str()) != 0 || rename(fresh.c_str(), path.c_str()) != 0) {
    error = fmt::format("{}: {}", path, std::strerror(errno));
    return nullptr;
  }
  return std::unique_ptr<MemoryLink>(new MemoryLink(path));
}

MemoryLink::~MemoryLink() { unlink(path_.c_str()); }

Fd reopened(const Fd& memory) {
  return Fd(open(fmt::format("/proc/self/fd/{}", memory.get()).c_str(), O_RDWR | O_CLOEXEC));
}

// Takes a file lease only to test it: a process that opens the file meanwhile waits for its release.
bool open_elsewhere(int fd) {
  if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return true;
  fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

}  // namespace host::broker
