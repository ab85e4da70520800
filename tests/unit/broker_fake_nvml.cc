// A libnvidia-ml.so.1 for tests of ivgpu-nvml: it knows a few GPUs, by what a test wants of them.
#include <cstring>

namespace {

struct Process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};
struct Sample {
  unsigned pid;
  unsigned long long stamp;
  unsigned sm, memory, encoder, decoder;
};
struct Memory {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

char plain, shy, many;

}  // namespace

extern "C" {
#define EXPORTED __attribute__((visibility("default")))

EXPORTED int nvmlInit_v2() { return 0; }
EXPORTED int nvmlShutdown() { return 0; }
EXPORTED const char* nvmlErrorString(int) { return "Not Found"; }
EXPORTED int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  const bool simulated = std::strncmp(uuid, "GPU-69766770-", 13) == 0;  // for a try of the probe
  if (simulated || std::strcmp(uuid, "GPU-1") == 0) return *device = &plain, 0;
  if (std::strcmp(uuid, "GPU-shy") == 0) return *device = &shy, 0;
  if (std::strcmp(uuid, "GPU-many") == 0) return *device = &many, 0;
  return 6;
}
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) { return *device = &plain, 0; }
EXPORTED int nvmlDeviceGetMemoryInfo_v2(void*, Memory* memory) {
  if (memory->version != (sizeof(Memory) | 2U << 24)) return 25;
  memory->total = 1000, memory->reserved = 100;
  return 0;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* processes) {
  if (device == &many) {
    const bool fits = *count >= 1000;
    *count = 1000;
    for (unsigned i = 0; fits && i < 1000; ++i) processes[i] = {i + 1, 1, ~0U, ~0U};
    return fits ? 0 : 7;
  }
  processes[0] = {11, 22, ~0U, ~0U};
  processes[1] = {33, device == &shy ? ~0ULL : 44, ~0U, ~0U};
  return *count = 2, 0;
}
// Beside two good samples one of nobody, one of more than all of the time, and one that is old.
EXPORTED int nvmlDeviceGetProcessUtilization(void* device, Sample* samples, unsigned* count, unsigned long long since) {
  static unsigned long long now = 4'000'000'000'000'000;
  if (device == &shy) return 3;
  if (*count < 5) return *count = 5, 7;
  now += 200'000;
  samples[0] = {11, now, 99, 0, 0, 0};
  samples[1] = {33, now, 0, 50, 0, 0};
  samples[2] = {0, now, 99, 0, 0, 0};
  samples[3] = {44, now, 4'000'000, 0, 0, 0};
  samples[4] = {55, since, 99, 0, 0, 0};
  return *count = 5, 0;
}
}
