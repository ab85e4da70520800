// Tests host/simgpu/image/: the linker's input files as nvcc makes them, the linker's output images, and damaged
// versions of both.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "host/simgpu/image/link_input.h"
#include "host/simgpu/image/linked.h"
#include "ring/abi/image.h"

namespace {

using simgpu::ImageTexts;

std::string file(const std::string& name) {
  std::ifstream in(std::string(IVGPU_TEST_IMAGES) + "/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

// Reads from memory that ends with the data, so that a sanitizer detects a read past the end.
ImageTexts read(CUjitInputType type, const std::string& data) {
  const auto bytes = std::make_unique<std::byte[]>(data.size());
  std::memcpy(bytes.get(), data.data(), data.size());
  return simgpu::read_link_input(type, {bytes.get(), data.size()});
}

TEST(LinkInputs, texts_are_found_in_each_form) {
  const struct {
    CUjitInputType type;
    const char* file;
  } forms[] = {{CU_JIT_INPUT_PTX, "plain.ptx"},
               {CU_JIT_INPUT_FATBINARY, "default.fatbin"},
               {CU_JIT_INPUT_OBJECT, "whole.o"},
               {CU_JIT_INPUT_OBJECT, "relocatable.o"},
               {CU_JIT_INPUT_LIBRARY, "library.a"}};
  for (const auto& form : forms) {
    const ImageTexts texts = read(form.type, file(form.file));
    EXPECT_EQ(texts.code, CUDA_SUCCESS) << form.file << ": " << texts.log;
    ASSERT_EQ(texts.ptx.size(), 1U) << form.file;
    EXPECT_NE(texts.ptx[0].find(".visible .entry scale"), std::string::npos) << form.file;
  }
}

TEST(LinkInputs, cubins_and_what_has_no_ptx_are_refused) {
  EXPECT_EQ(read(CU_JIT_INPUT_CUBIN, file("plain.cubin")).code, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(read(CU_JIT_INPUT_FATBINARY, file("cubins.fatbin")).code, CUDA_ERROR_NO_BINARY_FOR_GPU);
  const ImageTexts texts = read(CU_JIT_INPUT_OBJECT, file("cubins.o"));
  EXPECT_EQ(texts.code, CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_NE(texts.log.find("cubin sm_75"), std::string::npos) << texts.log;
  EXPECT_EQ(read(CU_JIT_INPUT_NVVM, "BC").code, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  EXPECT_EQ(read(CU_JIT_INPUT_LIBRARY, "!<arch>\n").code, CUDA_ERROR_INVALID_IMAGE);
}

TEST(LinkInputs, one_form_is_not_taken_for_another) {
  const char* files[] = {"default.fatbin", "relocatable.o", "library.a", "plain.cubin"};
  const CUjitInputType types[] = {CU_JIT_INPUT_FATBINARY, CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_LIBRARY};
  for (std::size_t i = 0; i < std::size(files); ++i)
    for (std::size_t k = 0; k < std::size(types); ++k)
      if (i != k) {
        EXPECT_TRUE(read(types[k], file(files[i])).ptx.empty()) << files[i] << " as type " << types[k];
      }
}

// Tries every truncation. Each call must return; the sanitizers detect reads outside of the data.
TEST(LinkInputs, cut_and_damaged) {
  for (const auto& [name, type] :
       {std::pair("default.fatbin", CU_JIT_INPUT_FATBINARY), std::pair("relocatable.o", CU_JIT_INPUT_OBJECT),
        std::pair("library.a", CU_JIT_INPUT_LIBRARY)}) {
    const std::string whole = file(name);
    for (std::size_t size = 1; size < whole.size(); size += 1 + size / 40)
      EXPECT_TRUE(read(type, whole.substr(0, size)).ptx.size() <= 1) << name << " cut at " << size;
    for (std::size_t at = 0; at < whole.size(); at += 1 + at / 60)
      for (const char bits : {'\x80', '\xff', '\x01'}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ bits);
        EXPECT_TRUE(read(type, damaged).ptx.size() <= 1) << name << " damaged at " << at;
      }
  }
}

TEST(LinkedImages, come_back_as_they_were) {
  const std::vector<std::string> texts = {".version 7.0\n", "", std::string(5000, 'x')};
  const std::vector<std::byte> image = simgpu::write_linked(texts);
  EXPECT_EQ(cuabi::image_kind(image.data()), cuabi::ImageKind::Elf);
  EXPECT_EQ(cuabi::image_size(image.data()), image.size());
  EXPECT_TRUE(simgpu::is_linked(image.data()));
  EXPECT_EQ(simgpu::read_linked(image.data()).ptx, texts);
  EXPECT_EQ(simgpu::read_image(image.data()).ptx, texts);
}

TEST(LinkedImages, are_no_cubins) {
  std::string cubin = file("plain.cubin");
  EXPECT_FALSE(simgpu::is_linked(cubin.data()));
}

TEST(LinkedImages, damaged_ones_are_refused) {
  const std::vector<std::byte> whole = simgpu::write_linked(std::vector<std::string>{".version 7.0\n", "text"});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::vector<std::byte> image = whole;
    image[at] = ~image[at];
    // The simulated GPU's callers check the size in the same way, and never pass on an image that exceeds its bytes.
    if (cuabi::image_size(std::span<const std::byte>(image)) == 0) continue;
    const ImageTexts texts = simgpu::read_image(image.data());
    EXPECT_TRUE(texts.code == CUDA_SUCCESS || texts.ptx.empty()) << at;
  }
  std::vector<std::byte> no_nul = whole;
  no_nul[sizeof(std::uint64_t) * 8 + 13] = std::byte{'!'};  // replaces the first text's terminating NUL
  EXPECT_EQ(simgpu::read_image(no_nul.data()).code, CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(simgpu::read_image(simgpu::write_linked({}).data()).code, CUDA_ERROR_INVALID_IMAGE) << "of no texts";
}

}  // namespace
