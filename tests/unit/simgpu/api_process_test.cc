// Tests the simulated GPU's driver as a part of its process: initialisation, fork, exit, handles that were never
// issued, settings. Each test case runs in a process of its own.
#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "tests/child.h"
#include "tests/unit/simgpu/api_fixture.h"

namespace {

// Runs `body` in a fresh process that executes the driver's exit handlers. The test process itself never initialises
// the driver.
ChildOutput run(const std::function<int()>& body) {
  return output_of_child([&]() -> int { std::exit(body()); });
}

CUcontext start() {
  CUcontext context = nullptr;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  return context;
}

TEST(Process, nothing_works_before_initialisation_but_what_says_so) {
  const ChildOutput ended = run([] {
    int value = 0;
    CUstream stream = nullptr;
    if (cuDriverGetVersion(&value) != CUDA_SUCCESS || value != 13000) return 1;
    if (cuDeviceGetCount(&value) != CUDA_ERROR_NOT_INITIALIZED) return 2;
    if (cuStreamCreate(&stream, 0) != CUDA_ERROR_NOT_INITIALIZED) return 3;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&value) != CUDA_SUCCESS || value != 1) return 4;
    return 0;
  });
  EXPECT_EQ(ended.code, 0);
}

// Changes to a user of its own if the test runs as root, so that the limit counts only this process.
void become_somebody() {
  if (geteuid() == 0) (void)setuid(60000 + static_cast<uid_t>(getpid()) % 5000);
}

bool limit_to(int resource, rlim_t most) {
  const rlimit limit{most, most};
  return setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0;
}

TEST(Process, without_threads_initialisation_fails_and_says_why) {
  const ChildOutput ended = run([] {
    become_somebody();
    if (!limit_to(RLIMIT_NPROC, 0)) return 2;
    return cuInit(0) == CUDA_ERROR_OPERATING_SYSTEM ? 0 : 1;
  });
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.errors.find("ivgpu simulated GPU: the system gives no thread to run kernels on"), std::string::npos)
      << ended.errors;
}

TEST(Process, one_thread_is_enough) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become a user whose threads are known";
  const ChildOutput ended = run([] {
    become_somebody();
    if (!limit_to(RLIMIT_NPROC, 2)) return 2;  // this thread and one more
    if (start() == nullptr) return 3;
    CUdeviceptr memory = 0;
    CUstream streams[4] = {};
    if (cuMemAlloc(&memory, 4096) != CUDA_SUCCESS) return 4;
    for (CUstream& stream : streams) {
      if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 5;
      if (cuMemsetD8Async(memory, 7, 4096, stream) != CUDA_SUCCESS) return 6;
    }
    unsigned char byte = 0;
    if (cuCtxSynchronize() != CUDA_SUCCESS || cuMemcpyDtoH(&byte, memory + 4095, 1) != CUDA_SUCCESS) return 7;
    return byte == 7 ? 0 : 8;
  });
  EXPECT_EQ(ended.code, 0) << ended.errors;
}

// Virtual memory needs a file. All other calls work without one.
TEST(Process, a_limit_of_files_size_leaves_everything_but_virtual_memory) {
  const ChildOutput ended = run([] {
    if (!limit_to(RLIMIT_FSIZE, 0)) return 2;
    if (start() == nullptr) return 3;
    CUdeviceptr memory = 0;
    if (cuMemAlloc(&memory, 4096) != CUDA_SUCCESS || cuMemsetD8(memory, 7, 4096) != CUDA_SUCCESS) return 4;
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemGenericAllocationHandle handle = 0;
    return cuMemCreate(&handle, 2 << 20, &properties, 0) == CUDA_ERROR_OUT_OF_MEMORY ? 0 : 5;
  });
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.errors.find("RLIMIT_FSIZE"), std::string::npos) << ended.errors;
}

TEST(Process, a_child_forked_after_initialisation_is_refused_everything_and_exits) {
  const ChildOutput ended = run([] {
    const CUcontext context = start();
    CUstream stream = nullptr;
    cuStreamCreate(&stream, 0);
    cuLaunchHostFunc(
        stream, [](void*) {}, nullptr);  // makes the driver start its threads
    const pid_t child = fork();
    if (child == 0) {
      int count = 0;
      CUcontext current = nullptr;
      const bool refused = cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                           cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                           cuCtxGetCurrent(&current) == CUDA_ERROR_NOT_INITIALIZED &&
                           cuCtxSetCurrent(context) == CUDA_ERROR_NOT_INITIALIZED &&
                           cuStreamSynchronize(stream) == CUDA_ERROR_NOT_INITIALIZED &&
                           cuDevicePrimaryCtxRelease(0) == CUDA_ERROR_NOT_INITIALIZED;
      std::exit(refused ? 7 : 8);
    }
    if (wait_for_child(child) != 7) return 1;
    return cuStreamSynchronize(stream) == CUDA_SUCCESS ? 0 : 2;  // the parent can still use the driver
  });
  EXPECT_EQ(ended.code, 0) << ended.errors;
}

TEST(Process, exit_does_not_wait_for_work_in_flight) {
  const ChildOutput ended = run([] {
    start();
    void* word = nullptr;
    cuMemHostAlloc(&word, 4, 0);
    *static_cast<int*>(word) = 0;
    cuStreamWaitValue32(nullptr, reinterpret_cast<CUdeviceptr>(word), 1, CU_STREAM_WAIT_VALUE_EQ);
    return 0;
  });
  EXPECT_EQ(ended.code, 0);
}

TEST(Process, exit_handlers_that_come_late_get_an_answer) {
  const ChildOutput ended = run([] {
    std::atexit([] {
      CUdeviceptr memory = 0;
      if (cuMemAlloc(&memory, 16) != CUDA_ERROR_DEINITIALIZED) _exit(9);
    });
    start();
    return 0;
  });
  EXPECT_EQ(ended.code, 0);
}

TEST(Process, made_up_handles_end_the_process_with_one_line) {
  const struct {
    const char* what;
    std::function<void()> use;
  } cases[] = {
      {"stream", [] { cuStreamSynchronize(reinterpret_cast<CUstream>(0x1234)); }},
      {"event", [] { cuEventQuery(reinterpret_cast<CUevent>(0x7f0000001000)); }},
      {"context", [] { cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1234)); }},
      {"module", [] { cuModuleUnload(reinterpret_cast<CUmodule>(0x1234)); }},
      {"library", [] { cuLibraryUnload(reinterpret_cast<CUlibrary>(0x1234)); }},
      {"memory pool", [] { cuMemPoolTrimTo(reinterpret_cast<CUmemoryPool>(0x1234), 0); }},
      {"event",
       [] {  // a valid handle of a stream
         CUstream stream = nullptr;
         cuStreamCreate(&stream, 0);
         cuEventQuery(reinterpret_cast<CUevent>(stream));
       }},
      {"stream",
       [] {  // the number that the next stream would get
         CUstream stream = nullptr;
         cuStreamCreate(&stream, 0);
         cuStreamQuery(reinterpret_cast<CUstream>(reinterpret_cast<std::uintptr_t>(stream) + 1));
       }},
  };
  for (const auto& made_up : cases) {
    const ChildOutput ended = run([&] {
      start();
      made_up.use();
      return 0;
    });
    EXPECT_EQ(ended.code, -SIGABRT) << made_up.what;
    EXPECT_NE(ended.errors.find(std::string("was passed as a ") + made_up.what), std::string::npos) << ended.errors;
    EXPECT_EQ(ended.errors.find('\n'), ended.errors.size() - 1) << ended.errors;
  }
}

TEST(Process, settings) {
  const struct {
    const char *name, *value;
    CUresult expected;
    int devices;
  } cases[] = {
      {"IVGPU_SIM_MEMORY", "64M", CUDA_SUCCESS, 1},
      {"IVGPU_SIM_MEMORY", "lots", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_MEMORY", "99999999999999999999", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_MEMORY", "", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_CONTEXT_MEMORY", "64M", CUDA_SUCCESS, 1},
      {"IVGPU_SIM_CONTEXT_MEMORY", "some", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_CHUNKS_BELOW", "7ee000000000", CUDA_SUCCESS, 1},
      {"IVGPU_SIM_CHUNKS_BELOW", "7ee000001000", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_CHUNKS_BELOW", "0", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_CHUNKS_BELOW", "800000200000", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_CHUNKS_BELOW", "below", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_USAGE", "/no/such/file", CUDA_SUCCESS, 1},
      {"IVGPU_SIM_HMM", "1", CUDA_SUCCESS, 1},
      {"IVGPU_SIM_HMM", "yes", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_DEVICES", "3", CUDA_SUCCESS, 3},
      {"IVGPU_SIM_DEVICES", "0", CUDA_ERROR_NO_DEVICE, 0},
      {"IVGPU_SIM_DEVICES", "9", CUDA_ERROR_NO_DEVICE, 0},
      {"CUDA_VISIBLE_DEVICES", "0", CUDA_SUCCESS, 1},
      {"CUDA_VISIBLE_DEVICES", "GPU-69766770", CUDA_SUCCESS, 1},
      {"CUDA_VISIBLE_DEVICES", "", CUDA_ERROR_NO_DEVICE, 0},
      {"CUDA_VISIBLE_DEVICES", "-1", CUDA_ERROR_NO_DEVICE, 0},
      {"CUDA_VISIBLE_DEVICES", "1", CUDA_ERROR_NO_DEVICE, 0},
      {"CUDA_VISIBLE_DEVICES", "0,junk", CUDA_SUCCESS, 1},
      {"CUDA_VISIBLE_DEVICES", "0,0", CUDA_ERROR_INVALID_DEVICE, 0},
      {"CUDA_DEVICE_ORDER", "PCI_BUS_ID", CUDA_SUCCESS, 1},
      {"CUDA_DEVICE_ORDER", "junk", CUDA_ERROR_INVALID_DEVICE, 0},
  };
  for (const auto& setting : cases) {
    const ChildOutput ended = run([&] {
      setenv(setting.name, setting.value, 1);
      const CUresult result = cuInit(0);
      if (result != setting.expected) return 1;
      int devices = 0;
      if (result == CUDA_SUCCESS) cuDeviceGetCount(&devices);
      return devices == setting.devices ? 0 : 2;
    });
    EXPECT_EQ(ended.code, 0) << setting.name << "=" << setting.value;
    const bool should_tell = setting.expected == CUDA_ERROR_NO_DEVICE && setting.name[0] == 'I';
    EXPECT_EQ(ended.errors.find(setting.name) != std::string::npos, should_tell) << ended.errors;
  }
}

TEST(Process, a_launch_waits_if_the_environment_says_so) {
  const ChildOutput ended = run([] {
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    start();
    constexpr char ptx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry stop() { trap; }\n";
    CUmodule module = nullptr;
    CUfunction stop = nullptr;
    if (cuModuleLoadData(&module, ptx) != CUDA_SUCCESS) return 1;
    if (cuModuleGetFunction(&stop, module, "stop") != CUDA_SUCCESS) return 2;
    const CUresult result = cuLaunchKernel(stop, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    return result == CUDA_ERROR_LAUNCH_FAILED ? 0 : 3;
  });
  EXPECT_EQ(ended.code, 0) << ended.errors;
}

TEST(Process, entry_points_are_those_that_the_library_has) {
  const ChildOutput ended = run([] {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status;
    const auto find = [&](const char* name, int version, cuuint64_t flags) {
      return cuGetProcAddress_v2(name, &function, version, flags, &status);
    };
    if (find("cuMemAlloc", 13000, 0) != CUDA_SUCCESS || function != reinterpret_cast<void*>(&cuMemAlloc_v2)) return 1;
    if (find("cuMemAlloc", 2000, 0) != CUDA_SUCCESS || function == nullptr) return 2;  // the 32-bit version of the call
    if (function == reinterpret_cast<void*>(&cuMemAlloc_v2)) return 8;
    if (find("cuNoSuchCall", 13000, 0) != CUDA_SUCCESS || function != nullptr) return 3;
    if (status != CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) return 4;
    if (find("cuLaunchKernel", 13000, 2) != CUDA_SUCCESS || function == nullptr) return 5;
    if (function == reinterpret_cast<void*>(&cuLaunchKernel)) return 6;
    if (find("cuGetProcAddress", 11030, 0) != CUDA_SUCCESS || function == reinterpret_cast<void*>(&cuGetProcAddress_v2))
      return 7;
    return 0;
  });
  EXPECT_EQ(ended.code, 0);
}

TEST(Process, memory_is_as_large_as_set) {
  const ChildOutput ended = run([] {
    setenv("IVGPU_SIM_MEMORY", "64M", 1);
    start();
    std::size_t total = 0;
    CUdeviceptr memory = 0;
    if (cuDeviceTotalMem(&total, 0) != CUDA_SUCCESS || total != 64U << 20) return 1;
    if (cuMemAlloc(&memory, 65U << 20) != CUDA_ERROR_OUT_OF_MEMORY) return 2;
    if (cuMemAlloc(&memory, 32U << 20) != CUDA_SUCCESS) return 3;
    if (cuMemAlloc(&memory, 48U << 20) != CUDA_ERROR_OUT_OF_MEMORY) return 4;
    return 0;
  });
  EXPECT_EQ(ended.code, 0);
}

TEST(Process, devices_are_told_apart) {
  const ChildOutput ended = run([] {
    setenv("IVGPU_SIM_DEVICES", "2", 1);
    cuInit(0);
    CUuuid first, second;
    char bus[2][16];
    CUcontext contexts[2];
    CUdevice device = 9;
    if (cuDeviceGetUuid(&first, 0) != CUDA_SUCCESS || cuDeviceGetUuid(&second, 1) != CUDA_SUCCESS) return 1;
    if (std::memcmp(&first, &second, sizeof first) == 0) return 2;
    for (int i = 0; i < 2; ++i) {
      cuDeviceGetPCIBusId(bus[i], sizeof bus[i], i);
      if (cuDeviceGetByPCIBusId(&device, bus[i]) != CUDA_SUCCESS || device != i) return 3;
      cuDevicePrimaryCtxRetain(&contexts[i], i);
    }
    if (contexts[0] == contexts[1]) return 4;
    CUdeviceptr memory[2];
    const unsigned value = 77;
    unsigned back = 0;
    for (int i = 0; i < 2; ++i) {
      cuCtxSetCurrent(contexts[i]);
      if (cuMemAlloc(&memory[i], 4) != CUDA_SUCCESS) return 5;
    }
    if (cuMemcpyHtoD(memory[1], &value, 4) != CUDA_SUCCESS) return 6;
    if (cuMemcpyPeer(memory[0], contexts[0], memory[1], contexts[1], 4) != CUDA_SUCCESS) return 7;
    if (cuCtxSynchronize() != CUDA_SUCCESS || cuMemcpyDtoH(&back, memory[0], 4) != CUDA_SUCCESS) return 8;
    int ordinal = 9;
    cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory[1]);
    return back == value && ordinal == 1 ? 0 : 9;
  });
  EXPECT_EQ(ended.code, 0);
}

// The process that runs the tests must not initialise a driver, because forked children would inherit its state.
TEST(Process, closing_the_library_does_not_unload_it) {
  const ChildOutput ended = run([] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return 1;
    start();
    CUstream stream = nullptr;
    cuStreamCreate(&stream, 0);
    cuLaunchHostFunc(
        stream, [](void*) {}, nullptr);
    if (dlclose(library) != 0) return 2;
    return cuStreamSynchronize(stream) == CUDA_SUCCESS ? 0 : 3;
  });
  EXPECT_EQ(ended.code, 0);
}

}  // namespace
