// Tests host/simgpu/image/: the PTX texts found in fat binaries that nvcc made at build time, and in damaged fat
// binaries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "host/simgpu/image/image.h"
#include "ring/abi/image.h"

namespace {

std::vector<char> file(const std::string& name) {
  std::ifstream in(std::string(IVGPU_TEST_IMAGES) + "/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::span<const std::byte> bytes(const std::vector<char>& data) {
  return {reinterpret_cast<const std::byte*>(data.data()), data.size()};
}

// Appends a terminating NUL, which a PTX file lacks.
std::vector<char> with_nul(std::vector<char> data) {
  data.push_back('\0');
  return data;
}

class ImageTexts : public testing::TestWithParam<const char*> {};

TEST_P(ImageTexts, each_way_to_compress_gives_the_same_text) {
  const std::vector<char> image = file(GetParam());
  ASSERT_EQ(cuabi::image_size(image.data()), image.size());
  const simgpu::ImageTexts texts = simgpu::read_image(image.data());
  ASSERT_EQ(texts.code, CUDA_SUCCESS) << texts.log;
  ASSERT_EQ(texts.ptx.size(), 1U);
  EXPECT_NE(texts.ptx[0].find(".target sm_75"), std::string::npos);
  EXPECT_NE(texts.ptx[0].find(".visible .entry scale"), std::string::npos);
  EXPECT_EQ(texts.ptx[0], simgpu::read_image(file("none.fatbin").data()).ptx.at(0));
}

INSTANTIATE_TEST_SUITE_P(Modes, ImageTexts, testing::Values("default.fatbin", "size.fatbin", "speed.fatbin"));

TEST(ImageTextsOf, plain_ptx) {
  const std::vector<char> text = with_nul(file("plain.ptx"));
  const simgpu::ImageTexts texts = simgpu::read_image(text.data());
  ASSERT_EQ(texts.code, CUDA_SUCCESS);
  EXPECT_EQ(texts.ptx.at(0), std::string(text.data()));
}

TEST(ImageTextsOf, the_newest_ptx_that_is_not_too_new_and_no_exact_target) {
  const simgpu::ImageTexts several = simgpu::read_image(file("several.fatbin").data());  // has 75, 90 and 121
  ASSERT_EQ(several.code, CUDA_SUCCESS) << several.log;
  EXPECT_NE(several.ptx.at(0).find(".target sm_90"), std::string::npos);
  const simgpu::ImageTexts exact = simgpu::read_image(file("exact.fatbin").data());  // has only 120a
  EXPECT_EQ(exact.code, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_NE(exact.log.find("compute_120a"), std::string::npos) << exact.log;
}

TEST(ImageTextsOf, nothing_but_cubins) {
  for (const char* name : {"cubins.fatbin", "plain.cubin"}) {
    const simgpu::ImageTexts texts = simgpu::read_image(file(name).data());
    EXPECT_EQ(texts.code, CUDA_ERROR_NO_BINARY_FOR_GPU) << name;
    EXPECT_NE(texts.log.find("-gencode arch=compute_75,code=compute_75"), std::string::npos) << texts.log;
    // Users cannot rebuild NVIDIA's libraries, so the log gives no build advice.
    EXPECT_NE(texts.log.find("as cuBLAS, cuFFT and cuDNN do, needs a real GPU"), std::string::npos) << texts.log;
  }
}

TEST(ImageTextsOf, wrappers) {
  const std::vector<char> ptx = file("default.fatbin"), cubins = file("cubins.fatbin");
  cuabi::ImageWrapper wrapper{.magic = cuabi::wrapper_magic, .version = 1, .data = ptx.data(), .more = nullptr};
  EXPECT_EQ(simgpu::read_image(&wrapper).ptx.size(), 1U);

  const void* parts[] = {ptx.data(), cubins.data(), ptx.data(), nullptr};
  wrapper = {.magic = cuabi::wrapper_magic, .version = 2, .data = cubins.data(), .more = parts};
  const simgpu::ImageTexts linked = simgpu::read_image(&wrapper);
  EXPECT_EQ(linked.code, CUDA_SUCCESS);
  EXPECT_EQ(linked.ptx.size(), 2U) << "a part without PTX is passed over";
  EXPECT_NE(linked.log.find("cubin"), std::string::npos) << "and told";

  const void* none[] = {cubins.data(), nullptr};
  wrapper.more = none;
  EXPECT_EQ(simgpu::read_image(&wrapper).code, CUDA_ERROR_NO_BINARY_FOR_GPU);

  wrapper = {.magic = cuabi::wrapper_magic, .version = 1, .data = &wrapper, .more = nullptr};
  EXPECT_EQ(simgpu::read_image(&wrapper).code, CUDA_ERROR_INVALID_IMAGE) << "a wrapper of itself";
  wrapper.data = nullptr;
  EXPECT_EQ(simgpu::read_image(&wrapper).code, CUDA_ERROR_INVALID_IMAGE);
}

TEST(ImageTextsOf, garbage) {
  for (const char* text : {"", "garbage", "\x01\x02\x03\x04\x05", "!<arch>\n", "/* unclosed", "// only a comment"})
    EXPECT_EQ(simgpu::read_image(text).code, CUDA_ERROR_INVALID_IMAGE) << text;
  std::vector<char> elf(64);
  std::memcpy(elf.data(),
              "\x7f"
              "ELF",
              4);
  EXPECT_EQ(simgpu::read_image(elf.data()).code, CUDA_ERROR_INVALID_IMAGE);
}

// Tries every truncation and every flipped bit of the headers. Each call must return; the sanitizers detect reads
// outside of the data.
TEST(ImageTextsOf, damaged_containers) {
  for (const char* name : {"default.fatbin", "speed.fatbin"}) {
    const std::vector<char> whole = file(name);
    for (std::size_t size = 0; size < whole.size(); size += 1 + size / 40) {
      std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(simgpu::read_container(bytes(cut)).code, CUDA_ERROR_INVALID_IMAGE) << size;
    }
    for (std::size_t bit = 0; bit < 8 * std::min<std::size_t>(whole.size(), 600); ++bit) {
      std::vector<char> flipped = whole;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      const simgpu::ImageTexts texts = simgpu::read_container(bytes(flipped));
      EXPECT_EQ(texts.code == CUDA_SUCCESS, !texts.ptx.empty()) << name << " bit " << bit;
    }
  }
}

}  // namespace
