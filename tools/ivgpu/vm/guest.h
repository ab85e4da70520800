// The guest's boot files: the kernel and initramfs that tools/guest-image caches, and the command of this boot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/ivgpu/support/install.h"

namespace ivgpu {

struct GuestImage {
  std::filesystem::path kernel;
  std::filesystem::path initramfs;
  std::vector<std::filesystem::path> modules = {};  // kernel modules in load order
};

struct GuestParts {
  std::vector<std::filesystem::path> program_dirs = {};
  std::filesystem::path kernel = {};   // empty: Debian's
  std::vector<std::string> ways = {};  // the guest-image names of the transports whose modules the guest loads
};

// Runs tools/guest-image, which rebuilds only outdated parts.
GuestImage make_guest_image(const Install& install, const GuestParts& parts);

struct GuestJob {
  bool interactive = false;                   // a shell on the console instead of a command
  bool keep = false;                          // a shell after the command
  std::string command = {};                   // for the guest's shell
  std::vector<std::string> environment = {};  // NAME=VALUE
  // shell patterns of device files that must exist before the command starts
  std::string awaited = {};
};

// The contents of /ivgpu/job for guest/init: shell assignments and the command. Throws an Error if an environment entry
// is not NAME=VALUE.
std::string job_settings(const GuestJob& job);

// Writes the image's file system, the modules and the job settings as one initrd.
void write_initrd(const std::filesystem::path& path, const GuestImage& image, const std::string& settings);

}  // namespace ivgpu
