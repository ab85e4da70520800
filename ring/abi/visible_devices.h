// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER as the driver reads them in cuInit. The guest library and the simulated
// GPU both use this file. All functions are pure.
//
// Source: a machine with two H200 GPUs, driver 580.159.04; tests/unit/abi/visible_devices_test.cc has this driver's
// results.
//
// ```cpp
// std::size_t count_visible(const char* list, std::span<const cuabi::Uuid> all) {
//   std::vector<std::uint32_t> visible;  // indices into `all`
//   return cuabi::visible_devices(list, all, visible) == CUDA_SUCCESS ? visible.size() : 0;
// }
// ```
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace cuabi {

using Uuid = std::array<std::uint8_t, 16>;

// Finds the devices that a program sees, in the program's order. The results are indices into `devices`, which has the
// UUIDs of all devices in the machine's order. `list`: the variable's value, or null. CUDA_ERROR_NO_DEVICE: no device
// is left. CUDA_ERROR_INVALID_DEVICE: the list names a device twice.
CUresult visible_devices(const char* list, std::span<const Uuid> devices, std::vector<std::uint32_t>& visible);

// Returns whether this list could name a device of any machine. If not, cuInit returns CUDA_ERROR_NO_DEVICE.
bool may_name_a_device(const char* list);

// The values of CUDA_DEVICE_ORDER. For Invalid, cuInit returns CUDA_ERROR_INVALID_DEVICE.
enum class DeviceOrder : std::uint8_t { FastestFirst, PciBusId, Invalid };
DeviceOrder device_order(const char* value);

}  // namespace cuabi
