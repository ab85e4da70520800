// Lengths of valid and impossible images, read from the images' own headers.
#include "ring/abi/image.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

namespace {

template <class T>
std::vector<char> bytes(const T& header, std::size_t total) {
  std::vector<char> out(total < sizeof header ? sizeof header : total);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

TEST(Image, kinds_by_first_bytes) {
  EXPECT_EQ(cuabi::image_kind("\xb1\x43\x62\x46"), cuabi::ImageKind::Wrapper);
  EXPECT_EQ(cuabi::image_kind("\x50\xed\x55\xba"), cuabi::ImageKind::Container);
  EXPECT_EQ(cuabi::image_kind("\x7f"
                              "ELF"),
            cuabi::ImageKind::Elf);
  EXPECT_EQ(cuabi::image_kind(".version 9.0"), cuabi::ImageKind::Text);
  EXPECT_EQ(cuabi::image_kind(""), cuabi::ImageKind::Text);
}

TEST(Image, text_ends_after_its_nul) {
  EXPECT_EQ(cuabi::image_size(".version 9.0"), 13U);
  EXPECT_EQ(cuabi::image_size(""), 1U);
}

TEST(Image, container) {
  cuabi::ContainerHeader header{.magic = cuabi::container_magic, .version = 1, .header_size = 16, .size = 1000};
  EXPECT_EQ(cuabi::image_size(&header), 1016U);
  header.size = UINT64_MAX - 15;
  EXPECT_EQ(cuabi::image_size(&header), 0U) << "would wrap";
  header.size = 8;
  header.header_size = 8;
  EXPECT_EQ(cuabi::image_size(&header), 0U) << "header shorter than itself";
}

TEST(Image, largest_unpacked_entry) {
  cuabi::EntryHeader small{}, large{};
  small.header_size = large.header_size = sizeof small;
  small.payload_size = 16, small.plain_size = 100;
  large.payload_size = 8, large.plain_size = 5000;
  cuabi::ContainerHeader header{.magic = cuabi::container_magic, .version = 1, .header_size = 16, .size = 152};
  std::vector<char> image = bytes(header, 168);
  const auto unpacked = [&] { return cuabi::largest_unpacked(std::as_bytes(std::span(image))); };
  std::memcpy(&image[16], &small, sizeof small);
  std::memcpy(&image[96], &large, sizeof large);
  EXPECT_EQ(unpacked(), 5000U);
  image.resize(120);
  EXPECT_EQ(unpacked(), 100U) << "an entry that is cut off";
  image[16 + 8] = static_cast<char>(0xff);
  EXPECT_EQ(unpacked(), 100U) << "behind an entry that is longer than the image nothing is read";
  std::memset(&image[20], 0, 4);
  EXPECT_EQ(unpacked(), 100U) << "a header of no length does not go on for ever";
  image.resize(20);
  EXPECT_EQ(unpacked(), 0U);
  EXPECT_EQ(cuabi::largest_unpacked(std::as_bytes(std::span(".version 9.0"))), 0U);
}

Elf64_Ehdr elf() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_phentsize = sizeof(Elf64_Phdr);
  return header;
}

TEST(Image, elf_reaches_to_its_furthest_part) {
  Elf64_Ehdr header = elf();
  EXPECT_EQ(cuabi::image_size(bytes(header, 0).data()), sizeof header);
  header.e_shoff = 512;
  header.e_shnum = 2;
  std::vector<char> image = bytes(header, 1024);
  EXPECT_EQ(cuabi::image_size(image.data()), 512 + 2 * sizeof(Elf64_Shdr));
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = 640;
  section.sh_size = 384;
  std::memcpy(image.data() + 512 + sizeof section, &section, sizeof section);
  EXPECT_EQ(cuabi::image_size(image.data()), 1024U);
  section.sh_type = SHT_NOBITS;
  std::memcpy(image.data() + 512 + sizeof section, &section, sizeof section);
  EXPECT_EQ(cuabi::image_size(image.data()), 512 + 2 * sizeof(Elf64_Shdr)) << "a section without bytes has no end";
}

// For a span that contains the whole image, the results are the same. For a shorter span, no result exceeds the span.
TEST(Image, in_a_span) {
  const auto size_in = [](const auto& image, std::size_t n) {
    // An exact size, so that ASan notices reads beyond the end.
    const std::vector<char> exact(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(n));
    return cuabi::image_size(std::as_bytes(std::span(exact)));
  };
  Elf64_Ehdr header = elf();
  header.e_shoff = 512;
  header.e_shnum = 2;
  const std::vector<char> with_tables = bytes(header, 1024);
  EXPECT_EQ(size_in(with_tables, 1024), 512 + 2 * sizeof(Elf64_Shdr));
  EXPECT_EQ(size_in(with_tables, 512 + 2 * sizeof(Elf64_Shdr)), 512 + 2 * sizeof(Elf64_Shdr));
  for (std::size_t n = 0; n < 512 + 2 * sizeof(Elf64_Shdr); ++n) ASSERT_EQ(size_in(with_tables, n), 0U) << n;

  const cuabi::ContainerHeader container{.magic = cuabi::container_magic, .version = 1, .header_size = 16, .size = 100};
  const std::vector<char> boxed = bytes(container, 200);
  EXPECT_EQ(size_in(boxed, 116), 116U);
  for (std::size_t n = 0; n < 116; ++n) ASSERT_EQ(size_in(boxed, n), 0U) << n;

  const std::vector<char> text = {'.', 'v', 0, 'x'};
  EXPECT_EQ(size_in(text, 4), 3U);
  EXPECT_EQ(size_in(text, 3), 3U);
  EXPECT_EQ(size_in(text, 2), 0U) << "its NUL is behind the end";
  const std::vector<char> wrapper = bytes(cuabi::ImageWrapper{cuabi::wrapper_magic, 1, nullptr, nullptr}, 24);
  EXPECT_EQ(size_in(wrapper, 24), 24U);
  EXPECT_EQ(size_in(wrapper, 23), 0U);
}

TEST(Image, elf_that_contradicts_itself) {
  Elf64_Ehdr header = elf();
  header.e_shnum = 4;
  header.e_shoff = UINT64_MAX - 16;
  EXPECT_EQ(cuabi::image_size(bytes(header, 0).data()), 0U);
  header = elf();
  header.e_phnum = 1;
  header.e_phentsize = 8;
  EXPECT_EQ(cuabi::image_size(bytes(header, 0).data()), 0U);
  header = elf();
  header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(cuabi::image_size(bytes(header, 0).data()), 0U);
  header = elf();
  header.e_shnum = 1;
  header.e_shoff = 128;
  std::vector<char> image = bytes(header, 512);
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = UINT64_MAX;
  section.sh_size = 2;
  std::memcpy(image.data() + 128, &section, sizeof section);
  EXPECT_EQ(cuabi::image_size(image.data()), 0U);
}

}  // namespace
