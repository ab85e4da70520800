// Initialisation, shutdown, error texts, and the versions of the host's driver.
#include <cstdio>

#include "guest/nvml/library.h"

namespace guest::nvml {
namespace {

nvmlReturn_t cuda_version(int* to) {
  return library().of_vm(to != nullptr, [&](const Snapshot& snapshot) -> nvmlReturn_t {
    if (snapshot.vm.cuda_version == 0) return NVML_ERROR_UNKNOWN;
    *to = static_cast<int>(snapshot.vm.cuda_version);
    return NVML_SUCCESS;
  });
}

}  // namespace

// A program on the host recognises this library by this symbol, so that it does not mistake this library for NVIDIA's
// (host/broker/gpu/nvml.cc).
NVML_EXPORT const char ivgpu_guest_library[] = "libnvidia-ml.so.1";

NVML_CALL nvmlInit() { return library().start(); }
NVML_CALL nvmlInit_v2() { return library().start(); }
// Ignores the flags. One flag allows a machine without GPUs, which is never an error here; the other says how the
// driver attaches to GPUs.
NVML_CALL nvmlInitWithFlags(unsigned) { return library().start(); }
NVML_CALL nvmlShutdown() { return library().end(); }

NVML_EXPORT const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case 0: return "Success";
    case 1: return "Uninitialized";
    case 2: return "Invalid Argument";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 5: return "Already Initialized";
    case 6: return "Not Found";
    case 7: return "Insufficient Size";
    case 8: return "Insufficient External Power";
    case 9: return "Driver Not Loaded";
    case 10: return "Timeout";
    case 11: return "Interrupt Request Issue";
    case 12: return "NVML Shared Library Not Found";
    case 13: return "Function Not Found";
    case 14: return "Corrupted infoROM";
    case 15: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 17: return "GPU access blocked by the operating system";
    case 18: return "Driver/library version mismatch";
    case 19: return "In use by another client";
    case 20: return "Insufficient Memory";
    case 21: return "No data";
    case 25: return "Argument version mismatch";
    case 26: return "Requested functionality has been deprecated";
    case 27: return "System is not in ready state";
    default: return "Unknown Error";
  }
}

NVML_CALL nvmlSystemGetDriverVersion(char* to, unsigned room) {
  return library().of_vm(to != nullptr, [&](const Snapshot& snapshot) -> nvmlReturn_t {
    const nvmlReturn_t given = give_text(snapshot.vm.driver, to, room);
    // NVML does not define NOT_SUPPORTED for this function
    return given == NVML_ERROR_NOT_SUPPORTED ? NVML_ERROR_UNKNOWN : given;
  });
}

// The version's text is CUDA's major version, then the driver's release.
NVML_CALL nvmlSystemGetNVMLVersion(char* to, unsigned room) {
  return library().of_vm_at_any_time(to != nullptr, [&](const Snapshot& snapshot) -> nvmlReturn_t {
    if (snapshot.vm.cuda_version == 0 || snapshot.vm.driver[0] == '\0') return NVML_ERROR_UNKNOWN;
    char version[sizeof snapshot.vm.driver + 16];
    std::snprintf(version, sizeof version, "%u.%s", snapshot.vm.cuda_version / 1000, snapshot.vm.driver);
    return give_text(version, to, room);
  });
}

NVML_CALL nvmlSystemGetCudaDriverVersion(int* to) { return cuda_version(to); }
NVML_CALL nvmlSystemGetCudaDriverVersion_v2(int* to) { return cuda_version(to); }

}  // namespace guest::nvml
