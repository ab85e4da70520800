// Texture and surface references, which CUDA 12 removed from its compilers: no module has one. What is left is a texture
// reference that a program creates, sets and asks about.
#include <algorithm>
#include <cstring>

#include "host/simgpu/api/array.h"
#include "host/simgpu/api/array_format.h"
#include "host/simgpu/api/device.h"
#include "host/simgpu/api/memory.h"
#include "host/simgpu/api/texture_reference.h"

using namespace simgpu;

namespace {

template <class F>
CUresult with_reference(CUtexref handle, F&& call) {
  if (handle == nullptr) return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
  return with_context_of(&Driver::texture_references, handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<TextureReference> reference = driver.texture_references.find(handle);
    if (reference == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(reference->mutex);
    return call(driver, context, *reference);
  });
}

// Sets or gives one member.
template <class T, class U>
CUresult give(CUtexref handle, T* out, U TextureReference::*member) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = static_cast<T>(reference.*member);
    return CUDA_SUCCESS;
  });
}

template <class T>
CUresult set(CUtexref handle, bool allowed, T TextureReference::*member, T value) {
  return with_reference(handle, [&](Driver&, Context&, TextureReference& reference) {
    if (!allowed) return CUDA_ERROR_INVALID_VALUE;
    reference.*member = value;
    return CUDA_SUCCESS;
  });
}

bool known(CUfilter_mode mode) { return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR; }

std::size_t alignment(const Context& context, CUdevice_attribute attribute) {
  return static_cast<std::size_t>(device_attribute(context.device, attribute).value_or(1));
}

}  // namespace

CUresult cuTexRefCreate(CUtexref* out) {
  return with_context([&](Driver& driver, Context&) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto reference = std::make_shared<TextureReference>();
    reference->context = driver.current_shared();
    reference->handle = driver.texture_references.insert(reference);
    *out = reference->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefDestroy(CUtexref handle) {
  return with_reference(handle, [&](Driver& driver, Context&, const TextureReference&) {
    return driver.texture_references.remove(handle) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetArray(CUtexref handle, CUarray array_handle, unsigned flags) {
  return with_reference(handle, [&](Driver& driver, Context&, TextureReference& reference) {
    const auto array = driver.arrays.find(array_handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (flags != CU_TRSA_OVERRIDE_FORMAT) return CUDA_ERROR_INVALID_VALUE;
    reference.bind({.array = array_handle}, array->image.format);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmappedArray(CUtexref handle, CUmipmappedArray array_handle, unsigned flags) {
  return with_reference(handle, [&](Driver& driver, Context&, TextureReference& reference) {
    const auto array = driver.mipmapped_arrays.find(array_handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (flags != CU_TRSA_OVERRIDE_FORMAT) return CUDA_ERROR_INVALID_VALUE;
    reference.bind({.mipmapped_array = array_handle}, array->image.format);
    return CUDA_SUCCESS;
  });
}

// An address that is not aligned is bound from the last aligned one on, if the caller takes the difference.
CUresult cuTexRefSetAddress_v2(std::size_t* ByteOffset, CUtexref handle, CUdeviceptr dptr, std::size_t bytes) {
  return with_reference(handle, [&](Driver& driver, Context& context, TextureReference& reference) {
    const std::size_t offset = dptr % alignment(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    if (offset != 0 && ByteOffset == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool none = dptr == 0 && bytes == 0;
    const std::size_t texels = bytes / std::max(1U, texel_bytes(reference.format));
    if (!none && !reachable(driver, dptr, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (texels > alignment(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH))
      return CUDA_ERROR_INVALID_VALUE;
    reference.bind({.address = dptr - offset}, reference.format);
    if (ByteOffset != nullptr) *ByteOffset = offset;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress2D_v3(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr dptr, std::size_t Pitch) {
  return with_reference(handle, [&](Driver& driver, Context& context, TextureReference& reference) {
    if (d == nullptr || d->Width == 0 || d->Height == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = check_format(d->Format, d->NumChannels); r != CUDA_SUCCESS) return r;
    const TexelFormat format{.format = d->Format, .channels = d->NumChannels};
    const bool fits = d->Width <= alignment(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) &&
                      d->Height <= alignment(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) &&
                      Pitch <= alignment(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) &&
                      Pitch >= d->Width * texel_bytes(format);
    const bool aligned = dptr % alignment(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) == 0 &&
                         Pitch % alignment(context, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) == 0;
    if (!fits || !aligned) return CUDA_ERROR_INVALID_VALUE;
    if (!reachable(driver, dptr, Pitch * (d->Height - 1) + d->Width * texel_bytes(format)))
      return CUDA_ERROR_INVALID_VALUE;
    reference.bind({.address = dptr}, format);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress2D_v2(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr dptr, std::size_t Pitch) {
  return cuTexRefSetAddress2D_v3(handle, d, dptr, Pitch);
}

CUresult cuTexRefSetFormat(CUtexref handle, CUarray_format format, int channels) {
  const unsigned count = channels < 0 ? 0 : static_cast<unsigned>(channels);
  return set(handle, check_format(format, count) == CUDA_SUCCESS, &TextureReference::format,
             TexelFormat{.format = format, .channels = count});
}

CUresult cuTexRefSetAddressMode(CUtexref handle, int dim, CUaddress_mode mode) {
  return with_reference(handle, [&](Driver&, Context&, TextureReference& reference) {
    const bool known_mode = mode >= CU_TR_ADDRESS_MODE_WRAP && mode <= CU_TR_ADDRESS_MODE_BORDER;
    if (dim < 0 || dim > 2 || !known_mode) return CUDA_ERROR_INVALID_VALUE;
    reference.address_mode[dim] = mode;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFilterMode(CUtexref handle, CUfilter_mode mode) {
  return set(handle, known(mode), &TextureReference::filter_mode, mode);
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref handle, CUfilter_mode mode) {
  return set(handle, known(mode), &TextureReference::mipmap_filter_mode, mode);
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref handle, float bias) {
  return set(handle, true, &TextureReference::level_bias, bias);
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref handle, float least, float most) {
  return with_reference(handle, [&](Driver&, Context&, TextureReference& reference) {
    reference.min_level = least;
    reference.max_level = most;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref handle, unsigned ratio) {
  return set(handle, true, &TextureReference::max_anisotropy, std::clamp(ratio, 1U, 16U));
}

CUresult cuTexRefSetBorderColor(CUtexref handle, float* color) {
  return with_reference(handle, [&](Driver&, Context&, TextureReference& reference) {
    if (color == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(reference.border, color, sizeof reference.border);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFlags(CUtexref handle, unsigned flags) {
  constexpr unsigned known_flags =
      CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  return set(handle, (flags & ~known_flags) == 0, &TextureReference::flags, flags);
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr* out, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    if (out == nullptr || reference.bound.address == 0) return CUDA_ERROR_INVALID_VALUE;
    *out = reference.bound.address;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetArray(CUarray* out, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    if (out == nullptr || reference.bound.array == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reference.bound.array;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray* out, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    if (out == nullptr || reference.bound.mipmapped_array == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reference.bound.mipmapped_array;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetAddressMode(CUaddress_mode* out, CUtexref handle, int dim) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    if (out == nullptr || dim < 0 || dim > 2) return CUDA_ERROR_INVALID_VALUE;
    *out = reference.address_mode[dim];
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFormat(CUarray_format* format, int* channels, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    if (format == nullptr && channels == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (format != nullptr) *format = reference.format.format;
    if (channels != nullptr) *channels = static_cast<int>(reference.format.channels);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmapLevelClamp(float* least, float* most, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    if (least == nullptr || most == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *least = reference.min_level;
    *most = reference.max_level;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetBorderColor(float* out, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(out, reference.border, sizeof reference.border);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFilterMode(CUfilter_mode* out, CUtexref handle) {
  return give(handle, out, &TextureReference::filter_mode);
}
CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode* out, CUtexref handle) {
  return give(handle, out, &TextureReference::mipmap_filter_mode);
}
CUresult cuTexRefGetMipmapLevelBias(float* out, CUtexref handle) {
  return give(handle, out, &TextureReference::level_bias);
}
CUresult cuTexRefGetMaxAnisotropy(int* out, CUtexref handle) {
  return give(handle, out, &TextureReference::max_anisotropy);
}
CUresult cuTexRefGetFlags(unsigned* out, CUtexref handle) { return give(handle, out, &TextureReference::flags); }

// No module has a reference, so there is none that could be named.
CUresult cuModuleGetTexRef(CUtexref* out, CUmodule module, const char* name) {
  if (module == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_context_of(&Driver::modules, module, [&](Driver& driver, Context&) {
    if (driver.modules.find(module) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return out == nullptr || name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
  });
}

CUresult cuModuleGetSurfRef(CUsurfref* out, CUmodule module, const char* name) {
  if (module == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_context_of(&Driver::modules, module, [&](Driver& driver, Context&) {
    if (driver.modules.find(module) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return out == nullptr || name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
  });
}

CUresult cuSurfRefSetArray(CUsurfref, CUarray, unsigned) {
  return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
}

CUresult cuSurfRefGetArray(CUarray*, CUsurfref) {
  return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
}
