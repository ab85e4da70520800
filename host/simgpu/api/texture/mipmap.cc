// Calls for mipmapped arrays. A level is an array of its own that is created at first use and destroyed with its
// mipmapped array.
#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/stream/streams.h"
#include "host/simgpu/api/texture/array.h"
#include "ring/base/mutex.h"

using namespace simgpu;

namespace {

CUarray level_handle(Driver& driver, const std::shared_ptr<MipmappedArray>& owner, unsigned level) {
  const ring::MutexLock lock(owner->mutex);
  CUarray& handle = owner->levels[level];
  if (handle != nullptr) return handle;
  auto array = std::make_shared<Array>();
  array->context = owner->context;
  array->description = level_of(owner->description, level);
  array->image = owner->image;
  array->image.levels = {owner->image.levels[level]};
  array->is_level = true;
  array->handle = driver.arrays.insert(array);
  return handle = array->handle;
}

}  // namespace

CUresult cuMipmappedArrayCreate(CUmipmappedArray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned numLevels) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  return with_context([&](Driver& driver, Context& context) {
    if (pHandle == nullptr || d == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto array = std::make_shared<MipmappedArray>();
    if (const CUresult r = make_texels(driver, context, *d, numLevels, *array); r != CUDA_SUCCESS) return r;
    {
      const ring::MutexLock lock(array->mutex);
      array->levels.resize(array->image.levels.size());
    }
    array->handle = driver.mipmapped_arrays.insert(array);
    *pHandle = array->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuMipmappedArrayGetLevel(CUarray* pLevelArray, CUmipmappedArray handle, unsigned level) {
  return with_mipmapped_array(handle, [&](Driver& driver, Context&, const std::shared_ptr<MipmappedArray>& array) {
    if (pLevelArray == nullptr || level >= array->image.levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *pLevelArray = level_handle(driver, array, level);
    return CUDA_SUCCESS;
  });
}

// Waits for all work that may use the mipmapped array, as NVIDIA's driver does.
CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  if (handle == nullptr) return missing_once_initialised(CUDA_ERROR_INVALID_HANDLE);
  return with_mipmapped_array(handle, [&](Driver& driver, Context& context, const auto& array) {
    const CUresult fault = wait_for(driver, pending(driver, context));
    if (driver.mipmapped_arrays.remove(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const ring::MutexLock lock(array->mutex);
    for (const CUarray level : array->levels)
      if (level != nullptr) driver.arrays.remove(level);
    return fault;
  });
}

// The simulation has no sparse mipmapped arrays and none with deferred mapping.
CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES*, CUmipmappedArray handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_mipmapped_array(handle, [](Driver&, Context&, const auto&) { return CUDA_ERROR_INVALID_VALUE; });
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS*, CUmipmappedArray handle, CUdevice) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_mipmapped_array(handle, [](Driver&, Context&, const auto&) { return CUDA_ERROR_INVALID_VALUE; });
}
