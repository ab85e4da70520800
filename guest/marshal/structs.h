// Translates those structs of CALL lines whose members have a different meaning on the host (ring/api/structs.h).
#pragma once

#include <cstddef>

#include "guest/process/context.h"
#include "guest/process/process.h"
#include "ring/api/structs.h"
#include "ring/wire/record.h"

namespace guest {

// Stands for an ordinal that belongs to no device.
inline constexpr int no_ordinal = -1;

// Translates the program's struct for the host. Refuses a location on the host or at one of the host's NUMA nodes: the
// memory would lie in the worker, where the guest's processors cannot reach it.
struct ToHost {
  CUresult refused = CUDA_SUCCESS;

  void location(CUmemLocation& l) {
    if (l.type == CU_MEM_LOCATION_TYPE_DEVICE) {
      const bool known = l.id >= 0 && static_cast<std::uint32_t>(l.id) < device_count();
      l.id = known ? static_cast<int>(primary(static_cast<std::uint32_t>(l.id)).number) : no_ordinal;
    } else if (l.type == CU_MEM_LOCATION_TYPE_HOST || l.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
               l.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
      refused = CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  void unused(void*& p) { p = nullptr; }
  void word(CUdeviceptr& at, std::size_t bytes) {
    const auto seen = at % bytes == 0 ? session()->memory.addresses.device_view(at, bytes) : std::nullopt;
    if (!seen) refused = CUDA_ERROR_INVALID_VALUE;
    at = seen.value_or(0);
  }
  void range(CUdeviceptr& at, std::uint64_t bytes) {
    const auto seen = session()->memory.addresses.device_view(at, bytes);
    if (!seen) refused = CUDA_ERROR_INVALID_VALUE;
    at = seen.value_or(0);
  }
  void unknown() { refused = CUDA_ERROR_INVALID_VALUE; }
  // The worker looks up the resource.
  void resource(CUdevResource& r) {
    if (r.type != CU_DEV_RESOURCE_TYPE_SM) refused = CUDA_ERROR_INVALID_RESOURCE_TYPE;
  }
};

// Translates the host's struct for the program.
struct FromHost {
  void location(CUmemLocation& l) {
    if (l.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
    const int number = l.id;
    l.id = no_ordinal;
    for (std::uint32_t i = 0; i < device_count(); ++i)
      if (primary(i).number == static_cast<std::uint32_t>(number)) l.id = static_cast<int>(i);
  }
  void unused(void*& p) { p = nullptr; }
  void range(CUdeviceptr&, std::uint64_t) {}
  void unknown() {}
  void resource(CUdevResource&) {}
};

// Finds the device where a struct of the program places memory.
struct FindDevice {
  std::uint32_t device;  // unchanged if the struct names none

  void location(CUmemLocation& l) {
    if (l.type == CU_MEM_LOCATION_TYPE_DEVICE) device = static_cast<std::uint32_t>(l.id);
  }
  void unused(void*&) {}
  void word(CUdeviceptr&, std::size_t) {}
  void range(CUdeviceptr&, std::uint64_t) {}
  void unknown() {}
  void resource(CUdevResource&) {}
};

template <class T>
std::uint32_t device_in(const T& named, std::uint32_t otherwise) {
  FindDevice find{otherwise};
  T copy = named;
  api::visit(copy, find);
  return find.device;
}

template <class T>
CUresult check_structs(const T* from, std::size_t count) {
  ToHost to_host;
  for (std::size_t i = 0; i < count; ++i) {
    T copy = from[i];
    api::visit(copy, to_host);
  }
  return to_host.refused;
}

template <class T>
void put_structs(ring::Writer& w, const T* from, std::size_t count) {
  std::byte* to = w.reserve(count * sizeof(T));
  if (to == nullptr) return;
  ToHost to_host;
  for (std::size_t i = 0; i < count; ++i) {
    T copy = from[i];
    api::visit(copy, to_host);
    std::memcpy(to + i * sizeof copy, &copy, sizeof copy);
  }
}

template <class T>
void translate_back(T* structs, std::size_t count) {
  FromHost from_host;
  for (std::size_t i = 0; i < count; ++i) api::visit(structs[i], from_host);
}

}  // namespace guest
