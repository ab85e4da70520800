// Modules. The calls are handwritten because an image contains its own length and JIT options come with buffers. The
// reply to a lookup has the data to check and pack launches.
//
// Invariant: the guest finds the errors that CUDA reports at once before it sends anything. Trust: the arguments are
// the program's; load.h and lookup.h check the worker's replies.
#include "guest/calls/calls.h"
#include "guest/calls/module/load.h"
#include "guest/calls/module/lookup.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"

namespace guest::calls {
namespace {

// Finds a texture or surface reference by its name.
template <int call, api::Handle kind, class Reference>
CUresult find_reference(Reference* reference, CUmodule module, const char* name) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  if (const CUresult r = enter_call<call>(context, module); r != CUDA_SUCCESS) return r;
  if (reference == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(module, api::Handle::Module);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Object* found = nullptr;
  const CUresult result = look_up(call, kind, *context, *owner, name, found);
  if (result == CUDA_SUCCESS) *reference = handle_of_object<Reference>(*found);
  return result;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* names, void** values) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuModuleLoadDataEx>(context); r != CUDA_SUCCESS) return r;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Object* loaded = nullptr;
  const CUresult result =
      load(api::id_of::cuModuleLoadDataEx, api::Handle::Module, *context, image, {count, names, values}, loaded);
  if (result == CUDA_SUCCESS) *module = handle_of_object<CUmodule>(*loaded);
  return result;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return calls::cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return calls::cuModuleLoadData(module, image); }

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const char* wanted = std::getenv("CUDA_MODULE_LOADING");
  *mode = wanted != nullptr && std::strcmp(wanted, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuModuleGetFunction>(context, module); r != CUDA_SUCCESS) return r;
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(module, api::Handle::Module);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (*name == '\0') return CUDA_ERROR_INVALID_VALUE;
  Object* found = nullptr;
  const CUresult result =
      look_up(api::id_of::cuModuleGetFunction, api::Handle::Function, *context, *owner, name, found);
  if (result == CUDA_SUCCESS) *function = handle_of_object<CUfunction>(*found);
  return result;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned room, CUmodule module) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuModuleEnumerateFunctions>(context, module); r != CUDA_SUCCESS)
    return r;
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(module, api::Handle::Module);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  unsigned count = 0;
  if (const CUresult r = Stub<api::id_of::cuModuleGetFunctionCount>::call(&count, module); r != CUDA_SUCCESS) return r;
  return fill_list(api::id_of::cuModuleEnumerateFunctions, api::Handle::Function, *context, *owner, count, functions,
                   room);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule module, const char* name) {
  Context* context = nullptr;
  if (const CUresult r = enter_call<api::id_of::cuModuleGetGlobal_v2>(context, module); r != CUDA_SUCCESS) return r;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const Object* owner = session()->objects.find(module, api::Handle::Module);
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return find_global(api::id_of::cuModuleGetGlobal_v2, *context, *owner, address, bytes, name);
}

CUresult cuModuleGetTexRef(CUtexref* texture, CUmodule module, const char* name) {
  return find_reference<api::id_of::cuModuleGetTexRef, api::Handle::TextureReference>(texture, module, name);
}

CUresult cuModuleGetSurfRef(CUsurfref* surface, CUmodule module, const char* name) {
  return find_reference<api::id_of::cuModuleGetSurfRef, api::Handle::SurfaceReference>(surface, module, name);
}

}  // namespace guest::calls
