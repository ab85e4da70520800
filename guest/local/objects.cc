// What the guest knows of its own streams, functions, kernels and modules.
#include "guest/local/local.h"
#include "guest/local/refusal.h"
#include "guest/marshal/custom/custom.h"
#include "guest/marshal/marshal.h"
#include "guest/session/process.h"

namespace guest::local {
namespace {

// A stream's object and its device, or the error of naming it.
CUresult find_stream(CUstream stream, StreamRef& ref, std::uint32_t& device) {
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  ref = resolve_stream(stream, device);
  return ref.object == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult find_function(const void* handle, api::Handle kind, Object*& object) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  object = session()->objects.find(handle, kind);
  return object == nullptr || object->function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult param_info(const FunctionInfo& info, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  if (offset == nullptr || index >= info.params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = info.params[index].offset;
  if (bytes != nullptr) *bytes = info.params[index].size;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  StreamRef ref;
  std::uint32_t device = 0;
  if (const CUresult r = find_stream(stream, ref, device); r != CUDA_SUCCESS) return r;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // The driver clamps what was asked for into its range.
  const ring::DeviceInfo& info = device_info(device);
  *priority = std::max(std::min(ref.object->priority, info.least_priority), info.greatest_priority);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  StreamRef ref;
  std::uint32_t device = 0;
  if (const CUresult r = find_stream(stream, ref, device); r != CUDA_SUCCESS) return r;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = ref.object->flags;
  return CUDA_SUCCESS;
}

// Distinct streams have distinct numbers, which never come back: libraries key their workspaces by them.
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  StreamRef ref;
  std::uint32_t device = 0;
  if (const CUresult r = find_stream(stream, ref, device); r != CUDA_SUCCESS) return r;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t handle = ref.object->id.load(std::memory_order_relaxed);
  if (handle != 0)
    *id = handle;
  else
    *id = ref.null_stream ? 1 + device : reinterpret_cast<std::uint64_t>(ref.object);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* of) {
  StreamRef ref;
  std::uint32_t device = 0;
  if (const CUresult r = find_stream(stream, ref, device); r != CUDA_SUCCESS) return r;
  if (of == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *of = static_cast<CUdevice>(api::special_stream(to_slot(stream)) ? device : ref.object->device);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  CUdevice device = 0;
  if (const CUresult r = local::cuStreamGetDevice(stream, &device); r != CUDA_SUCCESS) return r;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = reinterpret_cast<CUcontext>(primary(static_cast<std::uint32_t>(device)).handle);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return local::cuStreamGetCtx(stream, context);
}

// No capture can be begun, so none is under way.
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  StreamRef ref;
  std::uint32_t device = 0;
  if (const CUresult r = find_stream(stream, ref, device); r != CUDA_SUCCESS) return r;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;  // the driver takes any number
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  Object* object = nullptr;
  if (const CUresult r = find_function(kernel, api::Handle::Kernel, object); r != CUDA_SUCCESS) return r;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *library = reinterpret_cast<CUlibrary>(object->owner);
  return CUDA_SUCCESS;
}

// Managed memory is not served: what a library has of it is not to be had.
CUresult cuLibraryGetManaged(CUdeviceptr* address, std::size_t* bytes, CUlibrary library, const char* name) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (session()->objects.find(library, api::Handle::Library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return refuse(refusal_of("cuLibraryGetManaged"), CUDA_ERROR_NOT_FOUND);
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  Object* object = nullptr;
  if (const CUresult r = find_function(kernel, api::Handle::Kernel, object); r != CUDA_SUCCESS) return r;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = object->function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  std::uint32_t device = 0;
  Object* object = nullptr;
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult r = enter(device); r != CUDA_SUCCESS) return r;
  if (const CUresult r = find_function(kernel, api::Handle::Kernel, object); r != CUDA_SUCCESS) return r;
  return param_info(*object->function, index, offset, bytes);
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  Object* object = nullptr;
  if (const CUresult r = find_function(function, api::Handle::Function, object); r != CUDA_SUCCESS) return r;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (api::Id::of(object->owner).kind == api::Handle::Module)
    return *module = reinterpret_cast<CUmodule>(object->owner), CUDA_SUCCESS;
  // A kernel's function is in its library's module.
  const Object* kernel = session()->objects.find(reinterpret_cast<const void*>(object->owner), api::Handle::Kernel);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return custom::cuLibraryGetModule(module, reinterpret_cast<CUlibrary>(kernel->owner));
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

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return custom::cuModuleLoadData(module, image); }

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream stream, void** params) {
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  const CUlaunchConfig config{gx, gy, gz, bx, by, bz, shared, stream, &cooperative, 1};
  return custom::cuLaunchKernelEx(&config, f, params, nullptr);
}

}  // namespace guest::local
