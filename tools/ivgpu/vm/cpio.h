// Just enough of the cpio "newc" format to hand the guest a few files at boot: the kernel unpacks archives that follow
// one another in the initrd, later files on top.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace ivgpu {

struct CpioFile {
  std::string path;  // without a leading slash; its folder exists already
  std::string content;
  unsigned mode = 0100644;  // as in stat
};

// Writes a complete archive, end mark included.
void write_cpio(std::ostream& out, const std::vector<CpioFile>& files);

}  // namespace ivgpu
