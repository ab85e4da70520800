// Reads headers from memory whose size is known only from these headers. The code copies each field before use, and
// checks each sum before it computes the sum.
#include "ring/abi/image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace cuabi {
namespace {

// The memory that contains an image, with the number of readable bytes. For an image in a program, that number is
// unknown.
constexpr std::size_t unbounded = SIZE_MAX;

struct Memory {
  const std::byte* at;
  std::size_t bytes;

  bool holds(std::uint64_t offset, std::uint64_t size) const { return offset <= bytes && size <= bytes - offset; }
  template <class T>
  bool read(std::uint64_t offset, T& into) const {
    if (!holds(offset, sizeof into)) return false;
    std::memcpy(&into, at + offset, sizeof into);
    return true;
  }
};

std::size_t container_size(const Memory& image) {
  ContainerHeader header;
  if (!image.read(0, header) || header.header_size < sizeof header) return 0;
  return image.holds(header.header_size, header.size) ? header.header_size + header.size : 0;
}

// Raises `end` to the end of [offset, offset+size). Returns false if the range lies outside the image.
bool reach(const Memory& image, std::size_t& end, std::uint64_t offset, std::uint64_t size) {
  if (!image.holds(offset, size)) return false;
  end = std::max<std::size_t>(end, offset + size);
  return true;
}

bool reach_tables(const Memory& image, const Elf64_Ehdr& header, std::size_t& end) {
  if (header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) return false;
  if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) return false;
  return (header.e_shnum == 0 || reach(image, end, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr))) &&
         (header.e_phnum == 0 || reach(image, end, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)));
}

// Returns the end of the header tables, sections and segments. (A cubin of the CUDA compilers ends with a header
// table.)
std::size_t elf_size(const Memory& image) {
  Elf64_Ehdr header;
  if (!image.read(0, header) || header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
  std::size_t end = sizeof header;
  if (!reach_tables(image, header, end)) return 0;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!image.read(header.e_shoff + i * sizeof section, section)) return 0;
    if (section.sh_type != SHT_NOBITS && !reach(image, end, section.sh_offset, section.sh_size)) return 0;
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!image.read(header.e_phoff + i * sizeof segment, segment)) return 0;
    if (!reach(image, end, segment.p_offset, segment.p_filesz)) return 0;
  }
  return end;
}

std::size_t text_size(const Memory& image) {
  if (image.bytes == unbounded) return std::strlen(reinterpret_cast<const char*>(image.at)) + 1;
  if (image.bytes == 0) return 0;  // the address may be null
  const std::size_t length = strnlen(reinterpret_cast<const char*>(image.at), image.bytes);
  return length < image.bytes ? length + 1 : 0;
}

ImageKind kind_of(const Memory& image) {
  // Reads byte by byte, because a text may be shorter than a magic number.
  std::uint32_t magic = 0;
  for (unsigned i = 0; i < 4 && i < image.bytes; ++i) {
    const auto byte = static_cast<unsigned char>(image.at[i]);
    if (byte == 0) break;
    magic |= std::uint32_t{byte} << (8 * i);
  }
  switch (magic) {
    case wrapper_magic: return ImageKind::Wrapper;
    case container_magic: return ImageKind::Container;
    case elf_magic: return ImageKind::Elf;
    default: return ImageKind::Text;
  }
}

std::size_t size_of(const Memory& image) {
  switch (kind_of(image)) {
    case ImageKind::Wrapper: return image.holds(0, sizeof(ImageWrapper)) ? sizeof(ImageWrapper) : 0;
    case ImageKind::Container: return container_size(image);
    case ImageKind::Elf: return elf_size(image);
    case ImageKind::Text: return text_size(image);
  }
  return 0;
}

std::uint64_t largest_entry(const Memory& image) {
  ContainerHeader container;
  if (kind_of(image) != ImageKind::Container || !image.read(0, container)) return 0;
  std::uint64_t largest = 0, at = container.header_size;
  for (EntryHeader entry; image.read(at, entry);) {
    largest = std::max(largest, entry.plain_size);
    if (entry.header_size < sizeof entry || !image.holds(at + entry.header_size, entry.payload_size)) break;
    at += entry.header_size + entry.payload_size;
  }
  return largest;
}

Memory in_a_program(const void* image) { return {static_cast<const std::byte*>(image), unbounded}; }

}  // namespace

ImageKind image_kind(const void* image) { return kind_of(in_a_program(image)); }
ImageKind image_kind(std::span<const std::byte> image) { return kind_of({image.data(), image.size()}); }

std::size_t image_size(const void* image) { return size_of(in_a_program(image)); }
std::size_t image_size(std::span<const std::byte> image) { return size_of({image.data(), image.size()}); }

std::uint64_t largest_unpacked(std::span<const std::byte> image) { return largest_entry({image.data(), image.size()}); }

}  // namespace cuabi
