// The kernel's Documentation/driver-api/early-userspace/buffer-format.rst describes the format: a header of a magic and
// thirteen 8-digit hexadecimal numbers, the name with its NUL, then the content. Header and content start at multiples
// of 4.
#include "tools/ivgpu/vm/cpio.h"

#include <array>
#include <cstdio>
#include <ostream>

namespace ivgpu {
namespace {

void pad(std::ostream& out, std::size_t written) {
  for (; written % 4 != 0; ++written) out.put('\0');
}

void write_entry(std::ostream& out, std::size_t inode, const CpioFile& file) {
  const std::size_t name_size = file.path.size() + 1;
  const std::array<std::size_t, 13> fields = {inode, file.mode, 0, 0, 1,         0, file.content.size(),
                                              0,     0,         0, 0, name_size, 0};
  out << "070701";
  for (const std::size_t field : fields) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(field));
    out << digits;
  }
  out << file.path << '\0';
  pad(out, 6 + 13 * 8 + name_size);
  out << file.content;
  pad(out, file.content.size());
}

}  // namespace

void write_cpio(std::ostream& out, const std::vector<CpioFile>& files) {
  std::size_t inode = 1;
  for (const CpioFile& file : files) write_entry(out, inode++, file);
  write_entry(out, inode, {.path = "TRAILER!!!", .content = "", .mode = 0});
}

}  // namespace ivgpu
