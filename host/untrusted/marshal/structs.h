// Structs of CALL lines with members that need conversion (ring/api/structs.h).
#pragma once

#include "host/untrusted/marshal/resources.h"
#include "ring/api/structs.h"
#include "ring/layout/layout.h"

namespace host {

// Converts the guest's values for the driver.
struct ToDriver {
  Session& session;
  bool broken = false;
  CUresult refused = CUDA_SUCCESS;

  // Translates an ordinal. An unknown ordinal becomes -1, so that the driver returns its own error. Host memory is
  // refused, since it would be memory of this process.
  void location(CUmemLocation& l) {
    if (l.type == CU_MEM_LOCATION_TYPE_DEVICE) {
      CUdevice device = -1;
      if (l.id < 0 || static_cast<unsigned>(l.id) >= ring::max_devices ||
          session.driver.cuDeviceGet(&device, l.id) != CUDA_SUCCESS)
        device = -1;
      l.id = device;
    } else if (l.type == CU_MEM_LOCATION_TYPE_HOST || l.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
               l.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
      refused = CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  void unused(void*& p) {
    if (p != nullptr) broken = true;
  }
  void word(CUdeviceptr& at, std::size_t bytes) {
    if (at % bytes != 0 || !session.memory.addresses.contains(at, bytes)) refused = CUDA_ERROR_INVALID_VALUE;
  }
  void range(CUdeviceptr& at, std::uint64_t bytes) {
    if (!session.memory.addresses.contains(at, bytes)) refused = CUDA_ERROR_INVALID_VALUE;
  }
  void unknown() { refused = CUDA_ERROR_INVALID_VALUE; }
  void resource(CUdevResource& r) {
    if (refused == CUDA_SUCCESS) refused = to_driver(session, r);
  }
};

// Converts the driver's values for the guest.
struct ToGuest {
  Session& session;
  bool broken = false;
  CUresult refused = CUDA_SUCCESS;

  void location(CUmemLocation& l) {
    if (l.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
    const CUdevice wanted = l.id;
    l.id = -1;
    for (int i = 0; i < static_cast<int>(ring::max_devices); ++i) {
      CUdevice device = -1;
      if (session.driver.cuDeviceGet(&device, i) == CUDA_SUCCESS && device == wanted) l.id = i;
    }
  }
  void unused(void*& p) { p = nullptr; }
  void range(CUdeviceptr&, std::uint64_t) {}
  void unknown() {}
  void resource(CUdevResource& r) {
    if (refused == CUDA_SUCCESS) refused = to_guest(session, r);
  }
};

}  // namespace host
