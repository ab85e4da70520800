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
#include <utility>

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

// Returns a killed broker's file, or an empty Fd if the path is free. An error if another object is there, which must
// not be removed.
Result<Fd> find_leftover(const std::string& path) {
  struct stat status {};
  const bool is_there = lstat(path.c_str(), &status) == 0;
  if (!is_there && errno == ENOENT) return Fd();
  if (!is_there) return Error{std::strerror(errno)};
  if (!S_ISREG(status.st_mode)) return Error{in_the_way(status)};
  if (status.st_uid != geteuid())
    return Error{fmt::format(
        "user {} has made one: QEMU does where the VM is started before ivgpud; end the VM and remove the file",
        status.st_uid)};
  Fd old(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!old) return Error{std::strerror(errno)};
  struct stat opened {};
  if (fstat(old.get(), &opened) != 0 || opened.st_ino != status.st_ino || opened.st_dev != status.st_dev)
    return Error{"another process changes it"};
  return old;
}

Result<void> remove_leftover(const std::string& path) {
  const auto old = find_leftover(path);
  if (!old) return old.error();
  if (!*old) return {};
  if (!lock_soon(old->get()))
    return Error{
        fmt::format("another ivgpud serves it, or another process has locked it: `fuser {}` names the process", path)};
  if (unlink(path.c_str()) != 0) return Error{std::strerror(errno)};
  return {};
}

// Returns whether the file system has huge pages. Refuses file systems that are not in memory, which would write guest
// memory to a disk. `asked`: the result of statfs or fstatfs.
Result<bool> lives_in_memory(int asked, const struct statfs& system) {
  if (asked != 0) return Error{std::strerror(errno)};
  if (system.f_type == HUGETLBFS_MAGIC) return true;
  if (system.f_type == TMPFS_MAGIC) return false;
  return Error{"it must lie in a file system in memory: tmpfs, as /dev/shm is, or hugetlbfs"};
}

Result<void> give_to_group(int fd, const std::string& name) {
  if (name.empty()) return {};
  const auto found = group_of(name);
  if (!found) return Error{fmt::format("there is no group {}", name)};
  if (fchown(fd, static_cast<uid_t>(-1), *found) != 0)
    return Error{fmt::format("it cannot be given to the group {}: {}", name, std::strerror(errno))};
  return {};
}

}  // namespace

Result<PlainFile> make_plain_file(const std::string& path, std::size_t bytes, const FileAccess& access) {
  if (const auto removed = remove_leftover(path); !removed) return removed.error();
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    const int why = errno;
    struct stat squatter {};
    const bool is_taken = why == EEXIST && lstat(path.c_str(), &squatter) == 0;
    return Error{is_taken ? in_the_way(squatter) : std::strerror(why)};
  }
  const auto refuse = [&](const Error& why) {
    unlink(path.c_str());
    return why;
  };
  struct statfs system {};
  const auto huge = lives_in_memory(fstatfs(fd.get(), &system), system);
  if (!huge) return refuse(huge.error());
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fchmod(fd.get(), access.mode & 0666) != 0)
    return refuse(Error{std::strerror(errno)});
  if (const auto given = give_to_group(fd.get(), access.group); !given) return refuse(given.error());
  return PlainFile{std::move(fd), *huge};
}

Result<void> may_make_plain_file(const std::string& path, const FileAccess& access) {
  const std::string folder = std::filesystem::path(path).parent_path();
  struct statfs system {};
  const auto lives = lives_in_memory(statfs(folder.c_str(), &system), system);
  if (!lives) return lives.error();
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return Error{std::strerror(errno)};
  if (const auto old = find_leftover(path); !old) return old.error();
  if (const auto may = may_give({access.mode, "", access.group}); !may) return Error{"socket_" + may.error().message};
  return {};
}

bool is_plain_file(const Fd& memory, const std::string& path, bool& huge) {
  struct stat own {
  }, named{};
  struct statfs system {};
  if (fstat(memory.get(), &own) != 0 || lstat(path.c_str(), &named) != 0 || own.st_ino != named.st_ino ||
      own.st_dev != named.st_dev || !S_ISREG(own.st_mode))
    return false;
  const auto lives = lives_in_memory(fstatfs(memory.get(), &system), system);
  if (lives) huge = *lives;
  return static_cast<bool>(lives);
}

// rename() replaces an old link atomically, so that QEMU always finds one.
Result<std::unique_ptr<MemoryLink>> MemoryLink::make(const std::string& path, int memory) {
  const std::string target = fmt::format("/proc/{}/fd/{}", getpid(), memory), fresh = path + ".new";
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0 && !S_ISLNK(there.st_mode))
    return Error{
        fmt::format("{}: is in the way and no link; QEMU does that where the VM is started before ivgpud: end the VM "
                    "and remove the file",
                    path)};
  unlink(fresh.c_str());
  if (symlink(target.c_str(), fresh.c_str()) != 0 || rename(fresh.c_str(), path.c_str()) != 0)
    return Error{fmt::format("{}: {}", path, std::strerror(errno))};
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
