// A folder in which the guest library looks for a region, and the header that a broker writes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "ring/layout/layout.h"

namespace guest_places {

inline void fill(ring::RegionHeader& h, std::uint64_t bytes, std::uint32_t slots) {
  h.version = ring::layout_version;
  h.slot_count = slots;
  h.region_bytes = bytes;
  h.first_slot = ring::first_slot_offset;
  h.slot_bytes = ring::slot_bytes_for(bytes, slots);
  h.magic = ring::region_magic;
}

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/ivgpu-test-XXXXXX";
    if (mkdtemp(name) != nullptr) path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace guest_places
