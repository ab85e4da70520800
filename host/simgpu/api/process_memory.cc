// A line of the list: first and last address, rights, offset, device, inode, path.
#include "host/simgpu/api/process_memory.h"

#include <cstdio>
#include <memory>
#include <string_view>

namespace simgpu {
namespace {

struct Line {
  Address start = 0, end = 0;
  char rights[8] = {};
  unsigned long inode = 0;
  std::string_view path;
};

bool read(const char* text, Line& line) {
  int path = 0;
  unsigned long start = 0, end = 0;
  if (std::sscanf(text, "%lx-%lx %7s %*s %*s %lu %n", &start, &end, line.rights, &line.inode, &path) != 4) return false;
  line.start = start;
  line.end = end;
  line.path = text + path;
  return true;
}

// Shared memory without a name, and such as lies in memory alone, has a path, too.
bool is_file(const Line& line) {
  if (line.inode == 0) return false;
  for (const std::string_view memory : {"/dev/zero", "/dev/shm/", "/memfd:", "/SYSV"})
    if (line.path.starts_with(memory)) return false;
  return true;
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

ProcessMemory process_memory(Address start, std::size_t size) {
  ProcessMemory found;
  Address end = 0;
  const std::unique_ptr<std::FILE, Close> list(std::fopen("/proc/self/maps", "re"));
  if (list == nullptr || __builtin_add_overflow(start, size, &end)) return {.there = false};
  char text[8192];  // a path has 4096 bytes at most
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
