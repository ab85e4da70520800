// Created contexts: each thread's stack, objects that end with a context, and several contexts at once. The tests run
// on the strict fake driver, which aborts when a destroyed context is used, and on the simulated GPU.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/loopback/in_process.h"
#include "tests/loopback/kernels.h"

namespace {

using loopback::backend, loopback::InProcess;

class Contexts : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loopback_.ok());
    ASSERT_EQ(cu::cuCtxGetCurrent(&primary_), CUDA_SUCCESS);
  }
  static CUcontext create() {
    CUcontext context = nullptr;
    EXPECT_EQ(cu::cuCtxCreate_v4(&context, nullptr, 0, 0), CUDA_SUCCESS);
    return context;
  }
  static CUcontext current() {
    CUcontext context = nullptr;
    EXPECT_EQ(cu::cuCtxGetCurrent(&context), CUDA_SUCCESS);
    return context;
  }
  static CUdeviceptr allocate() {
    CUdeviceptr at = 0;
    EXPECT_EQ(cu::cuMemAlloc_v2(&at, 256), CUDA_SUCCESS);
    return at;
  }
  static CUstream new_stream() {
    CUstream stream = nullptr;
    EXPECT_EQ(cu::cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    return stream;
  }

  InProcess loopback_{backend()};
  CUcontext primary_ = nullptr;
};

TEST_F(Contexts, AreAStackOfEachThread) {
  const CUcontext a = create();
  EXPECT_EQ(current(), a);
  const CUcontext b = create();
  EXPECT_EQ(current(), b);
  std::thread([] { EXPECT_EQ(current(), nullptr); }).join();
  CUcontext popped = nullptr;
  EXPECT_EQ(cu::cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
  EXPECT_EQ(popped, b);
  EXPECT_EQ(current(), a);
  EXPECT_EQ(cu::cuCtxPushCurrent_v2(b), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxDestroy_v2(b), CUDA_SUCCESS);
  EXPECT_EQ(current(), a) << "the destroyed one is popped";
  EXPECT_EQ(cu::cuCtxDestroy_v2(a), CUDA_SUCCESS);
  EXPECT_EQ(current(), primary_);
  EXPECT_EQ(cu::cuCtxDestroy_v2(a), CUDA_ERROR_CONTEXT_IS_DESTROYED) << "twice";
  EXPECT_EQ(cu::cuCtxSetCurrent(a), CUDA_SUCCESS) << "as the driver has it";
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cu::cuCtxSetCurrent(primary_), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxDestroy_v2(primary_), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, TakeAlongWhatLivesInThem) {
  const CUstream outside = new_stream();
  const CUdeviceptr kept = allocate();
  const CUcontext context = create();
  const CUstream inside = new_stream();
  const CUdeviceptr lost = allocate();
  CUcontext of = nullptr;
  EXPECT_EQ(cu::cuStreamGetCtx(inside, &of), CUDA_SUCCESS);
  EXPECT_EQ(of, context);
  EXPECT_EQ(cu::cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, lost), CUDA_SUCCESS);
  EXPECT_EQ(of, context);
  EXPECT_EQ(cu::cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, kept), CUDA_SUCCESS);
  EXPECT_EQ(of, primary_);
  EXPECT_EQ(cu::cuMemsetD8Async(lost, 1, 256, inside), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxDestroy_v2(context), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuStreamSynchronize(inside), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cu::cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, lost), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuMemFree_v2(lost), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuStreamSynchronize(outside), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemsetD8_v2(kept, 1, 256), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemFree_v2(kept), CUDA_SUCCESS);
}

// Another thread destroys this thread's context. Later calls still name that context and return its error.
TEST_F(Contexts, EndUnderAThread) {
  const CUcontext context = create();
  EXPECT_EQ(cu::cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
  std::thread([&] {
    EXPECT_EQ(cu::cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
    std::thread([&] { EXPECT_EQ(cu::cuCtxDestroy_v2(context), CUDA_SUCCESS); }).join();
    CUdeviceptr at = 0;
    CUstream stream = nullptr;
    EXPECT_EQ(cu::cuMemAlloc_v2(&at, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cu::cuStreamCreate(&stream, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cu::cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT) << "the stack is empty";
    EXPECT_EQ(cu::cuCtxPopCurrent_v2(nullptr), CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(Contexts, RunKernelsEachItsOwn) {
  std::vector<CUcontext> contexts;
  std::vector<CUdeviceptr> results;
  for (std::uint32_t i = 1; i <= 3; ++i) {
    contexts.push_back(create());
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
    CUdeviceptr at = allocate();
    std::uint32_t count = 64;
    void* arguments[] = {&at, &count, &i};
    EXPECT_EQ(cu::cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr), CUDA_SUCCESS);
    results.push_back(at);
    EXPECT_EQ(cu::cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
  }
  for (std::uint32_t i = 1; i <= 3; ++i) {
    std::uint32_t value = 0;
    EXPECT_EQ(cu::cuCtxPushCurrent_v2(contexts[i - 1]), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuMemcpyDtoH_v2(&value, results[i - 1], sizeof value), CUDA_SUCCESS);
    EXPECT_EQ(value, i);
    EXPECT_EQ(cu::cuCtxDestroy_v2(contexts[i - 1]), CUDA_SUCCESS);
  }
}

// A function belongs to its module's context, not to the context that is current at the lookup.
TEST_F(Contexts, HaveWhatIsFoundInTheirModules) {
  const CUcontext context = create();
  CUmodule module = nullptr;
  ASSERT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
  CUdeviceptr at = allocate(), counter = 0;
  const CUcontext other = create();
  CUfunction fill = nullptr;
  std::size_t bytes = 0;
  ASSERT_EQ(cu::cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuModuleGetGlobal_v2(&counter, &bytes, module, "counter"), CUDA_SUCCESS);
  CUcontext of = nullptr;
  EXPECT_EQ(cu::cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, counter), CUDA_SUCCESS);
  EXPECT_EQ(of, context);
  std::uint32_t count = 64, value = 5;
  void* arguments[] = {&at, &count, &value};
  const auto launch = [&] { return cu::cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr); };
  EXPECT_EQ(launch(), CUDA_ERROR_INVALID_HANDLE);
  for (const bool other_has_ended : {false, true}) {
    if (other_has_ended) {
      EXPECT_EQ(cu::cuCtxDestroy_v2(other), CUDA_SUCCESS);
    }
    EXPECT_EQ(cu::cuCtxSetCurrent(context), CUDA_SUCCESS);
    value = other_has_ended ? 6 : 5;
    EXPECT_EQ(launch(), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuMemcpyDtoD_v2(counter, at, bytes), CUDA_SUCCESS);
    std::uint32_t seen = 0;
    EXPECT_EQ(cu::cuMemcpyDtoH_v2(&seen, counter, sizeof seen), CUDA_SUCCESS);
    EXPECT_EQ(seen, value);
  }
  EXPECT_EQ(cu::cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

TEST_F(Contexts, AreCountedWhenAttached) {
  const CUcontext context = create();
  CUcontext attached = nullptr;
  EXPECT_EQ(cu::cuCtxAttach(&attached, 0), CUDA_SUCCESS);
  EXPECT_EQ(attached, context);
  EXPECT_EQ(cu::cuCtxDetach(context), CUDA_SUCCESS);
  EXPECT_EQ(current(), context);
  EXPECT_EQ(cu::cuCtxDetach(context), CUDA_SUCCESS);
  EXPECT_EQ(current(), primary_) << "its last user has let go";
}

TEST_F(Contexts, AreBoundedAndTheirNumbersComeAgain) {
  std::vector<CUcontext> contexts;
  CUcontext context = nullptr;
  while (cu::cuCtxCreate_v4(&context, nullptr, 0, 0) == CUDA_SUCCESS) contexts.push_back(context);
  EXPECT_EQ(contexts.size(), ring::max_contexts - ring::first_created_context);
  EXPECT_EQ(cu::cuCtxCreate_v4(&context, nullptr, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  for (const CUcontext c : contexts) EXPECT_EQ(cu::cuCtxDestroy_v2(c), CUDA_SUCCESS);
  for (int i = 0; i < 100; ++i) {
    context = create();
    EXPECT_EQ(cu::cuMemFree_v2(allocate()), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuCtxDestroy_v2(context), CUDA_SUCCESS);
  }
}

TEST_F(Contexts, SeveralThreadsMakeAndEndThem) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 20; ++i) {
        const CUcontext context = create();
        const CUstream stream = new_stream();
        EXPECT_EQ(cu::cuMemsetD8Async(allocate(), 7, 256, stream), CUDA_SUCCESS);
        EXPECT_EQ(cu::cuStreamSynchronize(stream), CUDA_SUCCESS);
        EXPECT_EQ(cu::cuCtxDestroy_v2(context), CUDA_SUCCESS);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

}  // namespace
