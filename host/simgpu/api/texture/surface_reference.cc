// Surface references of modules, and the numbers through which kernels access texture and surface references.
#include <cstring>
#include <utility>

#include "host/simgpu/api/module/module_reference.h"
#include "host/simgpu/api/stream/streams.h"
#include "host/simgpu/api/texture/array.h"
#include "ring/base/mutex.h"

namespace simgpu {

ShownNumber::~ShownNumber() {
  if (number_ != 0) remove(number_);
}

void ShownNumber::belong_to(const std::shared_ptr<LoadedModule>& module, const Global& variable) {
  module_ = module;
  table_ = &textures_of(module->context->device);
  variable_ = variable.address;
}

void ShownNumber::remove(std::uint64_t number) {
  if (is_surface_)
    table_->remove_surface(number);
  else
    table_->remove_texture(number);
}

CUresult ShownNumber::show(Driver& driver, Context& context, std::uint64_t number) {
  const std::shared_ptr<LoadedModule> module = module_.lock();  // keeps the memory of the variable
  const CUresult fault = module == nullptr ? CUDA_ERROR_INVALID_HANDLE : wait_for(driver, pending(driver, context));
  if (fault != CUDA_SUCCESS) {
    if (number != 0) remove(number);
    return fault;
  }
  std::memcpy(reinterpret_cast<void*>(variable_), &number, sizeof number);
  if (const std::uint64_t before = std::exchange(number_, number); before != 0) remove(before);
  return CUDA_SUCCESS;
}

namespace {

template <class F>
CUresult with_reference(CUsurfref handle, F&& call) {
  if (handle == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_context_of(&Driver::surface_references, handle, [&](Driver& driver, Context& context) {
    const std::shared_ptr<SurfaceReference> reference = driver.surface_references.find(handle);
    if (reference == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const ring::MutexLock lock(reference->mutex);
    return call(driver, context, *reference);
  });
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

CUresult cuModuleGetSurfRef(CUsurfref* out, CUmodule module, const char* name) {
  return find_reference(module, out, name, [](LoadedModule& of, std::string_view wanted) {
    of.mutex.assume_held();
    return named_references(of.module->surface_reference(wanted), of.surface_references, &Driver::surface_references);
  });
}

CUresult cuSurfRefSetArray(CUsurfref handle, CUarray array_handle, unsigned flags) {
  return with_reference(handle, [&](Driver& driver, Context& context, SurfaceReference& reference) {
    reference.mutex.assume_held();
    const auto array = driver.arrays.find(array_handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const bool is_surface = (array->description.Flags & CUDA_ARRAY3D_SURFACE_LDST) != 0;
    if (flags != 0 || !is_surface) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t number = textures_of(context.device).insert(Surface{array->image});
    if (number == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    if (const CUresult r = reference.shown.show(driver, context, number); r != CUDA_SUCCESS) return r;
    reference.array = array_handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuSurfRefGetArray(CUarray* out, CUsurfref handle) {
  return with_reference(handle, [&](Driver& driver, Context&, const SurfaceReference& reference) {
    reference.mutex.assume_held();
    if (out == nullptr || driver.arrays.find(reference.array) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = reference.array;
    return CUDA_SUCCESS;
  });
}
