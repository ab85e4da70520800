// Libraries and their kernels. A library is a module that belongs to no context. The calls are handwritten for the same
// reasons as the calls of modules (guest/calls/module/module.cc).
//
// Invariant: a library and its kernels need no context. The library's module, its globals and the functions of its
// kernels need one. Trust: the arguments are the program's; load.h and lookup.h check the worker's replies.
#include "guest/base/log.h"
#include "guest/calls/calls.h"
#include "guest/calls/find_function.h"
#include "guest/calls/module/load.h"
#include "guest/calls/module/lookup.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"

namespace guest::calls {

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_names, void** jit_values,
                           unsigned jit_count, CUlibraryOption* options, void**, unsigned option_count) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLibraryLoadData>(context); r != CUDA_SUCCESS) return r;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (option_count != 0 && options == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < option_count; ++i)
    if (options[i] < 0 || options[i] >= CU_LIBRARY_NUM_OPTIONS) {
      return CUDA_ERROR_INVALID_VALUE;
    } else if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED) {  // the worker keeps its own copy of the image anyway
      log(Level::Warn, "library option %d is not served yet", static_cast<int>(options[i]));
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  Object* loaded = nullptr;
  const CUresult result = load(api::id_of::cuLibraryLoadData, api::Handle::Library, *context, code,
                               {jit_count, jit_names, jit_values}, loaded);
  if (result == CUDA_SUCCESS) *library = handle_of_object<CUlibrary>(*loaded);
  return result;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLibraryGetKernel>(context); r != CUDA_SUCCESS) return r;
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(library, api::Handle::Library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Object* found = nullptr;
  const CUresult result = look_up(api::id_of::cuLibraryGetKernel, api::Handle::Kernel, *context, *owner, name, found);
  if (result == CUDA_SUCCESS) *kernel = handle_of_object<CUkernel>(*found);
  return result;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary library) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLibraryEnumerateKernels>(context); r != CUDA_SUCCESS) return r;
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(library, api::Handle::Library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  unsigned count = 0;
  if (const CUresult r = Stub<api::id_of::cuLibraryGetKernelCount>::call(&count, library); r != CUDA_SUCCESS) return r;
  return fill_list(api::id_of::cuLibraryEnumerateKernels, api::Handle::Kernel, *context, *owner, count, kernels, room);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuKernelGetFunction>(context); r != CUDA_SUCCESS) return r;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(kernel, api::Handle::Kernel);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Object* found = nullptr;
  const CUresult result = derive(api::id_of::cuKernelGetFunction, api::Handle::Function, *context, *owner, found);
  if (result != CUDA_SUCCESS) return result;
  *function = handle_of_object<CUfunction>(*found);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLibraryGetModule>(context); r != CUDA_SUCCESS) return r;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(library, api::Handle::Library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Object* found = nullptr;
  const CUresult result = derive(api::id_of::cuLibraryGetModule, api::Handle::Module, *context, *owner, found);
  if (result == CUDA_SUCCESS) *module = handle_of_object<CUmodule>(*found);
  return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary library, const char* name) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLibraryGetGlobal>(context); r != CUDA_SUCCESS) return r;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(library, api::Handle::Library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return find_global(api::id_of::cuLibraryGetGlobal, *context, *owner, address, bytes, name);
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  Object* object = nullptr;
  if (const CUresult r = find_function(kernel, api::Handle::Kernel, object); r != CUDA_SUCCESS) return r;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *library = reinterpret_cast<CUlibrary>(object->owner);
  return CUDA_SUCCESS;
}

// A program compiled by nvcc makes this call when it starts, before any context exists.
CUresult cuLibraryGetManaged(CUdeviceptr* address, std::size_t* bytes, CUlibrary library, const char* name) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuLibraryGetManaged>(context); r != CUDA_SUCCESS) return r;
  const Object* owner = session()->objects.find(library, api::Handle::Library);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return find_global(api::id_of::cuLibraryGetManaged, *context, *owner, address, bytes, name);
}

// Unified functions need CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE, which is not served, so no library has any.
CUresult cuLibraryGetUnifiedFunction(void** function, CUlibrary library, const char* name) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool known = session()->objects.find(library, api::Handle::Library) != nullptr;
  return known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  Object* object = nullptr;
  if (const CUresult r = find_function(kernel, api::Handle::Kernel, object); r != CUDA_SUCCESS) return r;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = object->function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  Context* context = nullptr;
  Object* object = nullptr;
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = enter(context); r != CUDA_SUCCESS) return r;
  if (const CUresult r = find_function(kernel, api::Handle::Kernel, object); r != CUDA_SUCCESS) return r;
  return param_info(*object->function, index, offset, bytes);
}

}  // namespace guest::calls
