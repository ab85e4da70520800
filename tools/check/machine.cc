#include "tools/check/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace check {

Machine::Machine(std::string root) : root_(std::move(root)) {
  std::istringstream lines(text("/proc/self/status").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    unsigned real = 0, id = 0;
    words >> key;
    if (key == "Uid:" && words >> real >> id) user_ = id;
    if (key == "Gid:" && words >> real >> id) groups_.push_back(id);
    while (key == "Groups:" && words >> id) groups_.push_back(id);
  }
}

bool Machine::has(const std::string& path) const { return access(at(path).c_str(), F_OK) == 0; }

std::optional<std::string> Machine::text(const std::string& path) const {
  const int fd = open(at(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string all(64 << 10, '\0');
  const ssize_t n = read(fd, all.data(), all.size());
  close(fd);
  if (n < 0) return std::nullopt;
  all.resize(static_cast<std::size_t>(n));
  return all;
}

std::optional<long long> Machine::number(const std::string& path) const {
  const auto words = text(path);
  if (!words) return std::nullopt;
  char* end = nullptr;
  const long long value = std::strtoll(words->c_str(), &end, 0);
  return end == words->c_str() ? std::nullopt : std::optional(value);
}

std::vector<std::string> Machine::names(const std::string& folder) const {
  std::vector<std::string> all;
  DIR* open = opendir(at(folder).c_str());
  while (const dirent* entry = open != nullptr ? readdir(open) : nullptr)
    if (entry->d_name[0] != '.') all.emplace_back(entry->d_name);
  if (open != nullptr) closedir(open);
  std::sort(all.begin(), all.end());
  return all;
}

std::string Machine::target(const std::string& link) const {
  char name[4096];
  const ssize_t n = readlink(at(link).c_str(), name, sizeof name);
  return n > 0 ? std::string(name, static_cast<std::size_t>(n)) : "";
}

bool Machine::may_use(const std::string& path) const {
  // Asks the kernel, which also applies access control lists: the user at the screen often gets access to /dev/kvm from
  // such a list.
  if (user_ == geteuid()) return faccessat(AT_FDCWD, at(path).c_str(), R_OK | W_OK, AT_EACCESS) == 0;
  struct stat status {};
  if (stat(at(path).c_str(), &status) != 0) return false;
  if (user_ == 0) return true;
  const bool member = std::find(groups_.begin(), groups_.end(), status.st_gid) != groups_.end();
  const unsigned shift = status.st_uid == user_ ? 6 : member ? 3 : 0;
  return (status.st_mode >> shift & 06) == 06;
}

bool Machine::a_group_may_use(const std::string& path) const {
  struct stat status {};
  return stat(at(path).c_str(), &status) == 0 && (status.st_mode & 060) == 060;
}

bool Machine::anybody_may_use(const std::string& path) const {
  struct stat status {};
  return stat(at(path).c_str(), &status) == 0 && (status.st_mode & 06) == 06;
}

std::vector<std::string> ivshmem_devices(const Machine& machine) {
  const std::string all = "/sys/bus/pci/devices";
  std::vector<std::string> found;
  for (const std::string& name : machine.names(all)) {
    const std::string device = all + "/" + name;
    if (machine.number(device + "/vendor") == 0x1af4 && machine.number(device + "/device") == 0x1110)
      found.push_back(device);
  }
  return found;
}

}  // namespace check
