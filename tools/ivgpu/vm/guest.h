// The boot files of the guest: the kernel and initial file system that tools/guest-image keeps in a cache, and on top
// of them the command of this one boot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/ivgpu/support/install.h"

namespace ivgpu {

struct GuestImage {
  std::filesystem::path kernel;
  std::filesystem::path initramfs;
  std::vector<std::filesystem::path> modules = {};  // of the kernel, as the guest is to load them
};

struct GuestParts {
  std::vector<std::filesystem::path> program_dirs = {};
  std::filesystem::path kernel = {};   // empty: Debian's
  std::vector<std::string> ways = {};  // to the host, whose modules the guest loads: guest-image has their names
};

// Runs tools/guest-image, which makes again only the parts that are out of date.
GuestImage make_guest_image(const Install& install, const GuestParts& parts);

struct GuestJob {
  bool interactive = false;                   // a shell on the console instead of a command
  bool keep = false;                          // a shell after the command
  std::string command = {};                   // for the guest's shell
  std::vector<std::string> environment = {};  // NAME=VALUE
  std::string awaited = {};                   // patterns of device files that come before the command
};

// The contents of /ivgpu/job for /init: shell assignments and the command, as guest/init expects them. Throws Error if
// the environment is not NAME=VALUE.
std::string job_settings(const GuestJob& job);

// The image's file system, the modules and the job's settings as one initrd.
void write_initrd(const std::filesystem::path& path, const GuestImage& image, const std::string& settings);

}  // namespace ivgpu
