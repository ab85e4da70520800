#include "host/broker/region/plain_file_space.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>

namespace host::broker {
namespace {

struct Space {
  std::string folder, vms;  // the first VM's, and all VMs' names
  std::uint64_t needed = 0, left = 0;
};

std::uint64_t bytes_left(const struct statfs& system) {
  const auto block = static_cast<std::uint64_t>(system.f_bsize);
  if (system.f_blocks != 0) return static_cast<std::uint64_t>(system.f_bavail) * block;
  // Mounted without a size limit: the machine's memory is the limit.
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// The leftover of a dead broker will be replaced, which frees its pages.
std::uint64_t bytes_of_leftover(const std::string& path) {
  struct stat old {};
  if (lstat(path.c_str(), &old) != 0 || !S_ISREG(old.st_mode)) return 0;
  return static_cast<std::uint64_t>(old.st_blocks) * 512;
}

}  // namespace

Result<void> plain_files_fit(const std::vector<VmOptions>& vms) {
  std::map<dev_t, Space> spaces;
  for (const VmOptions& vm : vms) {
    if (vm.plain_file.empty()) continue;
    const std::string folder = std::filesystem::path(vm.plain_file).parent_path();
    struct stat status {};
    struct statfs system {};
    if (stat(folder.c_str(), &status) != 0 || statfs(folder.c_str(), &system) != 0) continue;
    if (system.f_type != TMPFS_MAGIC) continue;
    Space& space = spaces[status.st_dev];
    if (space.vms.empty()) space = {folder, "", 0, bytes_left(system)};
    space.vms += (space.vms.empty() ? "" : ", ") + vm.name;
    space.needed += memory_bytes(vm);
    space.left += bytes_of_leftover(vm.plain_file);
  }
  for (const auto& [device, space] : spaces) {
    if (space.needed <= space.left) continue;
    return Error{fmt::format(
        "the plain_file of {} needs {} MiB in all, and the file system of {} has {} MiB left; give it more (mount -o "
        "remount,size=...) or the VMs a smaller region_size",
        space.vms, space.needed >> 20, space.folder, space.left >> 20)};
  }
  return {};
}

}  // namespace host::broker
