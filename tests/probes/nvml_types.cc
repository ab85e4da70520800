// Compares ring/nvml/types.h with NVIDIA's nvml.h, on a machine that has nvml.h. The comparison succeeds if the file
// compiles:
//   g++ -std=c++20 -fsyntax-only -I. -I/usr/local/cuda/include tests/probes/nvml_types.cc
#if __has_include(<nvml.h>)
namespace nvidia {
#include <nvml.h>
}
// Macros of NVIDIA's header are evaluated before our own header defines the same names.
constexpr unsigned memory_v2 = static_cast<unsigned>(sizeof(nvidia::nvmlMemory_v2_t)) | 2U << 24;

#include "ring/nvml/types.h"

#define SAME_SIZE(type) static_assert(sizeof(type) == sizeof(nvidia::type), #type)
#define SAME_PLACE(type, member) static_assert(offsetof(type, member) == offsetof(nvidia::type, member), #type)
#define SAME_VALUE(name) static_assert(static_cast<int>(::name) == static_cast<int>(nvidia::name), #name)

SAME_SIZE(nvmlMemory_t);
SAME_SIZE(nvmlMemory_v2_t);
SAME_PLACE(nvmlMemory_v2_t, reserved);
SAME_SIZE(nvmlPciInfo_t);
SAME_PLACE(nvmlPciInfo_t, pciSubSystemId);
SAME_PLACE(nvmlPciInfo_t, busId);
SAME_SIZE(nvmlUtilization_t);
SAME_SIZE(nvmlProcessInfo_v1_t);
SAME_SIZE(nvmlProcessInfo_t);
SAME_PLACE(nvmlProcessInfo_t, usedGpuMemory);
SAME_SIZE(nvmlProcessUtilizationSample_t);
SAME_PLACE(nvmlProcessUtilizationSample_t, smUtil);
SAME_SIZE(nvmlTemperature_t);
SAME_SIZE(nvmlFieldValue_t);
SAME_PLACE(nvmlFieldValue_t, latencyUsec);
SAME_PLACE(nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(nvmlFieldValue_t, value);
SAME_VALUE(NVML_SUCCESS);
SAME_VALUE(NVML_ERROR_UNINITIALIZED);
SAME_VALUE(NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(NVML_ERROR_NO_PERMISSION);
SAME_VALUE(NVML_ERROR_NOT_FOUND);
SAME_VALUE(NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(NVML_ERROR_TIMEOUT);
SAME_VALUE(NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_VALUE(NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_VALUE(NVML_ERROR_UNKNOWN);
static_assert(nvml_version<nvmlMemory_v2_t>(2) == memory_v2);
static_assert(nvml_value_unsigned == nvidia::NVML_VALUE_TYPE_UNSIGNED_INT);
#endif
