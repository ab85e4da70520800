// This process's mappings, from the kernel (/proc/self/maps). Other threads may map and unmap memory meanwhile, so a
// result may be outdated, but each mapping in it is whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace guest {

struct Mapping {
  std::uint64_t start = 0, end = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  std::uint64_t offset = 0;  // the offset in the file of the mapping's first byte
  std::string file;          // device and inode; "00:00 0": no file
  std::string name;

  int protection() const;
  // Returns whether `other` maps the same file and continues this mapping: `other` begins `distance` bytes after this
  // mapping's first byte.
  bool has_at(std::uint64_t distance, const Mapping& other) const {
    return shared && other.shared && file == other.file && other.offset - offset == distance;
  }
};

// Returns the mappings that overlap [start, end), in ascending order, each cut to this range. Returns an empty list and
// writes a log line if the kernel refuses.
std::vector<Mapping> mappings_in(std::uint64_t start, std::uint64_t end);

}  // namespace guest
