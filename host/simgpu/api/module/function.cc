// Calls for functions and kernels: names, parameters, attributes.
#include "host/simgpu/api/device/device.h"
#include "ring/base/mutex.h"

#include <algorithm>
#include <limits>

#include "host/simgpu/api/launch/clusters.h"
#include "host/simgpu/api/module/library.h"

using namespace simgpu;

namespace {

// Wraps a call on a function, in the function's own context. A kernel handle stands for the kernel's function in the
// current context.
template <class F>
CUresult with_function(CUfunction handle, F&& call) {
  return with_driver([&](Driver& driver) {
    const auto found = [&](Driver&, Context&) {
      CUresult error;
      const FunctionReference reference = resolve(driver, handle, &error);
      return reference.function == nullptr ? error : call(driver, reference);
    };
    const auto reference = is_kind(handle, HandleKind::Function) ? driver.functions.find(handle) : nullptr;
    return reference == nullptr ? with_context(found) : in_context(driver, *reference->module->context, found);
  });
}

template <class F>
CUresult with_kernel(CUkernel handle, F&& call) {
  return with_driver([&](Driver& driver) {
    const std::shared_ptr<Kernel> kernel = driver.kernels.find(handle);
    const std::shared_ptr<LoadedLibrary> library = kernel == nullptr ? nullptr : kernel->library.lock();
    return library == nullptr ? CUDA_ERROR_INVALID_HANDLE : call(driver, *kernel, library);
  });
}

// The attributes for width, height and depth have consecutive numbers.
unsigned axis_of(CUfunction_attribute attribute) {
  return static_cast<unsigned>(attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
}

int cluster_size(const LoadedFunction& function, CUfunction_attribute attribute) {
  const Dim3 size = required_cluster(function).value_or(Dim3{0, 0, 0});
  const std::uint32_t sizes[] = {size.x, size.y, size.z};
  return static_cast<int>(sizes[axis_of(attribute)]);
}

CUresult get_attribute(const LoadedFunction& function, CUfunction_attribute attribute, int* out) {
  const Function& code = *function.code;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = static_cast<int>(code.max_threads_per_block); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = static_cast<int>(code.static_shared); break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *out = static_cast<int>(code.const_bytes); break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *out = static_cast<int>(code.local_bytes); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = code.registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *out = code.ptx_version; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *out = static_cast<int>(device_sm); break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *out = function.max_dynamic_shared.load(); break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *out = function.carveout.load(); break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *out = 0; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *out = code.explicit_cluster; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *out = cluster_size(function, attribute); break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *out = function.non_portable_clusters.load(); break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *out = function.cluster_scheduling.load(); break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// Returns CUDA_SUCCESS if the attribute may be set to this value. Only the launch checks whether a cluster size is
// valid.
CUresult check_attribute(const Function& code, CUfunction_attribute attribute, int value) {
  const auto within = [value](int least, int most) {
    return value >= least && value <= most ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return within(0, device_shared_optin - static_cast<int>(code.static_shared));
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return within(-1, 100);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      return code.cluster ? CUDA_ERROR_NOT_PERMITTED : within(0, std::numeric_limits<int>::max());
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return within(0, 1);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return within(CU_CLUSTER_SCHEDULING_POLICY_DEFAULT, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// Returns the code of a kernel from any context that has loaded it, since the description is the same in all contexts.
// Returns null only if there is no context.
const Function* code_of(Driver& driver, const std::shared_ptr<LoadedLibrary>& library, const std::string& name) {
  {
    const ring::MutexLock lock(library->mutex);
    if (library->first != nullptr) return library->first->function(name);
    if (!library->parts.empty()) return library->parts.begin()->second->module->function(name);
  }
  CUresult ignored;
  const std::shared_ptr<LoadedModule> part = part_of(driver, library, &ignored);
  return part == nullptr ? nullptr : part->module->function(name);
}

CUresult parameter(const Function& code, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (offset == nullptr || index >= code.params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = code.params[index].offset;
  if (size != nullptr) *size = code.params[index].size;
  return CUDA_SUCCESS;
}

}  // namespace

namespace simgpu {

void describe(LoadedFunction& function, const Function& code) {
  function.code = &code;
  function.max_dynamic_shared = std::max(0, device_shared_default - static_cast<int>(code.static_shared));
}

void set_attribute(LoadedFunction& function, CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: function.max_dynamic_shared = value; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: function.carveout = value; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: function.cluster[axis_of(attribute)] = value; break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: function.non_portable_clusters = value; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: function.cluster_scheduling = value; break;
    default: break;
  }
}

}  // namespace simgpu

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_function(hfunc, [&](Driver&, const FunctionReference& reference) {
    return pi == nullptr ? CUDA_ERROR_INVALID_VALUE : get_attribute(*reference.function, attrib, pi);
  });
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  if (hfunc == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_function(hfunc, [&](Driver&, const FunctionReference& reference) {
    const CUresult verdict = check_attribute(*reference.function->code, attrib, value);
    if (verdict == CUDA_SUCCESS) set_attribute(*reference.function, attrib, value);
    return verdict;
  });
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  if (hfunc == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_function(hfunc, [&](Driver&, const FunctionReference&) {
    const bool known = config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
  if (hfunc == nullptr) return with_driver([](Driver&) { return CUDA_ERROR_INVALID_HANDLE; });
  return with_function(hfunc, [&](Driver&, const FunctionReference&) {
    const bool known =
        config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  if (hmod == nullptr || hfunc == nullptr) return missing_once_initialised(CUDA_ERROR_INVALID_VALUE);
  return with_function(hfunc, [&](Driver& driver, const FunctionReference& reference) {
    const ring::MutexLock lock(reference.module->mutex);
    if (reference.module->handle == nullptr) reference.module->handle = driver.modules.insert(reference.module);
    *hmod = reference.module->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  if (name == nullptr || hfunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_function(hfunc, [&](Driver&, const FunctionReference& reference) {
    *name = reference.function->code->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetParamInfo(CUfunction func, std::size_t paramIndex, std::size_t* paramOffset, std::size_t* paramSize) {
  if (func == nullptr || paramOffset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_function(func, [&](Driver&, const FunctionReference& reference) {
    return parameter(*reference.function->code, paramIndex, paramOffset, paramSize);
  });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_function(function, [&](Driver&, const FunctionReference&) {
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncLoad(CUfunction function) {
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_function(function, [](Driver&, const FunctionReference&) { return CUDA_SUCCESS; });
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  if (pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_function(reinterpret_cast<CUfunction>(kernel), [&](Driver& driver, const FunctionReference& reference) {
    *pFunc = handle_of(driver, reference.module, *reference.function);
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  if (pLib == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_kernel(kernel, [&](Driver&, Kernel&, const std::shared_ptr<LoadedLibrary>& library) {
    *pLib = library->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  if (name == nullptr || hfunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_kernel(hfunc, [&](Driver&, Kernel& kernel, const std::shared_ptr<LoadedLibrary>&) {
    *name = kernel.name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetParamInfo(CUkernel handle, std::size_t paramIndex, std::size_t* paramOffset,
                              std::size_t* paramSize) {
  if (handle == nullptr || paramOffset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_kernel(handle, [&](Driver& driver, Kernel& kernel, const std::shared_ptr<LoadedLibrary>& library) {
    if (driver.current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const Function* code = code_of(driver, library, kernel.name);
    return code == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : parameter(*code, paramIndex, paramOffset, paramSize);
  });
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel handle, CUdevice dev) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_kernel(handle, [&](Driver& driver, Kernel& kernel, const std::shared_ptr<LoadedLibrary>& library) {
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (driver.device(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const Function* code = code_of(driver, library, kernel.name);
    if (code == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    LoadedFunction as_set;
    describe(as_set, *code);
    const ring::MutexLock lock(library->mutex);
    for (const auto& [attribute, value] : library->settings[kernel.name]) set_attribute(as_set, attribute, value);
    return get_attribute(as_set, attrib, pi);
  });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel handle, CUdevice dev) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_kernel(handle, [&](Driver& driver, Kernel& kernel, const std::shared_ptr<LoadedLibrary>& library) {
    if (driver.device(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const Function* code = code_of(driver, library, kernel.name);
    if (code == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (const CUresult verdict = check_attribute(*code, attrib, val); verdict != CUDA_SUCCESS) return verdict;
    const ring::MutexLock lock(library->mutex);
    library->settings[kernel.name][attrib] = val;
    for (const auto& [context, part] : library->parts) set_attribute(*part->functions.at(kernel.name), attrib, val);
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice dev) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return with_kernel(handle, [&](Driver& driver, Kernel&, const std::shared_ptr<LoadedLibrary>&) {
    if (driver.device(dev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const bool known = config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
