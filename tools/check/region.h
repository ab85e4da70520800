// Checks the region and its broker, through sysfs files or through the kernel module's node.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "ring/layout/region_view.h"
#include "tools/check/machine.h"

namespace check {

inline constexpr const char* join_group =
    "as root: adduser the user to the group video, and log in anew; or run as root";
// The command that installs a udev rule for `subsystem`, with the package's copy of `file` or the tarball's copy.
std::string install_rule(const Machine& machine, const std::string& file, const std::string& subsystem);

// The first bytes of a BAR of the device, mapped in the way in which the library maps a BAR.
class Mapping {
 public:
  Mapping(const std::string& file, std::size_t bytes);
  // Maps an open node whose region has `size` bytes. A kernel module's node allows reading only.
  Mapping(int node, std::size_t bytes, std::uint64_t size, int protection = PROT_READ);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // False if the mapping failed.
  bool there() const { return at_ != nullptr; }
  std::uint64_t size() const { return size_; }  // the size of the whole region
  std::byte* bytes() const { return at_; }
  ring::Shared<ring::RegionHeader> header() const { return ring::RegionView(bytes()).header(); }

 private:
  std::size_t mapped_;
  std::uint64_t size_ = 0;
  std::byte* at_ = nullptr;
};

// Checks that the mapping is a region of this release. `plain`: the transport's name if the transport has no doorbell.
Finding check_region(const Mapping& mapping, const char* plain = "ivshmem-plain");

// Checks for a live broker as the library does without a session: rings the broker until its heartbeat changes.
Finding check_broker(const Mapping& mapping, const std::function<void()>& ring);

}  // namespace check
