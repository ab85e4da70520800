// Prints the results of NVIDIA's management library for the calls that frameworks and monitors make: before its start,
// with invalid arguments, beside a process whose memory the driver knows, and after its end. A guest's library must
// return the same results (tests/loopback/nvml.cc, docs/design/044-nvml.md).
//
// usage: probe_nvml_answers [LIBRARY [no-memory | utilisation GPU]]
//   no-memory    creates no context
//   utilisation  prints only the utilisation of the GPU with this index
// To see which calls a program makes, run: LD_DEBUG=bindings nvidia-smi 2>&1 | grep nvml
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "ring/nvml/types.h"
#include "tests/named_driver.h"

namespace {

void* management = nullptr;  // the library under test
using Device = nvmlDevice_t;

const char* words(int code) {
  const auto find = reinterpret_cast<const char* (*)(int)>(dlsym(management, "nvmlErrorString"));
  return find != nullptr ? find(code) : "no nvmlErrorString";
}

// Calls a function of the library by its name and prints the result; -1: the library has no such function.
template <class... A>
int ask(const char* name, A... arguments) {
  const auto call = reinterpret_cast<int (*)(A...)>(dlsym(management, name));
  if (call == nullptr) return std::printf("%-48s is not there\n", name), -1;
  const int code = call(arguments...);
  std::printf("%-48s %d %s\n", name, code, words(code));
  return code;
}

void ask_text(const char* name, Device device, unsigned room) {
  std::vector<char> text(room + 1, '#');
  if (ask(name, device, text.data(), room) == 0) std::printf("  \"%s\"\n", text.data());
}
void ask_text(const char* name, unsigned room) {
  std::vector<char> text(room + 1, '#');
  if (ask(name, text.data(), room) == 0) std::printf("  \"%s\"\n", text.data());
}
void ask_number(const char* name, Device device) {
  unsigned value = 4711;
  if (ask(name, device, &value) == 0) std::printf("  %u\n", value);
}
void ask_number_of(const char* name, Device device, unsigned kind) {
  unsigned value = 4711;
  std::printf("  (%u) ", kind);
  if (ask(name, device, kind, &value) == 0) std::printf("  %u\n", value);
}

void ask_memory(Device device) {
  nvmlMemory_t plain{};
  if (ask("nvmlDeviceGetMemoryInfo", device, &plain) == 0)
    std::printf("  total %llu free %llu used %llu\n", plain.total, plain.free, plain.used);
  for (const unsigned version : {2U << 24, 1U << 24, 0U}) {
    nvmlMemory_v2_t memory{};
    memory.version = version == 0 ? 0 : static_cast<unsigned>(sizeof memory) | version;
    std::printf("  version %08x: ", memory.version);
    if (ask("nvmlDeviceGetMemoryInfo_v2", device, &memory) == 0)
      std::printf("  total %llu reserved %llu free %llu used %llu\n", memory.total, memory.reserved, memory.free,
                  memory.used);
  }
  nvmlMemory_t bar{};
  if (ask("nvmlDeviceGetBAR1MemoryInfo", device, &bar) == 0)
    std::printf("  total %llu free %llu used %llu\n", bar.total, bar.free, bar.used);
  ask("nvmlDeviceGetMemoryInfo", device, static_cast<nvmlMemory_t*>(nullptr));
  ask("nvmlDeviceGetMemoryInfo", Device{}, &plain);
}

void ask_processes(const char* name, Device device) {
  for (const unsigned room : {0U, 16U}) {
    std::vector<nvmlProcessInfo_t> all(16);
    unsigned count = room;
    std::printf("  room for %u: ", room);
    const int code = ask(name, device, &count, all.data());
    std::printf("  %u processes\n", count);
    for (unsigned i = 0; code == 0 && i < count; ++i)
      std::printf("  %s holds %llu, instances %u %u\n",
                  all[i].pid == static_cast<unsigned>(getpid()) ? "this one" : "another", all[i].usedGpuMemory,
                  all[i].gpuInstanceId, all[i].computeInstanceId);
  }
  ask(name, device, static_cast<unsigned*>(nullptr), static_cast<nvmlProcessInfo_t*>(nullptr));
}

void ask_identity(Device device) {
  for (const unsigned room : {96U, 41U, 40U, 8U}) {
    std::printf("room for %u\n", room);
    ask_text("nvmlDeviceGetUUID", device, room);
    ask_text("nvmlDeviceGetName", device, room);
  }
  ask_text("nvmlDeviceGetSerial", device, 30);
  ask_text("nvmlDeviceGetVbiosVersion", device, 32);
  ask_number("nvmlDeviceGetIndex", device);
  ask_number("nvmlDeviceGetMinorNumber", device);
  nvmlPciInfo_t pci{};
  if (ask("nvmlDeviceGetPciInfo_v3", device, &pci) == 0)
    std::printf("  %.16s %.32s %x:%x.%x %08x %08x\n", pci.busIdLegacy, pci.busId, pci.domain, pci.bus, pci.device,
                pci.pciDeviceId, pci.pciSubSystemId);
  int major = 0, minor = 0;
  if (ask("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) == 0) std::printf("  %d.%d\n", major, minor);
}

void ask_state(Device device) {
  for (const char* name : {"nvmlDeviceGetBrand", "nvmlDeviceGetArchitecture", "nvmlDeviceGetPersistenceMode",
                           "nvmlDeviceGetComputeMode", "nvmlDeviceGetPerformanceState", "nvmlDeviceGetPowerUsage",
                           "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetFanSpeed", "nvmlDeviceGetDisplayActive",
                           "nvmlDeviceGetDisplayMode", "nvmlDeviceGetNumGpuCores", "nvmlDeviceGetMultiGpuBoard"})
    ask_number(name, device);
  for (const unsigned kind : {0U, 1U, 2U, 9U}) ask_number_of("nvmlDeviceGetClockInfo", device, kind);
  for (const unsigned kind : {0U, 1U}) ask_number_of("nvmlDeviceGetTemperature", device, kind);
  nvmlUtilization_t use{};
  if (ask("nvmlDeviceGetUtilizationRates", device, &use) == 0) std::printf("  %u %u\n", use.gpu, use.memory);
  unsigned current = 9, pending = 9;
  if (ask("nvmlDeviceGetMigMode", device, &current, &pending) == 0) std::printf("  %u %u\n", current, pending);
  if (ask("nvmlDeviceGetEccMode", device, &current, &pending) == 0) std::printf("  %u %u\n", current, pending);
  for (unsigned link = 0; link < 2; ++link) ask_number_of("nvmlDeviceGetNvLinkState", device, link);
}

void ask_system() {
  ask_text("nvmlSystemGetDriverVersion", 80);
  ask_text("nvmlSystemGetDriverVersion", 4);
  ask_text("nvmlSystemGetNVMLVersion", 80);
  int version = 0;
  if (ask("nvmlSystemGetCudaDriverVersion", &version) == 0) std::printf("  %d\n", version);
  if (ask("nvmlSystemGetCudaDriverVersion_v2", &version) == 0) std::printf("  %d\n", version);
  unsigned count = 0;
  if (ask("nvmlDeviceGetCount_v2", &count) == 0) std::printf("  %u\n", count);
  ask("nvmlDeviceGetCount_v2", static_cast<unsigned*>(nullptr));
}

void ask_for_devices(Device& device) {
  Device found = nullptr;
  ask("nvmlDeviceGetHandleByIndex_v2", 0U, &device);
  ask("nvmlDeviceGetHandleByIndex_v2", 99U, &found);
  ask("nvmlDeviceGetHandleByIndex_v2", 0U, static_cast<Device*>(nullptr));
  for (const char* name : {"GPU-00000000-0000-0000-0000-000000000000", "nonsense", static_cast<const char*>(nullptr)})
    ask("nvmlDeviceGetHandleByUUID", name, &found);
  nvmlPciInfo_t pci{};
  if (device != nullptr && ask("nvmlDeviceGetPciInfo_v3", device, &pci) == 0) {
    ask("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(pci.busId), &found);
    ask("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(pci.busIdLegacy), &found);
    std::printf("the same handle: %d\n", found == device);
  }
  ask("nvmlDeviceGetHandleByPciBusId_v2", "ffff:ff:1f.0", &found);
}

// Allocates some memory, so that the library has memory to report.
bool hold_memory() {
  CUcontext context = nullptr;
  CUdeviceptr at = 0;
  return CU(cuInit)(0) == CUDA_SUCCESS && CU(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS &&
         CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS && CU(cuMemAlloc_v2)(&at, 100 << 20) == CUDA_SUCCESS;
}

int print_utilisation(unsigned index) {
  const auto of = [](const char* name) { return dlsym(management, name); };
  const auto start = reinterpret_cast<int (*)()>(of("nvmlInit_v2"));
  const auto find = reinterpret_cast<int (*)(unsigned, Device*)>(of("nvmlDeviceGetHandleByIndex_v2"));
  const auto tell = reinterpret_cast<int (*)(Device, nvmlUtilization_t*)>(of("nvmlDeviceGetUtilizationRates"));
  Device device = nullptr;
  nvmlUtilization_t use{};
  if (start() != 0 || find(index, &device) != 0 || tell(device, &use) != 0) return 1;
  return std::printf("%u\n", use.gpu) < 0;
}

}  // namespace

int main(int argc, char** argv) {
  management = dlopen(argc > 1 ? argv[1] : "libnvidia-ml.so.1", RTLD_NOW);
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (management == nullptr || library == nullptr) return std::printf("%s\n", dlerror()), 1;
  if (argc > 3) return print_utilisation(static_cast<unsigned>(std::atoi(argv[3])));
  Device device = nullptr;
  std::puts("-- before it is started");
  ask_system();
  ask("nvmlShutdown");
  std::puts("-- started twice");
  ask("nvmlInit_v2");
  ask("nvmlInitWithFlags", 0U);
  ask("nvmlInitWithFlags", ~0U);
  ask_system();
  ask_for_devices(device);
  std::puts("-- without a CUDA context of this process");
  ask_identity(device);
  ask_state(device);
  ask_memory(device);
  ask_processes("nvmlDeviceGetComputeRunningProcesses_v3", device);
  std::printf("-- with one, and 100 MiB: %d\n", argc > 2 ? 0 : hold_memory());
  ask_memory(device);
  ask_processes("nvmlDeviceGetComputeRunningProcesses_v3", device);
  ask_processes("nvmlDeviceGetGraphicsRunningProcesses_v3", device);
  std::puts("-- ended");
  for (int i = 0; i < 4; ++i) ask("nvmlShutdown");
  ask_number("nvmlDeviceGetIndex", device);
  for (const int code : {0, 1, 2, 3, 4, 6, 7, 12, 13, 15, 16, 25, 27, 999, 5000})
    std::printf("%d: %s\n", code, words(code));
}
