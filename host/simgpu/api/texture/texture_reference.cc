// Texture references. The compilers of CUDA 12 no longer support them, but a module written in PTX may contain them. A
// program may also create references, which no kernel can read. The driver checks some settings only when a kernel
// reads, and so does the simulation.
#include <cstring>
#include <optional>

#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/module/module_reference.h"
#include "host/simgpu/api/texture/array.h"
#include "host/simgpu/api/texture/array_format.h"
#include "ring/base/mutex.h"

using namespace simgpu;

namespace {

template <class F>
CUresult with_reference(CUtexref handle, F&& call) {
  if (handle == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_context_of(&Driver::texture_references, handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<TextureReference> reference = driver.texture_references.find(handle);
    if (reference == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const ring::MutexLock lock(reference->mutex);
    return call(driver, context, *reference);
  });
}

std::size_t limit(const Context& context, CUdevice_attribute attribute) {
  return static_cast<std::size_t>(device_attribute(context.device, attribute).value_or(1));
}

// Returns the image of a reference; nullopt if the memory does not fit into a texture or has no format, so that kernels
// cannot read it.
std::optional<Image> image_of(const Context& context, const TextureReference& reference) REQUIRES(reference.mutex) {
  const TextureReference::Bound& bound = reference.bound;
  if (!bound.image.levels.empty()) return bound.image;
  if (bound.address == 0 || check_format(reference.format.format, reference.format.channels) != CUDA_SUCCESS)
    return std::nullopt;
  const std::size_t texel = texel_bytes(reference.format);
  const bool rows = bound.height != 0;
  const std::size_t width = rows ? bound.width : bound.bytes / texel;
  const auto most =
      rows ? CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH : CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH;
  if (width == 0 || width > limit(context, most)) return std::nullopt;
  Image image;
  image.geometry = rows ? Geometry::D2 : Geometry::Linear;
  image.format = reference.format;
  image.levels = {{.texels = reinterpret_cast<std::byte*>(bound.address),
                   .width = static_cast<std::uint32_t>(width),
                   .height = rows ? static_cast<std::uint32_t>(bound.height) : 1,
                   .row_pitch = rows ? bound.pitch : bound.bytes,
                   .slice_pitch = rows ? bound.pitch * bound.height : 0}};
  return image;
}

CUfilter_mode known_or_point(CUfilter_mode mode) {
  return mode == CU_TR_FILTER_MODE_LINEAR ? mode : CU_TR_FILTER_MODE_POINT;
}
CUaddress_mode known_or_clamp(CUaddress_mode mode) {
  return mode >= CU_TR_ADDRESS_MODE_WRAP && mode <= CU_TR_ADDRESS_MODE_BORDER ? mode : CU_TR_ADDRESS_MODE_CLAMP;
}

Sampler sampler_of(const TextureReference& reference) REQUIRES(reference.mutex) {
  Sampler sampler;
  for (int i = 0; i < 3; ++i) sampler.address[i] = reference.address_mode[i];
  sampler.filter = known_or_point(reference.filter_mode);
  sampler.mipmap_filter = known_or_point(reference.mipmap_filter_mode);
  sampler.normalized = (reference.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  sampler.read_as_integer = (reference.flags & CU_TRSF_READ_AS_INTEGER) != 0;
  sampler.srgb = (reference.flags & CU_TRSF_SRGB) != 0;
  sampler.trilinear_optimization_off = (reference.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
  sampler.level_bias = reference.level_bias;
  sampler.min_level = reference.min_level, sampler.max_level = reference.max_level;
  sampler.max_anisotropy = reference.max_anisotropy;
  std::memcpy(sampler.border, reference.border, sizeof sampler.border);
  return sampler;
}

// Makes the current state of the reference visible to kernels.
CUresult show(Driver& driver, Context& context, TextureReference& reference) REQUIRES(reference.mutex) {
  if (!reference.shown.is_modules()) return CUDA_SUCCESS;
  std::uint64_t number = 0;
  const Sampler sampler = sampler_of(reference);
  const std::optional<Image> image = image_of(context, reference);
  if (image && (image->levels.size() == 1 || sampler.normalized)) {
    number = textures_of(context.device).insert(Texture{*image, sampler});
    if (number == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return reference.shown.show(driver, context, number);
}

// Wraps a call that changes the reference.
template <class F>
CUresult change_reference(CUtexref handle, F&& change) {
  return with_reference(handle, [&](Driver& driver, Context& context, TextureReference& reference) {
    reference.mutex.assume_held();
    if (const CUresult r = change(driver, context, reference); r != CUDA_SUCCESS) return r;
    return show(driver, context, reference);
  });
}

// Returns or sets one member of the reference.
template <class T, class U>
CUresult give(CUtexref handle, T* out, U TextureReference::*member) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    reference.mutex.assume_held();
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = static_cast<T>(reference.*member);
    return CUDA_SUCCESS;
  });
}

template <class T>
CUresult set(CUtexref handle, bool allowed, T TextureReference::*member, T value) {
  return change_reference(handle, [&](Driver&, Context&, TextureReference& reference) {
    reference.mutex.assume_held();
    if (!allowed) return CUDA_ERROR_INVALID_VALUE;
    reference.*member = value;
    return CUDA_SUCCESS;
  });
}

bool known(CUfilter_mode mode) { return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR; }

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

// A module's reference cannot be destroyed by this call: it is destroyed with its module.
CUresult cuTexRefDestroy(CUtexref handle) {
  return with_reference(handle, [&](Driver& driver, Context&, const TextureReference& reference) {
    reference.mutex.assume_held();
    if (reference.shown.is_modules()) return CUDA_ERROR_INVALID_HANDLE;
    return driver.texture_references.remove(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetArray(CUtexref handle, CUarray array_handle, unsigned flags) {
  return change_reference(handle, [&](Driver& driver, Context&, TextureReference& reference) {
    reference.mutex.assume_held();
    const auto array = driver.arrays.find(array_handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~unsigned{CU_TRSA_OVERRIDE_FORMAT}) != 0) return CUDA_ERROR_INVALID_VALUE;
    reference.bind({.array = array_handle, .image = array->image}, array->image.format);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMipmappedArray(CUtexref handle, CUmipmappedArray array_handle, unsigned flags) {
  return change_reference(handle, [&](Driver& driver, Context&, TextureReference& reference) {
    reference.mutex.assume_held();
    const auto array = driver.mipmapped_arrays.find(array_handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~unsigned{CU_TRSA_OVERRIDE_FORMAT}) != 0) return CUDA_ERROR_INVALID_VALUE;
    reference.bind({.mipmapped_array = array_handle, .image = array->image}, array->image.format);
    return CUDA_SUCCESS;
  });
}

// If the caller accepts an offset, an unaligned address is bound from the preceding aligned address on. The memory is
// checked when a kernel reads.
CUresult cuTexRefSetAddress_v2(std::size_t* ByteOffset, CUtexref handle, CUdeviceptr dptr, std::size_t bytes) {
  return change_reference(handle, [&](Driver&, Context& context, TextureReference& reference) {
    reference.mutex.assume_held();
    const std::size_t offset = dptr % limit(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    if (offset != 0 && ByteOffset == nullptr) return CUDA_ERROR_INVALID_VALUE;
    reference.bind({.address = dptr - offset, .bytes = bytes + offset}, reference.format);
    if (ByteOffset != nullptr) *ByteOffset = offset;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress2D_v3(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr dptr, std::size_t Pitch) {
  return change_reference(handle, [&](Driver&, Context& context, TextureReference& reference) {
    reference.mutex.assume_held();
    if (d == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const TexelFormat format{.format = d->Format, .channels = d->NumChannels};
    const bool fits = d->Width <= limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) &&
                      d->Height <= limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) &&
                      Pitch <= limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) &&
                      Pitch >= d->Width * texel_bytes(format);
    const bool aligned = dptr % limit(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) == 0 &&
                         Pitch % limit(context, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) == 0;
    if (!fits || !aligned) return CUDA_ERROR_INVALID_VALUE;
    reference.bind({.address = dptr, .width = d->Width, .height = d->Height, .pitch = Pitch}, format);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetAddress2D_v2(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR* d, CUdeviceptr dptr, std::size_t Pitch) {
  return cuTexRefSetAddress2D_v3(handle, d, dptr, Pitch);
}

CUresult cuTexRefSetFormat(CUtexref handle, CUarray_format format, int channels) {
  return set(handle, channels <= 4 && channels != 3, &TextureReference::format,
             TexelFormat{.format = format, .channels = static_cast<unsigned>(channels)});
}

CUresult cuTexRefSetAddressMode(CUtexref handle, int dim, CUaddress_mode mode) {
  return change_reference(handle, [&](Driver&, Context&, TextureReference& reference) {
    reference.mutex.assume_held();
    if (dim < 0 || dim > 2) return CUDA_ERROR_INVALID_VALUE;
    reference.address_mode[dim] = known_or_clamp(mode);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetFilterMode(CUtexref handle, CUfilter_mode mode) {
  return set(handle, true, &TextureReference::filter_mode, mode);
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref handle, CUfilter_mode mode) {
  return set(handle, known(mode), &TextureReference::mipmap_filter_mode, mode);
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref handle, float bias) {
  return set(handle, true, &TextureReference::level_bias, bias);
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref handle, float least, float most) {
  return change_reference(handle, [&](Driver&, Context&, TextureReference& reference) {
    reference.mutex.assume_held();
    reference.min_level = least;
    reference.max_level = most;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref handle, unsigned ratio) {
  return set(handle, true, &TextureReference::max_anisotropy, ratio);
}

CUresult cuTexRefSetBorderColor(CUtexref handle, float* color) {
  return change_reference(handle, [&](Driver&, Context&, TextureReference& reference) {
    reference.mutex.assume_held();
    if (color == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(reference.border, color, sizeof reference.border);
    return CUDA_SUCCESS;
  });
}

// The driver accepts flag 4, which has no name in cuda.h, and refuses all bits at once. The exact limit was not
// measured.
CUresult cuTexRefSetFlags(CUtexref handle, unsigned flags) {
  return set(handle, flags <= 0xff, &TextureReference::flags, flags);
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr* out, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    reference.mutex.assume_held();
    if (out == nullptr || reference.bound.address == 0) return CUDA_ERROR_INVALID_VALUE;
    *out = reference.bound.address;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetArray(CUarray* out, CUtexref handle) {
  return with_reference(handle, [&](Driver& driver, Context&, const TextureReference& reference) {
    reference.mutex.assume_held();
    if (out == nullptr || driver.arrays.find(reference.bound.array) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reference.bound.array;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray* out, CUtexref handle) {
  return with_reference(handle, [&](Driver& driver, Context&, const TextureReference& reference) {
    reference.mutex.assume_held();
    const auto array = driver.mipmapped_arrays.find(reference.bound.mipmapped_array);
    if (out == nullptr || array == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reference.bound.mipmapped_array;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetAddressMode(CUaddress_mode* out, CUtexref handle, int dim) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    reference.mutex.assume_held();
    if (out == nullptr || dim < 0 || dim > 2) return CUDA_ERROR_INVALID_VALUE;
    *out = reference.address_mode[dim];
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetFormat(CUarray_format* format, int* channels, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    reference.mutex.assume_held();
    if (format != nullptr) *format = reference.format.format;
    if (channels != nullptr) *channels = static_cast<int>(reference.format.channels);
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetMipmapLevelClamp(float* least, float* most, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    reference.mutex.assume_held();
    if (least == nullptr || most == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *least = reference.min_level;
    *most = reference.max_level;
    return CUDA_SUCCESS;
  });
}

CUresult cuTexRefGetBorderColor(float* out, CUtexref handle) {
  return with_reference(handle, [&](Driver&, Context&, const TextureReference& reference) {
    reference.mutex.assume_held();
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

CUresult cuModuleGetTexRef(CUtexref* out, CUmodule module, const char* name) {
  return find_reference(module, out, name, [](LoadedModule& of, std::string_view wanted) {
    of.mutex.assume_held();
    return named_references(of.module->texture_reference(wanted), of.texture_references, &Driver::texture_references);
  });
}

// A parameter call of CUDA 3. The driver no longer accepts a texture as a parameter, even for the only texture unit
// that cuda.h defines.
CUresult cuParamSetTexRef(CUfunction function, int, CUtexref handle) {
  if (function == nullptr) return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_reference(handle, [&](Driver& driver, Context&, const TextureReference&) {
    CUresult error;
    return resolve(driver, function, &error).function == nullptr ? error : CUDA_ERROR_INVALID_VALUE;
  });
}
