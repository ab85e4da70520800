// The VM's GPUs, and the identities by which programs name a GPU: handles, indices, UUIDs, PCI addresses, names.
#include <cstdio>
#include <cstring>

#include "guest/nvml/library.h"

namespace guest::nvml {
namespace {

// Has the layout of nvmlPciInfoExt_t, version 1.
struct ExtendedPciInfo {
  unsigned version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
  char busId[32];
};
static_assert(sizeof(ExtendedPciInfo) == 64);

struct PciAddress {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  bool operator==(const PciAddress&) const = default;
};

// Parses an address with a domain of any length, or without one. The text may come from an untrusted program.
std::optional<PciAddress> address_in(const char* text) {
  PciAddress a;
  int end = 0;
  const auto is_all = [&](int fields, int wanted) { return fields == wanted && text[end] == '\0'; };
  if (is_all(std::sscanf(text, "%8x:%2x:%2x.%1x%n", &a.domain, &a.bus, &a.device, &a.function, &end), 4)) return a;
  a = {}, end = 0;
  if (is_all(std::sscanf(text, "%2x:%2x.%1x%n", &a.bus, &a.device, &a.function, &end), 3)) return a;
  return std::nullopt;
}

// Finds the first GPU for which `is` returns true.
template <class Is>
nvmlReturn_t find(const Snapshot& snapshot, nvmlDevice_t* to, Is is) {
  for (std::uint32_t i = 0; i < snapshot.vm.gpu_count; ++i)
    if (is(snapshot.gpu[i])) {
      *to = handle_of(i);
      return NVML_SUCCESS;
    }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t count(unsigned* to) {
  return library().of_vm(to != nullptr, [&](const Snapshot& snapshot) {
    *to = snapshot.vm.gpu_count;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t by_index(unsigned index, nvmlDevice_t* to) {
  return library().of_vm(to != nullptr, [&](const Snapshot& snapshot) -> nvmlReturn_t {
    if (index >= snapshot.vm.gpu_count) return NVML_ERROR_INVALID_ARGUMENT;
    *to = handle_of(index);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t by_address(const char* text, nvmlDevice_t* to) {
  const auto wanted = text != nullptr ? address_in(text) : std::nullopt;
  return library().of_vm(wanted && to != nullptr, [&](const Snapshot& snapshot) {
    return find(snapshot, to, [&](const ring::VmGpu& gpu) { return address_in(gpu.bus_id) == wanted; });
  });
}

// Returns a text member of the GPU's ring::VmGpu.
template <std::size_t n>
nvmlReturn_t text_of(nvmlDevice_t device, About about, char (ring::VmGpu::*text)[n], char* to, unsigned room) {
  return library().of_gpu(device, about, to != nullptr,
                          [&](const Gpu& gpu) { return give_text(gpu.reported().*text, to, room); });
}

nvmlReturn_t number_of(nvmlDevice_t device, About about, unsigned* to, std::optional<unsigned> number = {}) {
  return library().of_gpu(device, about, to != nullptr, [&](const Gpu& gpu) {
    *to = number.value_or(gpu.index);
    return NVML_SUCCESS;
  });
}

// Fills the members that all versions of PCI information share.
template <class Info>
bool fill(const Gpu& gpu, Info& to) {
  const auto address = address_in(gpu.reported().bus_id);
  if (!address) return false;
  to.domain = address->domain, to.bus = address->bus, to.device = address->device;
  to.pciDeviceId = gpu.knows(ring::Fact::pci_id).value_or(0);
  to.pciSubSystemId = gpu.knows(ring::Fact::pci_subsystem).value_or(0);
  std::snprintf(to.busId, sizeof to.busId, "%08X:%02X:%02X.%X", address->domain, address->bus, address->device,
                address->function);
  return true;
}

// Fills in PCI information and writes the first `bytes` bytes of the struct.
nvmlReturn_t pci_info(nvmlDevice_t device, nvmlPciInfo_t* to, std::size_t bytes) {
  return library().of_gpu(device, About::Names, to != nullptr, [&](const Gpu& gpu) -> nvmlReturn_t {
    nvmlPciInfo_t info{};
    if (!fill(gpu, info)) return NVML_ERROR_NOT_SUPPORTED;
    std::snprintf(info.busIdLegacy, sizeof info.busIdLegacy, "%04X:%02X:%02X.0", info.domain & 0xffff, info.bus & 0xff,
                  info.device & 0xff);
    std::memcpy(to, &info, bytes);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t pci_info_ext(nvmlDevice_t device, ExtendedPciInfo* to) {
  return library().of_gpu(device, About::Names, to != nullptr, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (to->version != nvml_version<ExtendedPciInfo>(1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    ExtendedPciInfo info{};
    if (!fill(gpu, info)) return NVML_ERROR_NOT_SUPPORTED;
    info.version = to->version;
    info.baseClass = 3, info.subClass = 2;  // a 3D controller without a display
    *to = info;
    return NVML_SUCCESS;
  });
}

constexpr unsigned vgpu = 2;  // NVML_GPU_VIRTUALIZATION_MODE_VGPU: the GPU is in a VM, and shared

}  // namespace

NVML_CALL nvmlDeviceGetCount(unsigned* to) { return count(to); }
NVML_CALL nvmlDeviceGetCount_v2(unsigned* to) { return count(to); }
NVML_CALL nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* to) { return by_index(index, to); }
NVML_CALL nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* to) { return by_index(index, to); }
NVML_CALL nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* to) { return by_address(bus_id, to); }
NVML_CALL nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* to) { return by_address(bus_id, to); }
NVML_CALL nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* to) {
  return library().of_vm(uuid != nullptr && to != nullptr, [&](const Snapshot& snapshot) {
    return find(snapshot, to,
                [&](const ring::VmGpu& gpu) { return *uuid != '\0' && std::strcmp(gpu.uuid, uuid) == 0; });
  });
}

NVML_CALL nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* to) { return number_of(device, About::Names, to); }
// Returns the N of /dev/nvidiaN. A guest has no such device node, so the result is the index.
NVML_CALL nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* to) { return number_of(device, About::State, to); }
NVML_CALL nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned* to) {
  return number_of(device, About::State, to, 0);
}
NVML_CALL nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned* to) {
  return number_of(device, About::State, to, 0);
}
NVML_CALL nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* to) {
  return number_of(device, About::State, to, 0);
}
NVML_CALL nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned* to) {
  return number_of(device, About::State, to, vgpu);
}

NVML_CALL nvmlDeviceGetUUID(nvmlDevice_t device, char* to, unsigned room) {
  return text_of(device, About::Names, &ring::VmGpu::uuid, to, room);
}
NVML_CALL nvmlDeviceGetName(nvmlDevice_t device, char* to, unsigned room) {
  return text_of(device, About::State, &ring::VmGpu::name, to, room);
}
NVML_CALL nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* to, unsigned room) {
  return text_of(device, About::State, &ring::VmGpu::vbios, to, room);
}

// Older programs have shorter structs: version 2 has no busId, and version 1 has no pciSubSystemId either.
NVML_CALL nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* to) {
  return pci_info(device, to, offsetof(nvmlPciInfo_t, pciSubSystemId));
}
NVML_CALL nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* to) {
  return pci_info(device, to, offsetof(nvmlPciInfo_t, busId));
}
NVML_CALL nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* to) {
  return pci_info(device, to, sizeof(nvmlPciInfo_t));
}
NVML_CALL nvmlDeviceGetPciInfoExt(nvmlDevice_t device, ExtendedPciInfo* to) { return pci_info_ext(device, to); }

}  // namespace guest::nvml
