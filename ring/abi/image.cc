// Reads headers out of memory whose end only they know: field by field into copies, sums checked before they are made.
#include "ring/abi/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace cuabi {
namespace {

std::size_t container_size(const void* image) {
  ContainerHeader header;
  std::memcpy(&header, image, sizeof header);
  if (header.header_size < sizeof header || header.size > SIZE_MAX - header.header_size) return 0;
  return header.header_size + header.size;
}

// Raises `end` to that of [offset, offset+size), or says that there is no such place.
bool reach(std::size_t& end, std::uint64_t offset, std::uint64_t size) {
  if (offset > SIZE_MAX - size) return false;
  end = std::max<std::size_t>(end, offset + size);
  return true;
}

template <class Header>
Header table_row(const void* image, std::uint64_t offset, unsigned row) {
  Header header;
  std::memcpy(&header, static_cast<const char*>(image) + offset + row * sizeof header, sizeof header);
  return header;
}

// The furthest that the header tables, the sections or the segments reach. (A cubin of the CUDA compilers ends with one
// of its header tables.)
std::size_t elf_size(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
  if (header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) return 0;
  if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) return 0;
  std::size_t end = sizeof header;
  if (header.e_shnum != 0 && !reach(end, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr))) return 0;
  if (header.e_phnum != 0 && !reach(end, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr))) return 0;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    const auto section = table_row<Elf64_Shdr>(image, header.e_shoff, i);
    if (section.sh_type != SHT_NOBITS && !reach(end, section.sh_offset, section.sh_size)) return 0;
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto segment = table_row<Elf64_Phdr>(image, header.e_phoff, i);
    if (!reach(end, segment.p_offset, segment.p_filesz)) return 0;
  }
  return end;
}

}  // namespace

ImageKind image_kind(const void* image) {
  // Byte by byte: text may be shorter than a magic number.
  const auto* bytes = static_cast<const unsigned char*>(image);
  std::uint32_t magic = 0;
  for (unsigned i = 0; i < 4; ++i) {
    if (bytes[i] == 0) break;
    magic |= std::uint32_t{bytes[i]} << (8 * i);
  }
  switch (magic) {
    case wrapper_magic: return ImageKind::Wrapper;
    case container_magic: return ImageKind::Container;
    case elf_magic: return ImageKind::Elf;
    default: return ImageKind::Text;
  }
}

std::size_t image_size(const void* image) {
  switch (image_kind(image)) {
    case ImageKind::Wrapper: return sizeof(ImageWrapper);
    case ImageKind::Container: return container_size(image);
    case ImageKind::Elf: return elf_size(image);
    case ImageKind::Text: return std::strlen(static_cast<const char*>(image)) + 1;
  }
  return 0;
}

}  // namespace cuabi
