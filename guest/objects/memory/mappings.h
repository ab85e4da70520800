// This process's mappings, from the kernel (/proc/self/maps). Other threads may map and unmap meanwhile, so an answer
// may be outdated, but it shows whole mappings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace guest {

struct Mapping {
  std::uint64_t start = 0, end = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  std::uint64_t offset = 0;  // the file's offset of the first byte
  std::string file;          // device and inode; "00:00 0": none
  std::string name;

  int protection() const;
  // Whether `other` continues this mapping's file: its bytes lie `distance` after the first byte of this mapping.
  bool has_at(std::uint64_t distance, const Mapping& other) const {
    return shared && other.shared && file == other.file && other.offset - offset == distance;
  }
};

// The mappings that overlap [start, end), in order, each cut to this range. Empty, and a log line: the kernel refuses.
std::vector<Mapping> mappings_in(std::uint64_t start, std::uint64_t end);

}  // namespace guest
