// The forms of device code that a driver loads, and the length of each image. cuModuleLoadData and similar calls pass
// no length.
//
// Trust: the bytes come from a program and contain their own length. image_size reads headers only, up to the lengths
// in them, and its arithmetic cannot overflow. Inside a program, no check can show that the memory exists. A caller
// that received an image from elsewhere knows where the bytes end and passes a span; nothing after the span is then
// read. Sizes are in bytes, all functions are pure, and no function copies an image.
//
// ```cpp
// std::span<const std::byte> one_image(std::span<const std::byte> received) {
//   const std::size_t size = cuabi::image_size(received);
//   return received.first(size);  // empty: the image contradicts itself, or is cut off
// }
// ```
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cuabi {

inline constexpr std::uint32_t wrapper_magic = 0x466243B1;
inline constexpr std::uint32_t container_magic = 0xBA55ED50;
inline constexpr std::uint32_t elf_magic = 0x464C457F;  // "\x7f" "ELF"

// The form that the runtime registers: a pointer to a container. In version 2 (relocatable device code), `data` is the
// linked container, and `more` is a NULL-terminated array of pointers to the containers before linking.
struct ImageWrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* const* more;
};
static_assert(sizeof(ImageWrapper) == 24);

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;  // the size of all entries, without this header
};
static_assert(sizeof(ContainerHeader) == 16);

// The header of an entry. Entries follow the container's header without a gap. Strings may follow the fixed part of an
// entry's header.
struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_size;
  std::uint64_t payload_size;     // in the container, padded
  std::uint32_t compressed_size;  // exact size; 0: not compressed
  std::uint32_t options_offset;
  std::uint16_t minor, major;  // version of the code, for example PTX ISA 9.0
  std::uint32_t sm;            // for example 75, 90 or 120
  std::uint32_t name_offset, name_size;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t plain_size;  // 0: not compressed
};
static_assert(sizeof(EntryHeader) == 64);

enum EntryKind : std::uint16_t { entry_ptx = 1, entry_cubin = 2, entry_lto = 8 };

inline constexpr std::uint64_t entry_lz4 = 0x2000;      // compressed as a raw LZ4 block
inline constexpr std::uint64_t entry_zstd = 0x8000;     // compressed as one zstd frame
inline constexpr std::uint64_t entry_exact = 0x100000;  // for this architecture only (a target such as sm_90a)
inline constexpr std::uint64_t entry_family = 0x200000;

enum class ImageKind { Wrapper, Container, Elf, Text };

// Determines the kind from the first four bytes. An unknown image counts as text.
ImageKind image_kind(const void* image);
ImageKind image_kind(std::span<const std::byte> image);

// Returns the number of bytes from `image` to its end, by the image's own headers. For a text, NUL included. For a
// wrapper, the wrapper's own 24 bytes, without the images to which it points. 0: the headers contradict themselves.
std::size_t image_size(const void* image);
// Like image_size() above. Also returns 0 if the image is longer than the span, or is a text without a NUL in the span.
std::size_t image_size(std::span<const std::byte> image);

// Returns the largest unpacked size that a compressed entry of a container claims. The driver unpacks the entry that
// fits its GPU. Returns 0 if no entry is compressed, or if this is no container.
std::uint64_t largest_unpacked(std::span<const std::byte> image);

}  // namespace cuabi
