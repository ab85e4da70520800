// The simulated device: its properties and limits.
#pragma once

#include "host/simgpu/api/objects.h"

#include <optional>

#include "host/simgpu/image/device_names.h"
#include "host/simgpu/image/image.h"

namespace simgpu {

inline constexpr int device_multiprocessors = 16;
inline constexpr int device_multiprocessor_threads = 1536;
inline constexpr int device_multiprocessor_blocks = 24;
inline constexpr int device_multiprocessor_shared = 102400;
inline constexpr int device_registers = 65536;
inline constexpr int device_shared_default = 49152;
inline constexpr int device_shared_optin = 101376;
inline constexpr int device_shared_reserved = 1024;
inline constexpr int device_warp = 32;
inline constexpr std::uint32_t device_cluster_portable = 8;  // blocks per cluster, as on all GPUs that have clusters
// blocks per cluster, for kernels that allow nonportable sizes
inline constexpr std::uint32_t device_cluster_most = 16;
inline constexpr int device_memory_domains = 4;
inline constexpr int device_window = 1 << 26;  // largest CUaccessPolicyWindow in bytes

std::optional<int> device_attribute(const Device& device, CUdevice_attribute attribute);

// Every simulated GPU has PCI domain 0, device 0, and a bus of its own.
inline int pci_bus(const Device& device) { return pci_bus_of(device.ordinal); }

}  // namespace simgpu
