// A line of /proc/self/maps has these fields: first and last address, rights, offset, device, inode, path.
#include "host/simgpu/api/memory/process_memory.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

namespace simgpu {
namespace {

struct Line {
  Address start = 0, end = 0;
  char rights[8] = {};
  unsigned major = 0, minor = 0;
  unsigned long inode = 0;
  std::string_view path;
};

bool read(const char* text, Line& line) {
  int path = 0;
  unsigned long start = 0, end = 0;
  if (std::sscanf(text, "%lx-%lx %7s %*s %x:%x %lu %n", &start, &end, line.rights, &line.major, &line.minor,
                  &line.inode, &path) != 6)
    return false;
  line.start = start;
  line.end = end;
  line.path = text + path;
  return true;
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

// Returns true if this device number belongs to a mounted file system that keeps its files in memory only. In a line of
// mountinfo, the type of the file system follows " - ".
bool holds_memory(unsigned major, unsigned minor) {
  const File list(std::fopen("/proc/self/mountinfo", "re"));
  char text[16384];  // a line contains two paths
  while (list != nullptr && std::fgets(text, sizeof text, list.get()) != nullptr) {
    unsigned its_major = 0, its_minor = 0;
    if (std::sscanf(text, "%*u %*u %u:%u", &its_major, &its_minor) != 2 || its_major != major || its_minor != minor)
      continue;
    const char* kind = std::strstr(text, " - ");
    if (kind == nullptr) continue;
    for (const std::string_view memory : {" - tmpfs ", " - hugetlbfs "})
      if (std::string_view(kind).starts_with(memory)) return true;
  }
  return false;
}

// Returns true if the line describes a mapping of a file on disk. Anonymous shared memory and files in memory also have
// inodes and paths.
bool is_file(const Line& line) {
  if (line.inode == 0) return false;
  for (const std::string_view memory : {"/dev/zero", "/dev/shm/", "/memfd:", "/SYSV"})
    if (line.path.starts_with(memory)) return false;
  return !holds_memory(line.major, line.minor);
}

}  // namespace

ProcessMemory process_memory(Address start, std::size_t size) {
  ProcessMemory found;
  Address end = 0;
  const File list(std::fopen("/proc/self/maps", "re"));
  if (list == nullptr || __builtin_add_overflow(start, size, &end)) return {.there = false};
  char text[8192];  // a path has at most 4096 bytes
  while (start < end && std::fgets(text, sizeof text, list.get()) != nullptr) {
    Line line;
    if (!read(text, line) || line.end <= start) continue;
    if (line.start > start) break;
    found.readable = found.readable && line.rights[0] == 'r';
    found.writable = found.writable && line.rights[1] == 'w';
    found.shared_file = found.shared_file || (line.rights[3] == 's' && is_file(line));
    start = line.end;
  }
  found.there = start >= end;
  return found;
}

}  // namespace simgpu
