// A small CUDA program for the tests with processes: knows the driver by dlopen only, as a runtime does.
//
// usage: loopback_program LIBCUDA MODE. Prints one word per step, so that a test can follow it.
#include <dirent.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "ring/api/cuda.h"

namespace {

void* library = nullptr;

template <class F>
F find(const char* name) {
  void* at = dlsym(library, name);
  if (at == nullptr) {
    std::printf("no %s\n", name);
    std::exit(9);
  }
  return reinterpret_cast<F>(at);
}
#define CU(fn) find<decltype(&::fn)>(#fn)

void say(const char* word) {
  std::puts(word);
  std::fflush(stdout);
}

int tell(const char* what, CUresult result) {
  std::printf("%s %d\n", what, static_cast<int>(result));
  std::fflush(stdout);
  return result == CUDA_SUCCESS ? 0 : 1;
}

bool start() {
  CUcontext context = nullptr;
  if (const CUresult r = CU(cuInit)(0); r != CUDA_SUCCESS) return tell("cuInit", r), false;
  return CU(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS && CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS;
}

// Alloc, copy there and back, compare.
bool works() {
  constexpr std::size_t bytes = (3 << 20) + 5;
  std::vector<unsigned char> data(bytes), back(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 13);
  CUdeviceptr device = 0;
  return CU(cuMemAlloc_v2)(&device, bytes) == CUDA_SUCCESS &&
         CU(cuMemcpyHtoD_v2)(device, data.data(), bytes) == CUDA_SUCCESS &&
         CU(cuMemcpyDtoH_v2)(back.data(), device, bytes) == CUDA_SUCCESS && data == back &&
         CU(cuMemFree_v2)(device) == CUDA_SUCCESS;
}

int work() {
  if (!start() || !works()) return 1;
  say("works");
  return 0;
}

int finish_child(pid_t child, int parent_code) {
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return parent_code;
}

int fork_before() {
  const pid_t child = fork();
  if (child == 0) std::exit(work());
  return finish_child(child, work());
}

int fork_after() {
  if (!start()) return 1;
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    CUdeviceptr device = 0;
    const bool refused = CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED &&
                         CU(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                         CU(cuMemAlloc_v2)(&device, 16) == CUDA_ERROR_NOT_INITIALIZED &&
                         CU(cuCtxSynchronize)() == CUDA_ERROR_NOT_INITIALIZED;
    std::exit(refused ? 0 : 1);
  }
  const int code = finish_child(child, 0);
  return works() ? (say("works"), code) : 1;  // the child's end has not ended the session
}

constexpr const char* endless = R"(.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 stop;
.visible .entry spin()
{
  .reg .pred %p<2>;
  .reg .b32 %r<2>;
AGAIN:
  ld.volatile.global.u32 %r1, [stop];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra AGAIN;
  ret;
}
)";

bool launch_endless() {
  CUmodule module = nullptr;
  CUfunction spin = nullptr;
  return CU(cuModuleLoadData)(&module, endless) == CUDA_SUCCESS &&
         CU(cuModuleGetFunction)(&spin, module, "spin") == CUDA_SUCCESS &&
         CU(cuLaunchKernel)(spin, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS;
}

// A call that does not return while the host lives.
int wait_for_ever() {
  if (!start() || !launch_endless()) return 1;
  say("waiting");
  return tell("cuCtxSynchronize", CU(cuCtxSynchronize)());
}

// Ends with work under way, a good part of it not yet taken from the ring.
int exit_in_flight() {
  if (!start()) return 1;
  CUdeviceptr device = 0;
  if (CU(cuMemAlloc_v2)(&device, 1 << 20) != CUDA_SUCCESS || !launch_endless()) return 1;
  for (int i = 0; i < 1000; ++i)
    if (CU(cuMemsetD32Async)(device, 1, 1 << 18, nullptr) != CUDA_SUCCESS) return 1;
  say("leaving");
  return 0;
}

// Eight threads that post and wait, so that their worker's are never idle for long.
int flood(std::chrono::milliseconds time) {
  if (!start()) return 1;
  const auto end = std::chrono::steady_clock::now() + time;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      CUdeviceptr device = 0;
      CUcontext context = nullptr;
      wrong += CU(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS ||
               CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS || CU(cuMemAlloc_v2)(&device, 4096) != CUDA_SUCCESS;
      while (wrong == 0 && std::chrono::steady_clock::now() < end) {
        for (int i = 0; i < 16; ++i) wrong += CU(cuMemsetD32Async)(device, 1, 1024, nullptr) != CUDA_SUCCESS;
        wrong += CU(cuStreamSynchronize)(nullptr) != CUDA_SUCCESS;
      }
    });
  for (std::thread& thread : threads) thread.join();
  say(wrong == 0 ? "flooded" : "refused");
  return wrong == 0 ? 0 : 1;
}

int entries(const char* folder) {
  int n = 0;
  DIR* dir = opendir(folder);
  while (dir != nullptr && readdir(dir) != nullptr) ++n;
  if (dir != nullptr) closedir(dir);
  return n;
}

// Loaded, and asked only what may be asked before cuInit: no thread, no descriptor.
int loaded_only(const char* path) {
  const int threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");
  library = dlopen(path, RTLD_NOW);
  int version = 0, count = 0;
  const char* name = nullptr;
  if (CU(cuDriverGetVersion)(&version) != CUDA_SUCCESS || version != CUDA_VERSION) return 1;
  if (CU(cuGetErrorName)(CUDA_ERROR_NO_DEVICE, &name) != CUDA_SUCCESS || std::strcmp(name, "CUDA_ERROR_NO_DEVICE") != 0)
    return 2;
  if (CU(cuDeviceGetCount)(&count) != CUDA_ERROR_NOT_INITIALIZED) return 3;
  if (CU(cuCtxSynchronize)() != CUDA_ERROR_NOT_INITIALIZED) return 4;
  if (CU(cuInit)(1) != CUDA_ERROR_INVALID_VALUE) return 5;
  dlclose(library);  // it stays, with what it was asked
  if (entries("/proc/self/task") != threads || entries("/proc/self/fd") != descriptors) return 6;
  say("quiet");
  return 0;
}

// What the guest sees: a line for each ordinal, with its UUID and its PCI address.
int devices() {
  int count = 0;
  if (const CUresult r = CU(cuInit)(0); r != CUDA_SUCCESS) return tell("cuInit", r);
  if (CU(cuDeviceGetCount)(&count) != CUDA_SUCCESS) return 1;
  for (int i = 0; i < count; ++i) {
    CUdevice device = -1;
    CUuuid uuid{};
    char pci[16] = {};
    if (CU(cuDeviceGet)(&device, i) != CUDA_SUCCESS || CU(cuDeviceGetUuid_v2)(&uuid, device) != CUDA_SUCCESS ||
        CU(cuDeviceGetPCIBusId)(pci, sizeof pci, device) != CUDA_SUCCESS)
      return 1;
    std::printf("%d ", i);
    for (const char byte : uuid.bytes) std::printf("%02x", static_cast<unsigned char>(byte));
    std::printf(" %s\n", pci);
  }
  return start() && works() ? (say("works"), 0) : 1;
}

// What is not served is handed out and refuses, each time it is called.
int refused() {
  const auto find_call = CU(cuGetProcAddress_v2);
  CUresult (*create)(CUgraph*, unsigned) = nullptr;
  CUgraph graph = nullptr;
  if (CU(cuInit)(0) != CUDA_SUCCESS) return 1;
  if (find_call("cuGraphCreate", reinterpret_cast<void**>(&create), CUDA_VERSION, 0, nullptr) != CUDA_SUCCESS) return 2;
  for (int i = 0; i < 3; ++i)
    if (create == nullptr || create(&graph, 0) != CUDA_ERROR_NOT_SUPPORTED) return 3;
  say("refused");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 8;
  const char* mode = argv[2];
  if (std::strcmp(mode, "loaded") == 0) return loaded_only(argv[1]);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return 7;
  }
  if (std::strcmp(mode, "work") == 0) return work();
  if (std::strcmp(mode, "devices") == 0) return devices();
  if (std::strcmp(mode, "refused") == 0) return refused();
  if (std::strcmp(mode, "fork-before") == 0) return fork_before();
  if (std::strcmp(mode, "fork-after") == 0) return fork_after();
  if (std::strcmp(mode, "wait") == 0) return wait_for_ever();
  if (std::strcmp(mode, "exit-in-flight") == 0) return exit_in_flight();
  if (std::strcmp(mode, "flood") == 0) return flood(std::chrono::minutes(1));
  return 8;
}
