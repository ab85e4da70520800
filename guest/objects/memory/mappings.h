// What this process has mapped, as its kernel says (/proc/self/maps). Other threads may map and unmap meanwhile, so an
// answer may be old; it is never about half a mapping.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace guest {

struct Mapping {
  std::uint64_t start = 0, end = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  std::uint64_t offset = 0;  // of its first byte in the file
  std::string file;          // device and inode; "00:00 0": none
  std::string name;

  int protection() const;
  // Whether `other` continues this one's file: the same bytes lie `distance` behind this mapping's first one.
  bool has_at(std::uint64_t distance, const Mapping& other) const {
    return shared && other.shared && file == other.file && other.offset - offset == distance;
  }
};

// The mappings with a byte of [start, end), in order, each cut to this range. Empty, and a line in the log: the
// kernel does not say.
std::vector<Mapping> mappings_in(std::uint64_t start, std::uint64_t end);

}  // namespace guest
