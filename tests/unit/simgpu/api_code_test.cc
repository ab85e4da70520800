// Tests modules, libraries and launches of the simulated GPU.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/simgpu/api_fixture.h"

namespace {

constexpr char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 counter = 40;
.visible .global .attribute(.managed) .align 4 .u32 shared_word = 5;

// out[i] = i + bias; counter += 1 by each thread
.visible .entry fill(.param .u64 out, .param .u8 bias, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .u32 %r<8>;
  .reg .u64 %rd<5>;
  ld.param.u64 %rd1, [out];
  ld.param.u8 %r1, [bias];
  ld.param.u32 %r2, [count];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r3, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r3, %r2;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r3, 4;
  add.u64 %rd4, %rd2, %rd3;
  add.u32 %r6, %r3, %r1;
  st.global.u32 [%rd4], %r6;
  atom.global.add.u32 %r7, [counter], 1;
DONE:
  ret;
}
.visible .entry empty() { ret; }
)";

class Code : public InContext {
 protected:
  void SetUp() override {
    InContext::SetUp();
    OK(cuMemAlloc(&out_, count_ * 4));
    OK(cuMemsetD32(out_, 0, count_));
  }
  void TearDown() override {
    EXPECT_EQ(cuMemFree(out_), CUDA_SUCCESS);
    InContext::TearDown();
  }
  // Checks the words that the kernel `fill` has written with this bias; only the first `filled` words may have changed.
  void expect_filled(unsigned bias, unsigned filled) {
    std::vector<unsigned> words(count_);
    OK(cuMemcpyDtoH(words.data(), out_, count_ * 4));
    for (unsigned i = 0; i < count_; ++i) ASSERT_EQ(words[i], i < filled ? i + bias : 0) << i;
  }
  void launch(CUfunction function, unsigned char bias, unsigned filled) {
    void* parameters[] = {&out_, &bias, &filled};
    OK(cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
  }
  unsigned read(CUdeviceptr address) {
    unsigned value = 0;
    EXPECT_EQ(cuMemcpyDtoH(&value, address, 4), CUDA_SUCCESS);
    return value;
  }

  static constexpr unsigned count_ = 256;
  CUdeviceptr out_ = 0;
};

TEST_F(Code, a_module_runs_and_its_variables_are_memory) {
  CUmodule module = nullptr;
  CUfunction fill = nullptr, same = nullptr;
  CUdeviceptr counter = 0;
  std::size_t size = 0;
  OK(cuModuleLoadData(&module, ptx));
  OK(cuModuleGetFunction(&fill, module, "fill"));
  OK(cuModuleGetFunction(&same, module, "fill"));
  EXPECT_EQ(fill, same);
  OK(cuModuleGetGlobal(&counter, &size, module, "counter"));
  EXPECT_EQ(size, 4U);
  EXPECT_EQ(read(counter), 40U);
  launch(fill, 3, 200);
  expect_filled(3, 200);
  EXPECT_EQ(read(counter), 240U);
  OK(cuModuleUnload(module));
  EXPECT_EQ(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuModuleGetFunction(&same, module, "fill"), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuMemcpyDtoH(&size, counter, 4), CUDA_ERROR_INVALID_VALUE) << "its variables are gone";
}

TEST_F(Code, parameters_may_come_packed) {
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  OK(cuModuleLoadData(&module, ptx));
  OK(cuModuleGetFunction(&fill, module, "fill"));
  const std::size_t expected[][2] = {{0, 8}, {8, 1}, {12, 4}};
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t offset = 0, size = 0;
    OK(cuFuncGetParamInfo(fill, i, &offset, &size));
    EXPECT_EQ(offset, expected[i][0]);
    EXPECT_EQ(size, expected[i][1]);
  }
  struct {
    CUdeviceptr out;
    unsigned char bias;
    unsigned count;
  } packed = {out_, 7, 100};
  std::size_t size = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  OK(cuLaunchKernel(fill, 4, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra));
  packed.count = 0;  // the launch has already read the parameters
  expect_filled(7, 100);
  OK(cuModuleUnload(module));
}

TEST_F(Code, a_library_needs_no_context_and_survives_a_reset) {
  OK(cuCtxSetCurrent(nullptr));
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  OK(cuLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernel(&kernel, library, "fill"));
  OK(cuCtxSetCurrent(context_));
  CUdeviceptr counter = 0;
  OK(cuLibraryGetGlobal(&counter, nullptr, library, "counter"));
  launch(reinterpret_cast<CUfunction>(kernel), 1, 50);
  expect_filled(1, 50);
  EXPECT_EQ(read(counter), 90U);

  OK(cuDevicePrimaryCtxReset(0));
  CUcontext again = nullptr;
  OK(cuDevicePrimaryCtxRetain(&again, 0));
  OK(cuMemAlloc(&out_, count_ * 4));
  OK(cuMemsetD32(out_, 0, count_));
  launch(reinterpret_cast<CUfunction>(kernel), 2, 30);
  expect_filled(2, 30);
  OK(cuLibraryGetGlobal(&counter, nullptr, library, "counter"));
  EXPECT_EQ(read(counter), 70U) << "the variables are new, too";
  OK(cuDevicePrimaryCtxRelease(0));
  OK(cuLibraryUnload(library));
  EXPECT_EQ(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Code, a_kernel_has_a_function_in_each_context) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction here = nullptr, there = nullptr;
  OK(cuLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernel(&kernel, library, "empty"));
  OK(cuKernelGetFunction(&here, kernel));
  CUcontext other = nullptr;
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  OK(cuKernelGetFunction(&there, kernel));
  EXPECT_NE(here, there);
  EXPECT_EQ(cuLaunchKernel(here, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  OK(cuLaunchKernel(there, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(cuCtxDestroy(other));
  OK(cuLaunchKernel(here, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(cuLibraryUnload(library));
}

TEST_F(Code, managed_variables_have_an_address_before_there_is_a_context) {
  OK(cuCtxSetCurrent(nullptr));
  CUlibrary library = nullptr;
  CUdeviceptr before = 0, after = 0;
  OK(cuLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetManaged(&before, nullptr, library, "shared_word"));
  EXPECT_EQ(*reinterpret_cast<unsigned*>(before), 5U);
  EXPECT_EQ(cuLibraryGetManaged(&after, nullptr, library, "counter"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(after, 0U);
  OK(cuCtxSetCurrent(context_));
  OK(cuLibraryGetGlobal(&after, nullptr, library, "shared_word"));
  EXPECT_EQ(before, after);
  OK(cuLibraryUnload(library));
}

TEST_F(Code, settings_of_a_kernel_hold_for_its_function) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  int value = 0;
  OK(cuLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(cuLibraryGetKernel(&kernel, library, "empty"));
  const auto function = reinterpret_cast<CUfunction>(kernel);
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 60000, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, kernel, 0));
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 60000, nullptr, nullptr, nullptr));
  OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
  EXPECT_EQ(value, 60000);
  OK(cuCtxSynchronize());
  OK(cuLibraryUnload(library));
}

TEST_F(Code, occupancy_is_bounded_by_each_resource) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  OK(cuModuleLoadData(&module, ptx));
  OK(cuModuleGetFunction(&function, module, "empty"));
  const auto blocks = [&](int threads, std::size_t shared) {
    int result = -1;
    EXPECT_EQ(cuOccupancyMaxActiveBlocksPerMultiprocessor(&result, function, threads, shared), CUDA_SUCCESS);
    return result;
  };
  EXPECT_EQ(blocks(1024, 0), 1);  // limited by 1536 threads
  EXPECT_EQ(blocks(512, 0), 3);
  EXPECT_EQ(blocks(32, 0), 24);        // limited by 24 blocks
  EXPECT_EQ(blocks(32, 24 << 10), 4);  // limited by 100 KiB of shared memory, of which a block reserves 1 KiB
  EXPECT_EQ(blocks(32, 49152), 2);
  int grid = 0, block = 0;
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 0));
  EXPECT_EQ(block, 768);  // the largest size of which a multiple fills the 1536 threads of a multiprocessor
  EXPECT_EQ(grid, 2 * 16);
  std::size_t shared = 0;
  OK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, function, 2, 128));
  EXPECT_EQ(blocks(128, shared), 2);
  EXPECT_LT(shared, std::size_t{102400} / 2);
  OK(cuModuleUnload(module));
}

TEST_F(Code, files_are_read_as_far_as_they_go) {
  const std::string path = testing::TempDir() + "simgpu_image." + std::to_string(getpid());
  const auto load = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    CUmodule module = nullptr;
    const CUresult result = cuModuleLoad(&module, path.c_str());
    if (module != nullptr) cuModuleUnload(module);
    return result;
  };
  EXPECT_EQ(load(ptx), CUDA_SUCCESS);
  EXPECT_EQ(load(""), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(load("\x50\xed\x55\xba"), CUDA_ERROR_INVALID_IMAGE) << "a container's magic number and nothing else";
  EXPECT_EQ(load(std::string("\x50\xed\x55\xba\x01\x00\x10\x00\xff\xff\x00\x00\x00\x00\x00\x00", 16)),
            CUDA_ERROR_INVALID_IMAGE)
      << "a container that says it is longer than the file";
  EXPECT_EQ(load("\x7f"
                 "ELF"),
            CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(load(std::string("\xb1\x43\x62\x46\x01\x00\x00\x00", 8) + std::string(16, '\x11')),
            CUDA_ERROR_INVALID_IMAGE)
      << "a wrapper, whose pointers mean nothing in a file";
  std::remove(path.c_str());
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoad(&module, path.c_str()), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(Code, a_pointer_that_is_no_function_is_an_invalid_handle) {
  int here = 0, value = 0;
  // cudaLaunchKernel passes this pointer on if it does not know the kernel
  const auto function = reinterpret_cast<CUfunction>(&here);
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function), CUDA_ERROR_INVALID_HANDLE);
}

// This test runs in a process of its own, because a fault persists until the process ends.
TEST(CodeFault, work_behind_a_fault_is_dropped_and_callbacks_are_told) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto in_child = [] {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    void* word = nullptr;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    cuModuleLoadData(&module, ptx);
    cuModuleGetFunction(&fill, module, "fill");
    cuMemHostAlloc(&word, 64, 0);
    std::memset(word, 0, 64);
    static CUresult told = CUDA_SUCCESS;
    static bool ran = false;
    CUdeviceptr nowhere = 64;
    unsigned char bias = 0;
    unsigned count = 1;
    void* parameters[] = {&nowhere, &bias, &count};
    const auto address = reinterpret_cast<CUdeviceptr>(word);
    // blocks the stream until all of the following work is queued
    cuStreamWaitValue32(nullptr, address + 8, 1, CU_STREAM_WAIT_VALUE_EQ);
    cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    cuStreamWriteValue32(nullptr, address, 1, 0);
    cuLaunchHostFunc(
        nullptr, [](void*) { ran = true; }, nullptr);
    cuStreamAddCallback(
        nullptr, [](CUstream, CUresult status, void*) { told = status; }, nullptr, 0);
    std::atomic_ref(static_cast<unsigned*>(word)[2]).store(1);
    const CUresult result = cuCtxSynchronize();
    std::fprintf(stderr, "result %d told %d ran %d word %d\n", result, told, ran, *static_cast<int*>(word));
    _exit(0);
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(0), "result 700 told 700 ran 0 word 0");
}

}  // namespace
