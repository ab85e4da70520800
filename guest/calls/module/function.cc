// Queries about functions that this library answers itself.
#include "guest/calls/calls.h"
#include "guest/calls/find_function.h"
#include "guest/process/process.h"

namespace guest::calls {

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  Object* object = nullptr;
  if (const CUresult r = find_function(function, api::Handle::Function, object); r != CUDA_SUCCESS) return r;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (api::Id::of(object->owner).kind == api::Handle::Module) {
    *module = reinterpret_cast<CUmodule>(object->owner);
    return CUDA_SUCCESS;
  }
  // The function of a kernel belongs to the module of the kernel's library.
  const Object* kernel = session()->objects.find(reinterpret_cast<const void*>(object->owner), api::Handle::Kernel);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return calls::cuLibraryGetModule(module, reinterpret_cast<CUlibrary>(kernel->owner));
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  Object* object = nullptr;
  if (const CUresult r = find_function(function, api::Handle::Function, object); r != CUDA_SUCCESS) return r;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = object->function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  Object* object = nullptr;
  if (const CUresult r = find_function(function, api::Handle::Function, object); r != CUDA_SUCCESS) return r;
  return param_info(*object->function, index, offset, bytes);
}

}  // namespace guest::calls
