// Calls for libraries.
#include "host/simgpu/api/cuda_api.h"
#include "ring/base/mutex.h"

#include <algorithm>

#include "host/simgpu/api/graph/capture.h"
#include "host/simgpu/api/module/library.h"

using namespace simgpu;

namespace {

using LibraryPointer = std::shared_ptr<LoadedLibrary>;

// Wraps a call on a library. Libraries belong to no context, so they stay usable after a kernel has failed.
template <class F>
CUresult with_library(CUlibrary handle, F&& call) {
  return with_driver([&](Driver& driver) {
    const LibraryPointer library = driver.libraries.find(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return call(driver, library);
  });
}

struct LibraryOptions {
  unsigned count;
  CUlibraryOption* keys;
  void** values;
};

// Reads the options of a library; returns false if an option is unknown. `stays` is set if the library may keep a
// pointer to the image instead of a copy. The values of flags are ignored, because some callers pass no values.
bool read_options(const LibraryOptions& options, bool& stays) {
  if (options.count != 0 && options.keys == nullptr) return false;
  for (unsigned i = 0; i < options.count; ++i) {
    if (options.keys[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
      stays = true;
    else if (options.keys[i] != CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE)
      return false;
  }
  return true;
}

// Loads a library. Without a current context, the first device loads the code to find errors.
CUresult load(Driver& driver, CUlibrary* out, OwnedImage image, const JitOptions& options) {
  const Context* context = driver.current();
  Device& device = context == nullptr ? *driver.devices[0] : context->device;
  auto library = std::make_shared<LoadedLibrary>(std::move(image));
  CUresult error;
  const ring::MutexLock lock(library->mutex);  // uncontended: no other thread knows the library
  library->first = load_on(driver, device, library->image.get(), options, &error);
  library->first_device = &device;
  if (library->first == nullptr) return error;
  for (const Function* function : library->first->functions()) library->names.push_back(function->name);
  library->handle = driver.libraries.insert(library);
  *out = library->handle;
  return CUDA_SUCCESS;
}

CUkernel kernel_named(Driver& driver, const LibraryPointer& library, const std::string& name) {
  const ring::MutexLock lock(library->mutex);
  CUkernel& handle = library->kernels[name];
  if (handle == nullptr) {
    auto kernel = std::make_shared<Kernel>();
    kernel->library = library;
    kernel->name = name;
    kernel->handle = handle = driver.kernels.insert(kernel);
  }
  return handle;
}

// Returns the module in which to look up a variable: the current context's part or, without a current context, any
// part.
std::shared_ptr<Module> any_module(Driver& driver, const LibraryPointer& library) {
  CUresult ignored;
  if (const auto part = part_of(driver, library, &ignored)) return part->module;
  const ring::MutexLock lock(library->mutex);
  if (library->first != nullptr) return library->first;
  return library->parts.empty() ? nullptr : library->parts.begin()->second->module;
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions, void** jitOptionsValues,
                           unsigned numJitOptions, CUlibraryOption* libraryOptions, void** libraryOptionValues,
                           unsigned numLibraryOptions) {
  if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    bool stays = false;
    const JitOptions jit{numJitOptions, jitOptions, jitOptionsValues};
    if (library == nullptr || code == nullptr || !are_there(jit) ||
        !read_options({numLibraryOptions, libraryOptions, libraryOptionValues}, stays))
      return CUDA_ERROR_INVALID_VALUE;
    return load(driver, library, OwnedImage(code, stays), jit);
  });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned numJitOptions, CUlibraryOption* libraryOptions,
                               void** libraryOptionValues, unsigned numLibraryOptions) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    bool stays = false, found = false;
    const JitOptions jit{numJitOptions, jitOptions, jitOptionsValues};
    if (fileName == nullptr || !are_there(jit) ||
        !read_options({numLibraryOptions, libraryOptions, libraryOptionValues}, stays))
      return CUDA_ERROR_INVALID_VALUE;
    std::optional<OwnedImage> image = OwnedImage::from_file(fileName, &found);
    if (!found) return CUDA_ERROR_FILE_NOT_FOUND;
    if (!image) return CUDA_ERROR_INVALID_IMAGE;
    return load(driver, library, std::move(*image), jit);
  });
}

CUresult cuLibraryUnload(CUlibrary handle) {
  if (const CUresult error = refuse_as_unsafe(); error != CUDA_SUCCESS) return error;
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_driver([&](Driver& driver) {
    const LibraryPointer library = driver.libraries.remove(handle);
    if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const ring::MutexLock lock(library->mutex);
    for (const auto& [name, kernel] : library->kernels) driver.kernels.remove(kernel);
    for (const auto& [context, part] : library->parts) drop_module(driver, *part);
    library->parts.clear();
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary handle, const char* name) {
  if (pKernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_library(handle, [&](Driver& driver, const LibraryPointer& library) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (std::find(library->names.begin(), library->names.end(), name) == library->names.end())
      return CUDA_ERROR_NOT_FOUND;
    *pKernel = kernel_named(driver, library, name);
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary lib) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_library(lib, [&](Driver&, const LibraryPointer& library) {
    *count = static_cast<unsigned>(library->names.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned numKernels, CUlibrary lib) {
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_library(lib, [&](Driver& driver, const LibraryPointer& library) {
    for (std::size_t i = 0; i < library->names.size() && i < numKernels; ++i)
      kernels[i] = kernel_named(driver, library, library->names[i]);
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary handle) {
  if (pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_library(handle, [&](Driver& driver, const LibraryPointer& library) {
    CUresult error;
    const std::shared_ptr<LoadedModule> part = part_of(driver, library, &error);
    if (part == nullptr) return error;
    const ring::MutexLock lock(part->mutex);
    if (part->handle == nullptr) part->handle = driver.modules.insert(part);
    *pMod = part->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, std::size_t* bytes, CUlibrary handle, const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_library(handle, [&](Driver& driver, const LibraryPointer& library) {
    if (name == nullptr || (dptr == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    CUresult error;
    const std::shared_ptr<LoadedModule> part = part_of(driver, library, &error);
    return part == nullptr ? error : answer_global(part->module->global(name), dptr, bytes);
  });
}

CUresult cuLibraryGetManaged(CUdeviceptr* dptr, std::size_t* bytes, CUlibrary handle, const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_library(handle, [&](Driver& driver, const LibraryPointer& library) {
    if (*name == '\0' || (dptr == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    const std::shared_ptr<Module> module = any_module(driver, library);
    const Global* global = module == nullptr ? nullptr : module->global(name);
    return answer_global(global != nullptr && global->managed ? global : nullptr, dptr, bytes);
  });
}

// A function that host and device call at the same address requires CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS. The
// device reports 0, so every symbol is an invalid value.
CUresult cuLibraryGetUnifiedFunction(void** fptr, CUlibrary handle, const char* symbol) {
  if (fptr == nullptr || symbol == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_VALUE; });
  return with_library(handle, [&](Driver&, const LibraryPointer&) { return CUDA_ERROR_INVALID_VALUE; });
}
