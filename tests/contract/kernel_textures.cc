#include "tests/contract/kernel_textures.h"

#include <algorithm>

namespace contract {
namespace {

std::string kernel_of(const std::string& text) {
  std::string source =
      ".version 7.0\n.target sm_75\n.address_size 64\n"
      ".visible .entry k(.param .u64 out, .param .u64 object, .param .align 4 .b8 row[32])\n{\n"
      ".reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<30>; .reg .f32 %f<8>; .reg .b64 %rd<8>;\n"
      "ld.param.u64 %rd2, [out]; ld.param.u64 %rd1, [object];\n";
  for (int k = 0; k < 8; ++k) {
    const std::string number = std::to_string(k), place = "[row+" + std::to_string(4 * k) + "];\n";
    source += "ld.param.b32 %r" + number + ", " + place + "ld.param.f32 %f" + number + ", " + place;
  }
  source += "mov.u32 %r20, 0; mov.u32 %r21, 0; mov.u32 %r22, 0; mov.u32 %r23, 0;\n" + text + "\n";
  for (int k = 0; k < 4; ++k) {
    source += "st.global.u32 [%rd2+" + std::to_string(4 * k) + "], %r" + std::to_string(20 + k) + ";\n";
  }
  return source + "ret;\n}\n";
}

std::size_t channel_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    default: return 4;
  }
}

}  // namespace

Instruction::Instruction(const std::string& text) {
  CUmodule module = nullptr;
  why_ = CU(cuModuleLoadData)(&module, kernel_of(text).c_str());
  if (why_ != CUDA_SUCCESS) return;
  why_ = CU(cuModuleGetFunction)(&function_, module, "k");
  CU(cuMemAlloc_v2)(&out_, 16);
}

std::array<unsigned, 4> Instruction::run(unsigned long long object, const TexelRow& row) {
  std::array<unsigned, 4> words;
  words.fill(~0U);
  if (function_ == nullptr) return words;
  TexelRow copy = row;
  void* parameters[] = {&out_, &object, copy.data()};
  why_ = CU(cuLaunchKernel)(function_, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  if (why_ == CUDA_SUCCESS) why_ = CU(cuCtxSynchronize)();
  if (why_ == CUDA_SUCCESS) why_ = CU(cuMemcpyDtoH_v2)(words.data(), out_, sizeof words);
  return words;
}

void show_words(const std::string& what, const std::string& text, unsigned long long object, const TexelRow& row,
                unsigned count) {
  Instruction instruction(text);
  const std::array<unsigned, 4> words = instruction.run(object, row);
  if (instruction.why() != CUDA_SUCCESS) return show(what, instruction.why());
  for (unsigned k = 0; k < count; ++k) {
    show(count == 1 ? what : what + ", word " + std::to_string(k), static_cast<long long>(words[k]));
  }
}

void show_end(const std::string& what, const std::string& text, unsigned long long object, const TexelRow& row) {
  Instruction instruction(text);
  instruction.run(object, row);
  show(what, instruction.why());
}

CUarray array_of(const Texels& shape, const void* texels) {
  const CUDA_ARRAY3D_DESCRIPTOR description = {.Width = shape.width,
                                               .Height = shape.height,
                                               .Depth = shape.depth,
                                               .Format = shape.format,
                                               .NumChannels = shape.channels,
                                               .Flags = shape.flags};
  CUarray array = nullptr;
  CU(cuArray3DCreate_v2)(&array, &description);
  CUDA_MEMCPY3D copy;
  std::memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = texels;
  copy.srcPitch = copy.WidthInBytes = shape.width * shape.channels * channel_bytes(shape.format);
  copy.srcHeight = copy.Height = std::max<std::size_t>(1, shape.height);
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.Depth = std::max<std::size_t>(1, shape.depth);
  if (array != nullptr) CU(cuMemcpy3D_v2)(&copy);
  return array;
}

CUDA_TEXTURE_DESC sampling_of(CUfilter_mode filter, CUaddress_mode mode, unsigned flags) {
  CUDA_TEXTURE_DESC sampling;
  std::memset(&sampling, 0, sizeof sampling);
  sampling.filterMode = filter;
  sampling.flags = flags;
  for (CUaddress_mode& each : sampling.addressMode) each = mode;
  return sampling;
}

CUDA_RESOURCE_DESC resource_of_array(CUarray array) {
  CUDA_RESOURCE_DESC resource;
  std::memset(&resource, 0, sizeof resource);
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

unsigned long long texture_of(CUarray array, const CUDA_TEXTURE_DESC& sampling) {
  const CUDA_RESOURCE_DESC resource = resource_of_array(array);
  CUtexObject object = 0;
  if (array != nullptr) CU(cuTexObjectCreate)(&object, &resource, &sampling, nullptr);
  return object;
}

unsigned long long surface_of(CUarray array) {
  const CUDA_RESOURCE_DESC resource = resource_of_array(array);
  CUsurfObject object = 0;
  if (array != nullptr) CU(cuSurfObjectCreate)(&object, &resource);
  return object;
}

}  // namespace contract
