// Calls for arrays.
#include "host/simgpu/api/texture/array.h"

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/memory/memory.h"
#include "host/simgpu/api/stream/streams.h"

namespace simgpu {

CUresult make_texels(Driver& driver, Context& context, const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels,
                     Texels& out) {
  ArrayShape shape;
  if (const CUresult r = shape_of(context.device, description, levels, shape); r != CUDA_SUCCESS) return r;
  AddressSpace& space = context.device.space;
  const Address start = space.allocate(shape.bytes);
  if (start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  auto* const texels = reinterpret_cast<std::byte*>(start);
  out.context = driver.current_shared();
  out.description = description;
  out.image.geometry = shape.geometry;
  out.image.format = shape.format;
  out.image.gather = (description.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0;
  out.image.keeps = std::shared_ptr<void>(texels, [&space, start](void*) { space.free(start); });
  out.image.levels = shape.levels;
  for (std::size_t i = 0; i < shape.levels.size(); ++i) out.image.levels[i].texels = texels + shape.starts[i];
  return CUDA_SUCCESS;
}

void drop_arrays(Driver& driver, const Context& context) {
  for (const auto& array : driver.arrays.all()) {
    if (array->context.get() != &context) continue;
    array->image.keeps = nullptr;
    if (context.is_primary) driver.arrays.remove(array->handle);
  }
  for (const auto& array : driver.mipmapped_arrays.all()) {
    if (array->context.get() != &context) continue;
    array->image.keeps = nullptr;
    if (context.is_primary) driver.mipmapped_arrays.remove(array->handle);
  }
}

namespace {

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& description) {
  return with_context([&](Driver& driver, Context& context) {
    auto array = std::make_shared<Array>();
    if (const CUresult r = make_texels(driver, context, description, 1, *array); r != CUDA_SUCCESS) return r;
    array->handle = driver.arrays.insert(array);
    *out = array->handle;
    return CUDA_SUCCESS;
  });
}

CUresult refuse_in_context() {
  return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuArrayCreate_v2(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* d) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  if (pHandle == nullptr || d == nullptr) return refuse_in_context();
  // the driver ignores the upper 32 bits of width and height
  return create(pHandle, {.Width = static_cast<std::uint32_t>(d->Width),
                          .Height = static_cast<std::uint32_t>(d->Height),
                          .Depth = 0,
                          .Format = d->Format,
                          .NumChannels = d->NumChannels,
                          .Flags = 0});
}

CUresult cuArray3DCreate_v2(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  if (pHandle == nullptr || d == nullptr) return refuse_in_context();
  return create(pHandle, *d);
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  return with_array(handle, [&](Driver&, Context&, const Array& array) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR& d = array.description;
    *out = {.Width = d.Width, .Height = d.Height, .Format = d.Format, .NumChannels = d.NumChannels};
    return CUDA_SUCCESS;
  });
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  return with_array(handle, [&](Driver&, Context&, const Array& array) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = array.description;
    return CUDA_SUCCESS;
  });
}

// Waits for all work that may use the array, as NVIDIA's driver does. A level cannot be destroyed by this call: it is
// destroyed with its mipmapped array.
CUresult cuArrayDestroy(CUarray handle) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  if (handle == nullptr) return missing_once_initialised(CUDA_ERROR_INVALID_HANDLE);
  return with_array(handle, [&](Driver& driver, Context& context, const Array& array) {
    if (array.is_level) return CUDA_SUCCESS;
    const CUresult fault = wait_for(driver, pending(driver, context));
    return driver.arrays.remove(handle) == nullptr ? CUDA_ERROR_INVALID_HANDLE : fault;
  });
}

// The simulation has no sparse arrays, no arrays with deferred mapping, and no arrays with several planes.
CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUarray handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_array(handle, [](Driver&, Context&, const Array&) { return CUDA_ERROR_INVALID_VALUE; });
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUarray handle, CUdevice) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_array(handle, [](Driver&, Context&, const Array&) { return CUDA_ERROR_INVALID_VALUE; });
}

CUresult cuArrayGetPlane(CUarray*, CUarray handle, unsigned) {
  return with_array(handle, [](Driver&, Context&, const Array&) { return CUDA_ERROR_INVALID_VALUE; });
}
