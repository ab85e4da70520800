// Permitted actions of a program, through guest library and worker in one process, on the strict fake driver and on the
// simulated GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "guest/base/switches.h"
#include "guest/objects/copy/copiers.h"
#include "guest/process/thread.h"
#include "guest/session/channel.h"
#include "tests/deadline.h"
#include "tests/loopback/in_process.h"
#include "tests/loopback/kernels.h"

namespace {

using loopback::backend, loopback::InProcess;

std::vector<unsigned char> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 7 + (i >> 8) + seed);
  return data;
}

class Loopback : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loopback_.ok()); }

  CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr at = 0;
    EXPECT_EQ(cu::cuMemAlloc_v2(&at, bytes), CUDA_SUCCESS);
    return at;
  }
  CUstream stream() {
    CUstream s = nullptr;
    EXPECT_EQ(cu::cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return s;
  }
  CUevent event() {
    CUevent e = nullptr;
    EXPECT_EQ(cu::cuEventCreate(&e, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    return e;
  }
  CUfunction function(const char* name) {
    CUfunction f = nullptr;
    if (module_ == nullptr) {
      EXPECT_EQ(cu::cuModuleLoadData(&module_, loopback::module_text), CUDA_SUCCESS);
    }
    EXPECT_EQ(cu::cuModuleGetFunction(&f, module_, name), CUDA_SUCCESS);
    return f;
  }

  InProcess loopback_{backend()};
  CUmodule module_ = nullptr;
};

// ---- copies --------------------------------------------------------------------------------------------------------

// The sizes test: inline copies, just beyond inline, one chunk, several chunks, more than the pipeline's chunks; also
// odd sizes and addresses.
constexpr std::size_t sizes[] = {
    1, 3, 4096, (32u << 10) - 1, 32u << 10, (32 << 10) + 1, 1u << 20, (1u << 20) + 7, (9u << 20) + 13, 33u << 20};

void round_trips(CUdeviceptr device) {
  for (const std::size_t bytes : sizes) {
    const auto data = pattern(bytes, static_cast<unsigned>(bytes));
    std::vector<unsigned char> back(bytes + 2, 0xee);
    ASSERT_EQ(cu::cuMemcpyHtoD_v2(device + 1, data.data(), bytes), CUDA_SUCCESS) << bytes;
    ASSERT_EQ(cu::cuMemcpyDtoH_v2(back.data() + 1, device + 1, bytes), CUDA_SUCCESS) << bytes;
    EXPECT_TRUE(std::equal(data.begin(), data.end(), back.begin() + 1)) << bytes;
    EXPECT_EQ(back.front(), 0xee);
    EXPECT_EQ(back.back(), 0xee);
  }
}

TEST_F(Loopback, PageableCopiesOfAnySize) { round_trips(allocate((33u << 20) + 1)); }

TEST_F(Loopback, PageableCopiesOnAStream) {
  const CUdeviceptr device = allocate(33u << 20);
  const CUstream s = stream();
  for (const std::size_t bytes : sizes) {
    auto data = pattern(bytes, 5);
    const auto wanted = data;
    std::vector<unsigned char> back(bytes);
    ASSERT_EQ(cu::cuMemcpyHtoDAsync_v2(device, data.data(), bytes, s), CUDA_SUCCESS);
    std::fill(data.begin(), data.end(), 0);  // the caller may reuse pageable memory
    ASSERT_EQ(cu::cuMemcpyDtoHAsync_v2(back.data(), device, bytes, s), CUDA_SUCCESS);
    EXPECT_EQ(back, wanted) << bytes;  // the copy is complete when it returns
  }
}

TEST_F(Loopback, PinnedCopies) {
  constexpr std::size_t bytes = (5u << 20) + 3;
  void *from = nullptr, *to = nullptr;
  ASSERT_EQ(cu::cuMemHostAlloc(&from, bytes, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemHostAlloc(&to, bytes, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
  const auto data = pattern(bytes, 9);
  std::memcpy(from, data.data(), bytes);
  const CUdeviceptr device = allocate(bytes);
  const CUstream s = stream();
  ASSERT_EQ(cu::cuMemcpyHtoDAsync_v2(device, from, bytes, s), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemcpyDtoHAsync_v2(to, device, bytes, s), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamSynchronize(s), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(to, data.data(), bytes), 0);
  std::memset(to, 0, bytes);
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(static_cast<char*>(to) + 5, device + 5, bytes - 5), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(static_cast<char*>(to) + 5, data.data() + 5, bytes - 5), 0);
  EXPECT_EQ(cu::cuMemFreeHost(from), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemFreeHost(from), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Loopback, CopiesOfNothing) {
  const CUdeviceptr device = allocate(16);
  EXPECT_EQ(cu::cuMemcpyHtoD_v2(device, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemcpyDtoH_v2(nullptr, device, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemcpyDtoD_v2(device, device + 8, 0), CUDA_SUCCESS);
}

TEST_F(Loopback, CopiesOnTheDeviceAndFills) {
  const CUdeviceptr a = allocate(64), b = allocate(64);
  std::vector<unsigned char> back(64);
  ASSERT_EQ(cu::cuMemsetD8_v2(a, 0x5a, 64), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemsetD16_v2(a, 0x1234, 4), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemsetD32_v2(a + 8, 0xdeadbeef, 2), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemcpyDtoD_v2(b, a, 64), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(back.data(), b, 64), CUDA_SUCCESS);
  EXPECT_EQ(back[1], 0x12);
  EXPECT_EQ(back[8], 0xef);
  EXPECT_EQ(back[15], 0xde);
  EXPECT_EQ(back[16], 0x5a);
  EXPECT_EQ(back[63], 0x5a);
}

// Pinned memory is device memory at its own address, so fills and copies may name it.
TEST_F(Loopback, PinnedMemoryByItsDeviceAddress) {
  void* host = nullptr;
  CUdeviceptr pinned = 0;
  ASSERT_EQ(cu::cuMemHostAlloc(&host, 24u << 20, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemHostGetDevicePointer_v2(&pinned, host, 0), CUDA_SUCCESS);
  EXPECT_EQ(pinned, reinterpret_cast<CUdeviceptr>(host));
  ASSERT_EQ(cu::cuMemsetD8_v2(pinned, 0x77, 24u << 20), CUDA_SUCCESS);
  EXPECT_EQ(static_cast<unsigned char*>(host)[(24u << 20) - 1], 0x77);
  const CUdeviceptr device = allocate(4096);
  ASSERT_EQ(cu::cuMemsetD8_v2(device, 0x33, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemcpyDtoD_v2(pinned + 4096, device, 4096), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);  // a copy within the device is asynchronous to the host
  EXPECT_EQ(static_cast<unsigned char*>(host)[4096], 0x33);
}

TEST_F(Loopback, CopiesOutsideTheAllocationAreRefused) {
  const CUdeviceptr device = allocate(64);
  std::vector<unsigned char> data(1u << 20);
  EXPECT_EQ(cu::cuMemcpyHtoD_v2(device, data.data(), 65), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyHtoD_v2(device + 64, data.data(), 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyDtoH_v2(data.data(), device - 1, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyDtoH_v2(data.data(), 4096, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemsetD32_v2(device, 1, 17), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemsetD32_v2(device, 1, ~std::size_t{0} / 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyDtoD_v2(device, device, ~std::size_t{0}), CUDA_ERROR_INVALID_VALUE);
}

TEST(LoopbackWithout, TheCopyPipeline) {
  setenv("IVGPU_OFF", "copy_pipeline", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  EXPECT_FALSE(guest::switches().copy_pipeline);
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, (33u << 20) + 1), CUDA_SUCCESS);
  round_trips(device);
}

TEST(LoopbackWithout, StoresPastTheCaches) {
  setenv("IVGPU_OFF", "copy_streamed", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  EXPECT_FALSE(guest::switches().copy_streamed);
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, (33u << 20) + 1), CUDA_SUCCESS);
  round_trips(device);
}

TEST(LoopbackWithout, CopyThreads) {
  setenv("IVGPU_OFF", "copy_threads", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(guest::copiers().threads(), 0u);
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, (33u << 20) + 1), CUDA_SUCCESS);
  round_trips(device);
}

TEST(LoopbackWith, ThreeCopyThreads) {
  setenv("IVGPU_COPY_THREADS", "3", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(guest::copiers().threads(), 3u);
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, (33u << 20) + 1), CUDA_SUCCESS);
  round_trips(device);
}

// The device's attribute for concurrent use of managed memory by host and GPU.
int concurrent_access() {
  int value = 9;
  EXPECT_EQ(cu::cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0), CUDA_SUCCESS);
  return value;
}

TEST_F(Loopback, ManagedMemoryIsForHostAndGpuAtTheSameTime) { EXPECT_EQ(concurrent_access(), 1); }

TEST(LoopbackWith, ExclusiveManagedMemory) {
  setenv("IVGPU_MANAGED", "exclusive", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(concurrent_access(), 0);
}

TEST(LoopbackWith, AnUnknownValueForManagedMemoryThatChangesNothing) {
  setenv("IVGPU_MANAGED", "exclusively", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(concurrent_access(), 1);
}

TEST(LoopbackWithout, Spinning) {
  setenv("IVGPU_OFF", "spin", 1);
  InProcess loopback(backend(), {.serve = {.spin_us = 0, .join_at_end = true}, .guest_spin_us = 50});
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(guest::session()->slot().spin_nanoseconds(), 0u);
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, (33u << 20) + 1), CUDA_SUCCESS);
  round_trips(device);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST(LoopbackWithout, Parking) {
  // Guest and worker poll for so long that threads rarely sleep.
  constexpr std::uint32_t long_us = ring::longest_spin_us;
  InProcess loopback(backend(), {.serve = {.spin_us = long_us, .join_at_end = true}, .guest_spin_us = long_us});
  ASSERT_TRUE(loopback.ok());
  std::size_t free = 0, total = 0;
  for (int i = 0; i < 200; ++i) ASSERT_EQ(cu::cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  // On a busy machine some waits outlast the polling time. The guest then polls for less time until the next short
  // wait.
  EXPECT_TRUE(before_deadline([&] {
    EXPECT_EQ(cu::cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
    return guest::this_channel().polling_nanoseconds() >= long_us * 1000u;
  }));
}

TEST(LoopbackSpin, AWorkersWordIsBounded) {
  InProcess loopback(backend(), {.serve = {.spin_us = 0, .join_at_end = true}, .guest_spin_us = 0xffff'ffff});
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(guest::session()->slot().spin_nanoseconds(), ring::longest_spin_us * 1000u);
}

// ---- memory --------------------------------------------------------------------------------------------------------

TEST_F(Loopback, MemoryIsReportedAndComesBack) {
  std::size_t free_before = 0, free_between = 0, free_after = 0, total = 0;
  ASSERT_EQ(cu::cuMemGetInfo_v2(&free_before, &total), CUDA_SUCCESS);
  const CUdeviceptr device = allocate(64u << 20);
  ASSERT_EQ(cu::cuMemGetInfo_v2(&free_between, &total), CUDA_SUCCESS);
  EXPECT_LE(free_between + (64u << 20), free_before);
  ASSERT_EQ(cu::cuMemFree_v2(device), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemGetInfo_v2(&free_after, &total), CUDA_SUCCESS);
  EXPECT_EQ(free_after, free_before);
  EXPECT_EQ(cu::cuMemFree_v2(device), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemFree_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemFree_v2(12345), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Loopback, TooMuchMemory) {
  CUdeviceptr device = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&device, std::size_t{1} << 45), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu::cuMemAlloc_v2(&device, 0), CUDA_ERROR_INVALID_VALUE);
  void* pinned = nullptr;
  EXPECT_EQ(cu::cuMemHostAlloc(&pinned, std::size_t{1} << 45, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(allocate(1), 0u);  // and all later calls work
}

TEST_F(Loopback, AddressRangesAndPitch) {
  CUdeviceptr device = 0, start = 0;
  std::size_t pitch = 0, bytes = 0;
  ASSERT_EQ(cu::cuMemAllocPitch_v2(&device, &pitch, 100, 7, 4), CUDA_SUCCESS);
  EXPECT_GE(pitch, 100u);
  ASSERT_EQ(cu::cuMemGetAddressRange_v2(&start, &bytes, device + pitch * 6), CUDA_SUCCESS);
  EXPECT_EQ(start, device);
  EXPECT_EQ(bytes, pitch * 7);
}

// ---- streams, events, launches -------------------------------------------------------------------------------------

TEST_F(Loopback, StreamsAndEvents) {
  const CUstream s = stream();
  const CUevent start = event(), end = event();
  const CUdeviceptr device = allocate(4096);
  ASSERT_EQ(cu::cuEventRecord(start, s), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemsetD8Async(device, 1, 4096, s), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuEventRecord(end, s), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuEventSynchronize(end), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuEventQuery(end), CUDA_SUCCESS);
  float milliseconds = -1;
  ASSERT_EQ(cu::cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
  EXPECT_GE(milliseconds, 0.0F);
  ASSERT_EQ(cu::cuStreamWaitEvent(nullptr, end, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamDestroy_v2(s), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cu::cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cu::cuEventDestroy_v2(start), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

// Creates and destroys many streams and events by posted calls. Indices are reused, and the worker must never see an
// index in use.
TEST_F(Loopback, HandlesAreUsedAgain) {
  for (int round = 0; round < 2000; ++round) {
    const CUstream s = stream();
    const CUevent e = event();
    ASSERT_EQ(cu::cuEventRecord(e, s), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuStreamDestroy_v2(s), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuEventDestroy_v2(e), CUDA_SUCCESS);
  }
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(Loopback, LaunchFromPtx) {
  const CUfunction fill = function("fill");
  constexpr unsigned count = 1000;
  CUdeviceptr device = allocate(count * 4);
  unsigned n = count, value = 0xabcd;
  void* params[] = {&device, &n, &value};
  ASSERT_EQ(cu::cuLaunchKernel(fill, 8, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr), CUDA_SUCCESS);
  std::vector<unsigned> back(count);
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(back.data(), device, count * 4), CUDA_SUCCESS);
  EXPECT_EQ(std::count(back.begin(), back.end(), value), count);
}

TEST_F(Loopback, LaunchWithAPackedBlock) {
  const CUfunction fill = function("fill");
  struct {
    CUdeviceptr at;
    unsigned count, value;
  } block{allocate(64), 16, 77};
  std::size_t bytes = sizeof block;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_END};
  ASSERT_EQ(cu::cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra), CUDA_SUCCESS);
  unsigned back[16];
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(back, block.at, sizeof back), CUDA_SUCCESS);
  EXPECT_EQ(back[15], 77u);
}

TEST_F(Loopback, LaunchKernelExAndKernelsOfALibrary) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  ASSERT_EQ(cu::cuLibraryLoadData(&library, loopback::module_text, nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(cu::cuLibraryGetKernel(&kernel, library, "fill"), CUDA_SUCCESS);
  CUdeviceptr device = allocate(64);
  unsigned n = 16, value = 5;
  void* params[] = {&device, &n, &value};
  CUlaunchAttribute ignored{};
  ignored.id = CU_LAUNCH_ATTRIBUTE_IGNORE;
  CUlaunchConfig config{1, 1, 1, 32, 1, 1, 0, nullptr, &ignored, 1};
  ASSERT_EQ(cu::cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), params, nullptr), CUDA_SUCCESS);
  unsigned back[16];
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(back, device, sizeof back), CUDA_SUCCESS);
  EXPECT_EQ(back[0], 5u);
  ASSERT_EQ(cu::cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), params, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Loopback, GlobalsAreDeviceMemoryThatCannotBeFreed) {
  function("nothing");
  CUdeviceptr at = 0;
  std::size_t bytes = 0;
  ASSERT_EQ(cu::cuModuleGetGlobal_v2(&at, &bytes, module_, "counter"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 16u);
  const unsigned values[4] = {1, 2, 3, 4};
  unsigned back[4] = {};
  ASSERT_EQ(cu::cuMemcpyHtoD_v2(at, values, 16), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(back, at, 16), CUDA_SUCCESS);
  EXPECT_EQ(back[3], 4u);
  EXPECT_EQ(cu::cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cu::cuModuleUnload(module_), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemcpyDtoH_v2(back, at, 16), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Loopback, FunctionsAreDescribed) {
  const CUfunction fill = function("fill");
  std::size_t offset = 0, size = 0;
  ASSERT_EQ(cu::cuFuncGetParamInfo(fill, 1, &offset, &size), CUDA_SUCCESS);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(size, 4u);
  EXPECT_EQ(cu::cuFuncGetParamInfo(fill, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
  const char* name = nullptr;
  ASSERT_EQ(cu::cuFuncGetName(&name, fill), CUDA_SUCCESS);
  EXPECT_STREQ(name, "fill");
  CUmodule module = nullptr;
  ASSERT_EQ(cu::cuFuncGetModule(&module, fill), CUDA_SUCCESS);
  EXPECT_EQ(module, module_);
}

// ---- immediate errors ----------------------------------------------------------------------------------------------

TEST_F(Loopback, ErrorsFoundAtOnce) {
  const CUfunction fill = function("fill"), nothing = function("nothing");
  const auto launch = [&](CUfunction f, unsigned grid, unsigned block, unsigned shared = 0, CUstream s = nullptr) {
    return cu::cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, s, nullptr, nullptr);
  };
  EXPECT_EQ(launch(nothing, 0, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(nothing, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(nothing, 1, 4096), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(nothing, 1, 1, 64u << 20), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(nullptr, 1, 1), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(launch(reinterpret_cast<CUfunction>(0x1234567), 1, 1), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(launch(nothing, 1, 1, 0, reinterpret_cast<CUstream>(0x10)), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(launch(fill, 1, 1), CUDA_ERROR_INVALID_VALUE);  // it has parameters
  EXPECT_EQ(cu::cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemAlloc_v2(nullptr, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemcpyHtoD_v2(allocate(8), nullptr, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuEventRecord(nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cu::cuEventRecord(reinterpret_cast<CUevent>(stream()), nullptr), CUDA_ERROR_INVALID_HANDLE);
  CUmodule module = nullptr;
  EXPECT_EQ(cu::cuModuleLoadData(&module, "garbage"), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(cu::cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUfunction missing = nullptr;
  EXPECT_EQ(cu::cuModuleGetFunction(&missing, module_, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(launch(nothing, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);  // none of these calls was sent
}

TEST_F(Loopback, EveryLaterCallReturnsAFault) {
  const CUfunction fault = function("fault");
  ASSERT_EQ(cu::cuLaunchKernel(fault, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdeviceptr device = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&device, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUresult elsewhere = CUDA_SUCCESS;
  std::thread([&] {
    loopback::use_device();
    elsewhere = cu::cuCtxSynchronize();
  }).join();
  EXPECT_EQ(elsewhere, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Loopback, AThreadWithoutAContextIsReported) {
  CUresult alloc = CUDA_SUCCESS, sync = CUDA_SUCCESS;
  std::thread([&] {
    CUdeviceptr device = 0;
    alloc = cu::cuMemAlloc_v2(&device, 16);
    sync = cu::cuCtxSynchronize();
  }).join();
  EXPECT_EQ(alloc, CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(sync, CUDA_ERROR_INVALID_CONTEXT);
}

// ---- resets --------------------------------------------------------------------------------------------------------

TEST_F(Loopback, AResetTakesTheContextAlongAndWorkGoesOn) {
  const CUstream old_stream = stream();
  const CUdeviceptr old_memory = allocate(4096);
  void* pinned = nullptr;
  ASSERT_EQ(cu::cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ASSERT_EQ(loopback::use_device(), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamSynchronize(old_stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cu::cuMemFree_v2(old_memory), CUDA_ERROR_INVALID_VALUE);
  const CUdeviceptr device = allocate(4u << 20);
  const auto data = pattern(4u << 20, 3);
  std::vector<unsigned char> back(4u << 20);
  ASSERT_EQ(cu::cuMemcpyHtoD_v2(device, data.data(), data.size()), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemcpyDtoH_v2(back.data(), device, data.size()), CUDA_SUCCESS);
  EXPECT_EQ(back, data);
}

// ---- threads -------------------------------------------------------------------------------------------------------

// With more threads than channels some threads share a channel, and no call fails.
TEST_F(Loopback, MoreThreadsThanChannels) {
  constexpr unsigned threads = ring::max_channels + 8, rounds = 40, count = 256;
  const CUfunction fill = function("fill");
  std::atomic<unsigned> wrong{0}, failed{0}, arrived{0};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      if (loopback::use_device() != CUDA_SUCCESS) ++failed;
      CUdeviceptr device = 0;
      CUstream s = nullptr;
      if (cu::cuMemAlloc_v2(&device, count * 4) != CUDA_SUCCESS) ++failed;
      if (cu::cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) ++failed;
      for (++arrived; arrived < threads;) std::this_thread::yield();
      for (unsigned round = 0; round < rounds; ++round) {
        unsigned n = count, value = t * 1000 + round, back[count] = {};
        void* params[] = {&device, &n, &value};
        if (cu::cuLaunchKernel(fill, 2, 1, 1, 128, 1, 1, 0, s, params, nullptr) != CUDA_SUCCESS) ++failed;
        if (cu::cuMemcpyDtoHAsync_v2(back, device, sizeof back, s) != CUDA_SUCCESS) ++failed;
        if (std::count(back, back + count, value) != count) ++wrong;
      }
      if (cu::cuMemFree_v2(device) != CUDA_SUCCESS) ++failed;
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(loopback_.opened(), ring::first_channels(ring::max_channels));
}

// New threads take over the channels of ended threads.
TEST_F(Loopback, ChannelsAreGivenBack) {
  for (int i = 0; i < 100; ++i)
    std::thread([] {
      loopback::use_device();
      EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
    }).join();
  EXPECT_LT(guest::session()->channels().open(), 4u);
}

}  // namespace
