// A libnvidia-ml.so.1 for tests of ivgpu-nvml. The test chooses the GPUs with environment variables.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ring/nvml/types.h"

namespace {

char plain, shy, many, managed;

constexpr unsigned nobody = 5'000'000;  // above the kernel's highest pid

}  // namespace

extern "C" {
#define EXPORTED __attribute__((visibility("default")))

EXPORTED int nvmlInit_v2() { return 0; }
EXPORTED int nvmlShutdown() { return 0; }
EXPORTED const char* nvmlErrorString(int) { return "Not Found"; }
EXPORTED int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  const bool simulated = std::strncmp(uuid, "GPU-69766770-", 13) == 0;  // for a developer who probes a simulated GPU
  if (simulated || std::strcmp(uuid, "GPU-1") == 0) return *device = &plain, 0;
  if (std::strcmp(uuid, "GPU-shy") == 0) return *device = &shy, 0;
  if (std::strcmp(uuid, "GPU-many") == 0) return *device = &many, 0;
  if (std::strcmp(uuid, "GPU-managed") == 0) return *device = &managed, 0;
  return 6;
}
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) { return *device = &plain, 0; }
EXPORTED int nvmlDeviceGetMemoryInfo_v2(void*, nvmlMemory_v2_t* memory) {
  if (memory->version != nvml_version<nvmlMemory_v2_t>(2)) return 13;
  memory->total = 1000, memory->reserved = 100, memory->free = 600, memory->used = 300;
  return 0;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, nvmlProcessInfo_t* processes) {
  if (device == &many) {
    const bool fits = *count >= 1000;
    *count = 1000;
    for (unsigned i = 0; fits && i < 1000; ++i) processes[i] = {nobody + i, 1, ~0U, ~0U};
    return fits ? 0 : 7;
  }
  // The process of FAKE_NVML_PROCESS appears twice in the list, as a process does that uses two instances of one GPU.
  if (device == &managed) {
    const char* process = std::getenv("FAKE_NVML_PROCESS");
    const auto pid = static_cast<unsigned>(process != nullptr ? std::atoi(process) : 0);
    for (int i = 0; i < 2; ++i) processes[i] = {pid, 1000, ~0U, ~0U};
    return *count = 2, 0;
  }
  processes[0] = {nobody + 11, 22, ~0U, ~0U};
  processes[1] = {nobody + 33, device == &shy ? ~0ULL : 44, ~0U, ~0U};
  return *count = 2, 0;
}
// Answers questions about a GPU. For `shy` the function returns an error, and the caller must ignore its output
// buffers.
EXPORTED int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  return device == &shy ? 3 : (std::snprintf(name, length, "%s", "Fake GPU"), 0);
}
EXPORTED int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return std::snprintf(version, length, "%s", "580.1"), 0;
}
EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int* version) { return *version = 13000, 0; }
EXPORTED int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 70'000;
  return device == &shy ? 3 : 0;
}
EXPORTED int nvmlDeviceGetClockInfo(void* device, unsigned kind, unsigned* megahertz) {
  *megahertz = 1000 + kind;
  return device == &shy || kind > 2 ? 3 : 0;
}
EXPORTED int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *current = 0, *pending = 1;
  return device == &shy ? 3 : 0;
}
EXPORTED int nvmlDeviceGetTotalEccErrors(void* device, unsigned kind, unsigned counter, unsigned long long* number) {
  *number = kind == 1 && counter == 1 ? 1ULL << 40 : 7;
  return device == &shy ? 3 : 0;
}
EXPORTED int nvmlDeviceGetPciInfo_v3(void* device, nvmlPciInfo_t* pci) {
  std::snprintf(pci->busId, sizeof pci->busId, "%s", "00000000:01:00.0");
  pci->pciDeviceId = 0x233510de, pci->pciSubSystemId = 5;
  return device == &shy ? 3 : 0;
}
EXPORTED int nvmlDeviceGetFieldValues(void* device, int count, nvmlFieldValue_t* values) {
  for (int i = 0; i < count; ++i) {
    values[i].nvmlReturn = values[i].fieldId == 82 ? 0 : 3;
    values[i].value.uiVal = 41;
  }
  return device == &shy ? 3 : 0;
}
}
