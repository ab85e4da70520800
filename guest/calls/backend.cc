#include "guest/calls/backend.h"

#include <mutex>

#include "guest/base/log.h"
#include "guest/calls/calls.h"
#include "guest/calls/stream_number.h"
#include "guest/calls/stub.h"
#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "ring/abi/backend.h"

namespace guest::calls {
namespace {

CUresult device_identity(int ordinal, cuabi::DeviceIdentity* out) {
  const auto attribute = [&](CUdevice_attribute a) {
    int value = 0;
    calls::cuDeviceGetAttribute(&value, a, ordinal);
    return value;
  };
  out->pci_domain = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  out->pci_bus = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  out->pci_device = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  return calls::cuDeviceGetUuid(&out->uuid, ordinal);
}

CUresult primary_context(CUcontext* out, CUdevice device) {
  if (device < 0 || static_cast<std::uint32_t>(device) >= device_count()) return CUDA_ERROR_INVALID_DEVICE;
  *out = primary(static_cast<std::uint32_t>(device)).handle;
  return CUDA_SUCCESS;
}

CUcontext current_handle() {
  const Context* context = guest::current_context();
  return context == nullptr ? nullptr : context->handle;
}

CUresult context_id(CUcontext context, std::uint64_t* id) {
  unsigned long long value = 0;
  const CUresult result = calls::cuCtxGetId(context, &value);
  *id = value;
  return result;
}

std::size_t module_functions(CUmodule module, CUfunction* out, std::size_t room) {
  unsigned count = 0;
  if (Stub<api::id_of::cuModuleGetFunctionCount>::call(&count, module) != CUDA_SUCCESS) return 0;
  if (room != 0 && count != 0 &&
      calls::cuModuleEnumerateFunctions(out, static_cast<unsigned>(room), module) != CUDA_SUCCESS)
    return 0;
  return count;
}

}  // namespace

void install_backend() {
  static const cuabi::Backend backend{
      .ready = ready,
      .driver_version = [] { return CUDA_VERSION; },
      .device_count = [] { return static_cast<int>(device_count()); },
      .device_identity = device_identity,
      .primary_context = primary_context,
      .current_context = current_handle,
      .context_exists = [](CUcontext context) { return find_context(context) != nullptr; },
      .context_id = context_id,
      .stream_id = [](CUcontext, CUstream stream, std::uint64_t* id) { return stream_number(stream, id); },
      .load_module = [](CUmodule* out, const void* image) { return calls::cuModuleLoadData(out, image); },
      .module_functions = module_functions,
      .log = [](const char* line) { log(Level::Debug, "%s", line); },
  };
  static std::once_flag once;
  std::call_once(once, [] { cuabi::install(&backend); });
}

}  // namespace guest::calls
