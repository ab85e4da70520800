#include "host/broker/region/dax_label.h"

#include <bit>

namespace host::broker {
namespace {

// Fletcher's 64-bit checksum over 32-bit words, as the kernel computes it.
std::uint64_t sum_of(const DaxLabel& label) {
  struct Words {
    std::uint32_t word[sizeof(DaxLabel) / 4];
  };
  std::uint32_t low = 0;
  std::uint64_t high = 0;
  for (const std::uint32_t word : std::bit_cast<Words>(label).word) {
    low += word;
    high += low;
  }
  return high << 32 | low;
}

}  // namespace

DaxLabel dax_label(std::size_t start, std::size_t bytes) {
  DaxLabel label;
  label.data_offset = start;
  label.pages = bytes / label.page_size;
  label.checksum = sum_of(label);
  return label;
}

}  // namespace host::broker
