// Green contexts: their streams, objects that outlive them, threads that alternate in one green context, and their
// maximum number. The tests run on the strict fake driver and on the simulated GPU. The strict driver aborts at a
// foreign resource, or if a green context is current in two worker threads.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "ring/wire/record.h"
#include "tests/loopback/in_process.h"
#include "tests/loopback/kernels.h"

namespace {

using loopback::backend, loopback::InProcess;

class GreenContexts : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loopback_.ok());
    ASSERT_EQ(cu::cuCtxGetCurrent(&primary_), CUDA_SUCCESS);
  }
  static CUdevResource all() {
    CUdevResource all;
    std::memset(&all, 0, sizeof all);
    EXPECT_EQ(cu::cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    return all;
  }
  static CUgreenCtx create() {
    const CUdevResource whole = all();
    CUdevResource part;
    CUdevResourceDesc description = nullptr;
    CUgreenCtx green = nullptr;
    unsigned groups = 1;
    EXPECT_EQ(cu::cuDevSmResourceSplitByCount(&part, &groups, &whole, nullptr, 0, 1), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuDevResourceGenerateDesc(&description, &part, 1), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
    return green;
  }
  static CUcontext as_context(CUgreenCtx green) {
    CUcontext context = nullptr;
    EXPECT_EQ(cu::cuCtxFromGreenCtx(&context, green), CUDA_SUCCESS);
    return context;
  }
  static CUstream stream_of(CUgreenCtx green) {
    CUstream stream = nullptr;
    EXPECT_EQ(cu::cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    return stream;
  }
  // Fills memory on a stream and checks the bytes.
  static void work(CUfunction fill, CUstream stream, CUdeviceptr at, std::uint32_t value) {
    std::uint32_t count = 64, read = 0;
    void* arguments[] = {&at, &count, &value};
    EXPECT_EQ(cu::cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuMemcpyDtoHAsync_v2(&read, at, sizeof read, stream), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(read, value);
  }
  static CUfunction fill() {
    CUmodule module = nullptr;
    CUfunction found = nullptr;
    EXPECT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
    EXPECT_EQ(cu::cuModuleGetFunction(&found, module, "fill"), CUDA_SUCCESS);
    return found;
  }

  InProcess loopback_{backend()};
  CUcontext primary_ = nullptr;
};

TEST_F(GreenContexts, HaveStreamsAndShareTheRest) {
  const CUgreenCtx green = create();
  const CUcontext context = as_context(green);
  const CUstream named = stream_of(green);
  EXPECT_EQ(cu::cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
  CUstream made = nullptr;
  CUdeviceptr at = 0;
  CUevent event = nullptr;
  EXPECT_EQ(cu::cuStreamCreate(&made, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemAlloc_v2(&at, 256), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuEventCreate(&event, 0), CUDA_SUCCESS);
  const CUfunction kernel = fill();
  for (const CUstream stream : {CUstream{}, named, made}) work(kernel, stream, at, 3);
  EXPECT_EQ(cu::cuEventRecord(event, made), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
  for (const CUstream stream : {CUstream{}, named, made}) work(kernel, stream, at, 4);
  CUcontext of = nullptr;
  EXPECT_EQ(cu::cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, at), CUDA_SUCCESS);
  EXPECT_EQ(of, primary_);
  EXPECT_EQ(cu::cuGreenCtxDestroy(green), CUDA_SUCCESS);
  for (const CUstream stream : {named, made}) {
    EXPECT_EQ(cu::cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cu::cuStreamDestroy_v2(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  }
  work(kernel, nullptr, at, 5);
  EXPECT_EQ(cu::cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemFree_v2(at), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuGreenCtxDestroy(green), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST_F(GreenContexts, AreUsedByThreadsInTurns) {
  const CUgreenCtx green = create();
  const CUcontext context = as_context(green);
  CUdeviceptr at = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&at, 256), CUDA_SUCCESS);
  const CUfunction kernel = fill();
  for (std::uint32_t turn = 0; turn < 4; ++turn)
    std::thread([&] {
      EXPECT_EQ(cu::cuCtxSetCurrent(context), CUDA_SUCCESS);
      work(kernel, nullptr, at, turn);
      EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
      EXPECT_EQ(cu::cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);
    }).join();
  EXPECT_EQ(cu::cuGreenCtxDestroy(green), CUDA_SUCCESS);
}

// Another thread destroys this thread's green context.
TEST_F(GreenContexts, EndUnderAThread) {
  const CUgreenCtx green = create();
  EXPECT_EQ(cu::cuCtxSetCurrent(as_context(green)), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  std::thread([&] { EXPECT_EQ(cu::cuGreenCtxDestroy(green), CUDA_SUCCESS); }).join();
  unsigned long long id = 0;
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cu::cuGreenCtxGetId(nullptr, &id), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cu::cuCtxSetCurrent(primary_), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(GreenContexts, KeepThePrimaryOneAndEndWithItsReset) {
  const CUgreenCtx kept = create(), reset = create();
  const CUstream stream = stream_of(reset);
  EXPECT_EQ(cu::cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);  // the program's own reference to the primary context
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuGreenCtxDestroy(kept), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cu::cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(cu::cuGreenCtxDestroy(reset), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CUcontext again = nullptr;
  EXPECT_EQ(cu::cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
  const CUgreenCtx after = create();
  EXPECT_EQ(cu::cuGreenCtxDestroy(after), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(GreenContexts, TakeTheNumbersOfCreatedOnes) {
  std::vector<CUgreenCtx> greens;
  for (unsigned i = ring::first_created_context; i < ring::max_contexts; ++i) greens.push_back(create());
  CUgreenCtx none = nullptr;
  CUcontext context = nullptr;
  EXPECT_EQ(cu::cuGreenCtxCreate(&none, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu::cuCtxCreate_v4(&context, nullptr, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu::cuGreenCtxDestroy(greens.back()), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxCreate_v4(&context, nullptr, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxDestroy_v2(context), CUDA_SUCCESS);
  greens.back() = create();
  for (const CUgreenCtx green : greens) EXPECT_EQ(cu::cuGreenCtxDestroy(green), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(GreenContexts, AreNoCreatedContexts) {
  const CUgreenCtx green = create();
  const CUcontext context = as_context(green);
  EXPECT_EQ(cu::cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cu::cuCtxSetCurrent(reinterpret_cast<CUcontext>(green)), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext of = nullptr;
  EXPECT_EQ(cu::cuCtxFromGreenCtx(&of, reinterpret_cast<CUgreenCtx>(context)), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cu::cuGreenCtxDestroy(green), CUDA_SUCCESS);
}

}  // namespace
