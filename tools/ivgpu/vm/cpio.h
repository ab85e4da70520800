// Writes the cpio "newc" format for a few files of the guest. The kernel unpacks concatenated archives in the initrd;
// later files replace earlier ones.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace ivgpu {

struct CpioFile {
  std::string path;  // without a leading slash; the folder must exist
  std::string content;
  unsigned mode = 0100644;  // file mode, as in stat
};

// Writes a complete archive with its trailer.
void write_cpio(std::ostream& out, const std::vector<CpioFile>& files);

}  // namespace ivgpu
