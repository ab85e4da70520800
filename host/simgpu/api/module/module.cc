// Calls for modules.
#include "host/simgpu/api/cuda_api.h"

#include <cstdlib>
#include <string_view>

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/module/library.h"
#include "ring/base/mutex.h"

using namespace simgpu;

namespace {

CUresult load(CUmodule* out, const void* image, const JitOptions& options) {
  return with_context([&](Driver& driver, Context& context) {
    if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUresult error;
    std::shared_ptr<Module> module = load_on(driver, context.device, image, options, &error);
    if (module == nullptr) return error;
    auto placed = place_in(driver, driver.current_shared(), std::move(module));
    const ring::MutexLock lock(placed->mutex);  // uncontended: no other thread knows the module
    placed->handle = driver.modules.insert(placed);
    *out = placed->handle;
    return CUDA_SUCCESS;
  });
}

template <class F>
CUresult with_module(CUmodule handle, F&& call) {
  return with_context_of(&Driver::modules, handle, [&](Driver& driver, Context&) {
    const std::shared_ptr<LoadedModule> module = driver.modules.find(handle);
    return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, module);
  });
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned numOptions, CUjit_option* options,
                            void** optionValues) {
  const JitOptions jit{numOptions, options, optionValues};
  if (!are_there(jit)) return with_context([](Driver&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
  return load(module, image, jit);
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load(module, image, {}); }
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) { return load(module, fatCubin, {}); }

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  return with_context([&](Driver&, Context&) {
    if (module == nullptr || fname == nullptr) return CUDA_ERROR_INVALID_VALUE;
    bool found = false;
    const std::optional<OwnedImage> image = OwnedImage::from_file(fname, &found);
    if (!found) return CUDA_ERROR_FILE_NOT_FOUND;
    return image ? load(module, image->get(), {}) : CUDA_ERROR_INVALID_IMAGE;
  });
}

// Kernels of the module that still run keep the module in memory.
CUresult cuModuleUnload(CUmodule hmod) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  if (hmod == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_module(hmod, [](Driver& driver, const std::shared_ptr<LoadedModule>& module) {
    if (!module->library.expired()) return CUDA_ERROR_NOT_PERMITTED;
    drop_module(driver, *module);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return with_driver([&](Driver&) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const char* wanted = std::getenv("CUDA_MODULE_LOADING");
    const bool eager = wanted != nullptr && std::string_view(wanted) == "EAGER";
    *mode = eager ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  if (hmod == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_module(hmod, [&](Driver& driver, const std::shared_ptr<LoadedModule>& module) {
    if (hfunc == nullptr || name == nullptr || *name == '\0') return CUDA_ERROR_INVALID_VALUE;
    const auto found = module->functions.find(name);
    if (found == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
    *hfunc = handle_of(driver, module, *found->second);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule mod) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_module(mod, [&](Driver&, const std::shared_ptr<LoadedModule>& module) {
    *count = static_cast<unsigned>(module->functions.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned numFunctions, CUmodule mod) {
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_module(mod, [&](Driver& driver, const std::shared_ptr<LoadedModule>& module) {
    unsigned written = 0;
    for (const auto& [name, function] : module->functions) {
      if (written == numFunctions) break;
      functions[written++] = handle_of(driver, module, *function);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, std::size_t* bytes, CUmodule hmod, const char* name) {
  if (hmod == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_module(hmod, [&](Driver&, const std::shared_ptr<LoadedModule>& module) {
    if (name == nullptr || (dptr == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (module->module->texture_reference(name) != nullptr) return CUDA_ERROR_INVALID_VALUE;
    return answer_global(module->module->global(name), dptr, bytes);
  });
}
