// Initialisation, version, error texts, entry points by name, export tables, profiler.
#include "host/simgpu/api/cuda_api.h"

#include <cstdlib>

#include "host/simgpu/api/context/context.h"
#include "host/simgpu/api/device/device.h"
#include "host/simgpu/api/device/settings.h"
#include "host/simgpu/api/driver.h"
#include "host/simgpu/api/log.h"
#include "host/simgpu/api/module/library.h"
#include "host/simgpu/api/module/symbols.h"
#include "host/simgpu/api/stream/streams.h"
#include "ring/abi/backend.h"
#include "ring/abi/error_text.h"
#include "ring/abi/export_tables.h"

using namespace simgpu;

namespace {

CUresult identity_of(int ordinal, cuabi::DeviceIdentity* out) {
  return with_driver([&](Driver& driver) {
    const Device* device = driver.device(ordinal);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *out = {.uuid = device_uuid(device->ordinal), .pci_domain = 0, .pci_bus = pci_bus(*device), .pci_device = 0};
    return CUDA_SUCCESS;
  });
}

CUresult primary_of(CUcontext* out, CUdevice number) {
  return with_driver([&](Driver& driver) {
    const Device* device = driver.device(number);
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *out = device->primary->handle;
    return CUDA_SUCCESS;
  });
}

CUcontext current_handle() {
  Driver* driver = Driver::get();
  const Context* context = driver == nullptr ? nullptr : driver->current();
  return context == nullptr ? nullptr : context->handle;
}

bool holds_storage(CUcontext handle) {
  Driver* driver = Driver::get();
  const std::shared_ptr<Context> context = driver == nullptr ? nullptr : driver->contexts.find(handle);
  return context != nullptr && (context->is_primary || context->active.load(std::memory_order_acquire));
}

CUresult id_of_context(CUcontext context, std::uint64_t* id) {
  unsigned long long value = 0;
  const CUresult result = cuCtxGetId(context, &value);
  if (result == CUDA_SUCCESS) *id = value;
  return result;
}

CUresult id_of_stream(CUcontext handle, CUstream stream_handle, std::uint64_t* id) {
  return with_driver([&](Driver& driver) {
    CUresult error;
    const std::shared_ptr<Context> context = context_named(driver, handle, &error);
    if (context == nullptr) return error;
    const std::shared_ptr<Stream> stream = stream_of(driver, *context, stream_handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *id = stream->id;
    return CUDA_SUCCESS;
  });
}

std::size_t functions_of(CUmodule module, CUfunction* out, std::size_t room) {
  unsigned count = 0;
  if (cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS) return 0;
  if (room != 0 && count != 0) cuModuleEnumerateFunctions(out, static_cast<unsigned>(room), module);
  return count;
}

constexpr cuabi::Backend backend{
    .ready =
        [] {
          CUresult why = CUDA_SUCCESS;
          Driver::get(&why);
          return why;
        },
    .driver_version = [] { return driver_version; },
    .device_count =
        [] {
          Driver* driver = Driver::get();
          return driver == nullptr ? 0 : static_cast<int>(driver->devices.size());
        },
    .device_identity = identity_of,
    .primary_context = primary_of,
    .current_context = current_handle,
    .context_exists = holds_storage,
    .context_id = id_of_context,
    .stream_id = id_of_stream,
    .load_module = [](CUmodule* out, const void* image) { return cuModuleLoadData(out, image); },
    .module_functions = functions_of,
    .log =
        [](const char* line) {
          if (std::getenv("IVGPU_LOG") != nullptr) report(line);
        }};

CUresult text_of(const char* text, const char** out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = text;
  return text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace

CUresult cuInit(unsigned Flags) {
  if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Driver::initialise();
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = driver_version;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** pStr) { return text_of(cuabi::error_name(error), pStr); }
CUresult cuGetErrorString(CUresult error, const char** pStr) { return text_of(cuabi::error_string(error), pStr); }

CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  cuabi::install(&backend);
  return cuabi::export_table(ppExportTable, pExportTableId);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  return cuabi::proc_address(entry_points(), driver_version, symbol, pfn, cudaVersion, flags, symbolStatus);
}

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, nullptr);
}

// Every driver since CUDA 12 refuses this call, as cudaProfiler.h documents.
CUresult cuProfilerInitialize(const char*, const char*, CUoutput_mode) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuProfilerStart() {
  return with_context([](Driver&, Context&) { return CUDA_SUCCESS; });
}
CUresult cuProfilerStop() {
  return with_context([](Driver&, Context&) { return CUDA_SUCCESS; });
}
