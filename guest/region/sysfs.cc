#include "guest/region/sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "ring/abi/descriptor.h"

namespace guest {

std::string read_text(const std::string& path) {
  char text[128];
  const int fd = cuabi::open_file(path.c_str(), O_RDONLY);
  if (fd < 0) return "";
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "";
}

std::uint64_t read_number(const std::string& path) { return std::strtoull(read_text(path).c_str(), nullptr, 0); }

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* open = cuabi::open_folder(folder.c_str());
  while (const dirent* entry = open != nullptr ? readdir(open) : nullptr)
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  if (open != nullptr) closedir(open);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace guest
