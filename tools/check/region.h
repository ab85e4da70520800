// The region behind the device, and the broker that made it: the same questions whether the device is reached by its
// files or by the kernel module.
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
// Puts a udev rule for devices of this subsystem in place: the package's copy of it, or else the tarball's.
std::string install_rule(const Machine& machine, const std::string& file, const std::string& subsystem);

// The first bytes of one of the device's BARs, mapped as the library maps them.
class Mapping {
 public:
  Mapping(const std::string& file, std::size_t bytes);
  // Of an open node, whose region has `size` bytes; a kernel module's is to be read only.
  Mapping(int node, std::size_t bytes, std::uint64_t size, int protection = PROT_READ);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // False: that was refused.
  bool there() const { return at_ != nullptr; }
  std::uint64_t size() const { return size_; }  // of all of it
  std::byte* bytes() const { return at_; }
  ring::Shared<ring::RegionHeader> header() const { return ring::RegionView(bytes()).header(); }

 private:
  std::size_t mapped_;
  std::uint64_t size_ = 0;
  std::byte* at_ = nullptr;
};

// Whether it is a region of this release's. `plain`: what it is called where it has no doorbell.
Finding check_region(const Mapping& mapping, const char* plain = "ivshmem-plain");

// As the library asks before it has a session: the broker's heartbeat answers a guest that rings it.
Finding check_broker(const Mapping& mapping, const std::function<void()>& ring);

}  // namespace check
