// The label by which a Linux guest recognises persistent memory as a devdax namespace, /dev/daxN.M, at boot and without
// a tool. `ndctl create-namespace -m devdax -M mem -a 4k` writes the same; the broker writes it because it makes the
// memory. Alignment is 4 KiB, since the guest library maps single pages of the region.
//
// The format is Linux' struct nd_pfn_sb (drivers/nvdimm/pfn.h), version 1.4: one page, 4 KiB from the memory's start.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout/layout.h"

namespace host::broker {

inline constexpr std::size_t dax_label_offset = 4096;

struct DaxLabel {
  char signature[16] = {'N', 'V', 'D', 'I', 'M', 'M', '_', 'D', 'A', 'X', '_', 'I', 'N', 'F', 'O', '\0'};
  char uuid[16] = {'i', 'v', 'g', 'p', 'u', ' ', 'r', 'e', 'g', 'i', 'o', 'n'};  // any value is accepted
  char parent[16] = {};  // zero for memory without namespace labels
  std::uint32_t flags = 0;
  std::uint16_t major = 1, minor = 4;
  std::uint64_t data_offset = 0;  // where the devdax device begins
  std::uint64_t pages = 0;
  std::uint32_t mode = 1;  // the guest keeps its struct pages in its own memory
  std::uint32_t start_pad = 0, end_trunc = 0;
  std::uint32_t align = 4096, page_size = 4096;
  std::uint16_t page_struct_size = 64;
  char padding[3994] = {};
  std::uint64_t checksum = 0;
};
static_assert(sizeof(DaxLabel) == 4096 && offsetof(DaxLabel, data_offset) == 56 && offsetof(DaxLabel, align) == 84 &&
              offsetof(DaxLabel, checksum) == 4088);

// The label of memory whose devdax device begins at `start` and has `bytes`.
DaxLabel dax_label(std::size_t start, std::size_t bytes);

}  // namespace host::broker
