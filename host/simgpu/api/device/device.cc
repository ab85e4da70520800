// Calls about devices.
#include "host/simgpu/api/device/device.h"

#include <atomic>
#include <cstdio>
#include <cstring>

#include "host/simgpu/api/device/settings.h"
#include "host/simgpu/api/driver.h"
#include "ring/abi/device_properties.h"
#include "ring/abi/old_sizes.h"

using namespace simgpu;

namespace {

// Calls `call` with the device of this number.
template <class F>
CUresult with_device(CUdevice number, F&& call) {
  return with_driver([&](Driver& driver) {
    Device* device = driver.device(number);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : call(*device);
  });
}

// Copies as much of the text as fits, and always terminates the copy with a zero byte.
CUresult copy_text(const char* text, char* out, int room) {
  if (out == nullptr || room <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(out, static_cast<std::size_t>(room), "%s", text);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return with_driver([&](Driver& driver) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (driver.device(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return with_driver([&](Driver& driver) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver.devices.size());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int len, CUdevice dev) {
  return with_device(dev, [&](Device&) { return copy_text(device_name, name, len); });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  return with_device(dev, [&](Device& device) {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *uuid = device_uuid(device.ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) { return cuDeviceGetUuid_v2(uuid, dev); }

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice dev) {
  return with_device(dev, [&](Device& device) {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device.space.capacity();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem(unsigned* bytes, CUdevice dev) {
  std::size_t all = 0;
  const CUresult result = cuDeviceTotalMem_v2(bytes == nullptr ? nullptr : &all, dev);
  if (result == CUDA_SUCCESS) *bytes = cuabi::size_in_32_bits(all);
  return result;
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_driver([&](Driver& driver) {
    const Device* device = driver.device(dev);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::optional<int> value = device_attribute(*device, attrib);
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    *pi = *value;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  return with_device(dev, [&](Device&) {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = device_sm / 10;
    *minor = device_sm % 10;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
  return with_device(dev, [&](Device& device) {
    if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto get = [&](CUdevice_attribute a) { return device_attribute(device, a).value_or(0); };
    *prop = cuabi::device_properties(get);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return with_device(dev, [&](Device& device) {
    char text[16];
    if (len < static_cast<int>(sizeof "0000:00:00.0")) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(text, sizeof text, "0000:%02X:00.0", pci_bus(device));
    return copy_text(text, pciBusId, len);
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return with_driver([&](Driver& driver) {
    if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    const bool full = std::sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &slot, &function) >= 3;
    if (!full) {
      domain = function = 0;
      if (std::sscanf(pciBusId, "%x:%x.%x", &bus, &slot, &function) < 2) return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t i = 0; i < driver.devices.size(); ++i) {
      if (domain != 0 || slot != 0 || function != 0 || bus != static_cast<unsigned>(pci_bus(*driver.devices[i])))
        continue;
      *dev = static_cast<CUdevice>(i);
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  return with_driver([&](Driver& driver) {
    if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (driver.device(dev) == nullptr || driver.device(peerDev) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *canAccessPeer = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice) {
  return with_driver([&](Driver& driver) {
    if (value == nullptr || attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK) return CUDA_ERROR_INVALID_VALUE;
    if (attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED) return CUDA_ERROR_INVALID_VALUE;
    if (driver.device(srcDevice) == nullptr || driver.device(dstDevice) == nullptr || srcDevice == dstDevice)
      return CUDA_ERROR_INVALID_DEVICE;
    *value = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType type, CUdevice dev) {
  return with_device(dev, [&](Device&) {
    if (pi == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
    *pi = 0;
    return CUDA_SUCCESS;
  });
}

// The simulated GPU never sends notifications.
CUresult cuDeviceRegisterAsyncNotification(CUdevice dev, CUasyncCallback callbackFunc, void*,
                                           CUasyncCallbackHandle* callback) {
  return with_device(dev, [&](Device&) {
    static std::atomic<std::uint64_t> last{0};
    if (callbackFunc == nullptr || callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *callback = reinterpret_cast<CUasyncCallbackHandle>(++last);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice dev, CUasyncCallbackHandle callback) {
  return with_device(dev, [&](Device&) { return callback == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; });
}
