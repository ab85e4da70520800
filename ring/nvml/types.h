// The types of NVIDIA's management library (NVML, libnvidia-ml.so.1) under their public names.
//
// This file declares only the types that this project needs to call NVML (host/broker/gpu/nvml.h) or to implement it
// (guest/nvml/). The project builds without nvml.h; tests/probes/nvml_types.cc compares the types with nvml.h where
// that header exists. The members' comments give their units. Source: NVIDIA's NVML API reference, release 580.
//
// ```cpp
// nvmlReturn_t check(const nvmlMemory_v2_t* to) {
//   if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
//   return to->version == nvml_version<nvmlMemory_v2_t>(2) ? NVML_SUCCESS : NVML_ERROR_FUNCTION_NOT_FOUND;
// }
// ```
#pragma once

#include <cstddef>

extern "C" {

using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlReturn_t = int;

enum : nvmlReturn_t {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_UNKNOWN = 999,
};

// Stands for an unknown number of bytes, or for no instance.
inline constexpr unsigned long long nvml_value_not_available = ~0ULL;
inline constexpr unsigned nvml_no_instance = ~0U;

struct nvmlMemory_t {
  unsigned long long total, free, used;  // bytes; `used` includes reserved memory
};
struct nvmlMemory_v2_t {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
struct nvmlUtilization_t {
  unsigned gpu, memory;  // percent
};
struct nvmlProcessInfo_v1_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
};
struct nvmlProcessInfo_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
struct nvmlProcessUtilizationSample_t {
  unsigned pid;
  unsigned long long timeStamp;  // microseconds since 1970
  unsigned smUtil, memUtil, encUtil, decUtil;
};
struct nvmlTemperature_t {
  unsigned version, sensorType;
  int temperature;  // degrees Celsius
};
union nvmlValue_t {
  double dVal;
  int siVal;
  unsigned uiVal;
  unsigned long long ullVal;
};
struct nvmlFieldValue_t {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;  // microseconds since 1970, microseconds
  int valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};
}

inline constexpr int nvml_value_unsigned = 1;  // nvmlFieldValue_t::valueType

// The version number of a struct type: the type's size, and its revision.
template <class T>
constexpr unsigned nvml_version(unsigned form) {
  return static_cast<unsigned>(sizeof(T)) | form << 24;
}

static_assert(sizeof(nvmlMemory_t) == 24 && sizeof(nvmlMemory_v2_t) == 40 && sizeof(nvmlPciInfo_t) == 68);
static_assert(sizeof(nvmlProcessInfo_v1_t) == 16 && sizeof(nvmlProcessInfo_t) == 24);
static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32 && sizeof(nvmlTemperature_t) == 12);
static_assert(sizeof(nvmlFieldValue_t) == 40 && offsetof(nvmlFieldValue_t, value) == 32);
