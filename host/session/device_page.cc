#include "host/session/device_page.h"

#include <algorithm>
#include <cstring>

namespace host {
namespace {

void fill_attributes(const Driver& driver, CUdevice device, ring::DeviceInfo& info) {
  for (std::uint32_t a = 0; a < ring::max_attributes; ++a) {
    int value = 0;
    const CUresult result = driver.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(a), device);
    info.attribute[a] = value;
    info.attribute_result[a] = static_cast<std::uint16_t>(result);
  }
}

void fill_limits(const Driver& driver, ring::DeviceInfo& info) {
  for (std::uint32_t l = 0; l < ring::max_limits; ++l) {
    std::size_t value = 0;
    info.limit_result[l] = static_cast<std::uint16_t>(driver.cuCtxGetLimit(&value, static_cast<CUlimit>(l)));
    info.limit[l] = value;
  }
}

void fill_device(const Driver& driver, CUdevice device, ring::DeviceInfo& info) {
  driver.cuDeviceGetName(info.name, sizeof info.name - 1, device);
  CUuuid uuid{};
  driver.cuDeviceGetUuid(&uuid, device);
  std::memcpy(info.uuid, uuid.bytes, sizeof info.uuid);
  driver.cuDeviceGetUuid_v2(&uuid, device);
  std::memcpy(info.uuid_v2, uuid.bytes, sizeof info.uuid_v2);
  std::size_t total = 0;
  driver.cuDeviceTotalMem_v2(&total, device);
  info.total_memory = total;
  driver.cuDeviceGetPCIBusId(info.bus_id, sizeof info.bus_id - 1, device);
  driver.cuCtxGetStreamPriorityRange(&info.least_priority, &info.greatest_priority);
  fill_attributes(driver, device, info);
  fill_limits(driver, info);
}

}  // namespace

void fill_device_page(const Driver& driver, CUresult init_result, ring::DevicePage& page) {
  int version = 0;
  driver.cuDriverGetVersion(&version);
  page.driver_version = static_cast<std::uint32_t>(version);
  page.init_result = init_result;
  page.device_count = 0;
  if (init_result != CUDA_SUCCESS) return;
  int count = 0;
  driver.cuDeviceGetCount(&count);
  const std::uint32_t devices = std::min(static_cast<std::uint32_t>(std::max(count, 0)), ring::max_devices);
  page.device_count = devices;
  for (std::uint32_t i = 0; i < devices; ++i) {
    CUdevice device = 0;
    driver.cuDeviceGet(&device, static_cast<int>(i));
    fill_device(driver, device, page.device[i]);
  }
  page.simulated = devices != 0 && std::strstr(page.device[0].name, "simulated GPU") != nullptr;
}

}  // namespace host
