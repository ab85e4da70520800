// The program's functions in stream order (cuLaunchHostFunc, cuStreamAddCallback), with the real guest library and a
// real worker.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/child.h"
#include "tests/deadline.h"
#include "tests/loopback/in_process.h"

namespace {

using namespace std::chrono_literals;
using loopback::backend, loopback::InProcess;

// Adapts a std::function to the driver's signature.
void call(void* function) { (*static_cast<std::function<void()>*>(function))(); }
CUresult launch(CUstream stream, std::function<void()>& function) {
  return cu::cuLaunchHostFunc(stream, call, &function);
}

struct Called {
  CUstream stream = nullptr;
  CUresult status = CUDA_ERROR_UNKNOWN;
  std::atomic<int> times{0};
  static void run(CUstream stream, CUresult status, void* self) {
    auto& called = *static_cast<Called*>(self);
    called.stream = stream, called.status = status;
    ++called.times;
  }
};

class HostFunctions : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loopback_.ok());
    EXPECT_EQ(cu::cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  CUresult wait() { return cu::cuStreamSynchronize(stream_); }

  InProcess loopback_{backend()};
  CUstream stream_ = nullptr;
};

TEST_F(HostFunctions, AreCalledInTheirStreamsOrder) {
  std::vector<int> order;
  std::vector<std::function<void()>> functions;
  for (int i = 0; i < 50; ++i) functions.emplace_back([&order, i] { order.push_back(i); });
  for (auto& function : functions) ASSERT_EQ(launch(stream_, function), CUDA_SUCCESS);
  ASSERT_EQ(wait(), CUDA_SUCCESS);
  ASSERT_EQ(order.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(order[i], static_cast<int>(i));
}

TEST_F(HostFunctions, AThousandOutstandingAtATime) {
  std::atomic<int> calls{0};
  std::function<void()> count = [&] { ++calls; };
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(launch(stream_, count), CUDA_SUCCESS);
  ASSERT_EQ(wait(), CUDA_SUCCESS);
  EXPECT_EQ(calls, 1000);
}

TEST_F(HostFunctions, RunOneAtATimeOverAllStreams) {
  std::array<CUstream, 8> streams{};
  std::atomic<int> inside{0}, most{0}, calls{0};
  std::function<void()> look = [&] {
    most = std::max(most.load(), ++inside);
    std::this_thread::yield();
    --inside, ++calls;
  };
  for (CUstream& one : streams) ASSERT_EQ(cu::cuStreamCreate(&one, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  for (int i = 0; i < 20; ++i)
    for (CUstream one : streams) ASSERT_EQ(launch(one, look), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(calls, 160);
  EXPECT_EQ(most, 1);
}

TEST_F(HostFunctions, AStreamCallbackGetsItsStreamAndStatus) {
  Called called;
  ASSERT_EQ(cu::cuStreamAddCallback(stream_, Called::run, &called, 0), CUDA_SUCCESS);
  ASSERT_EQ(wait(), CUDA_SUCCESS);
  EXPECT_EQ(called.times, 1);
  EXPECT_EQ(called.stream, stream_);
  EXPECT_EQ(called.status, CUDA_SUCCESS);
}

TEST_F(HostFunctions, TheirOwnCallsAreRefused) {
  std::array<CUresult, 4> inside{};
  CUdeviceptr memory = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
  std::function<void()> tries = [&] {
    CUcontext context = nullptr;
    CUdeviceptr more = 0;
    inside = {cu::cuMemAlloc_v2(&more, 64), cu::cuCtxGetCurrent(&context), cu::cuStreamQuery(stream_),
              cu::cuMemsetD8Async(memory, 1, 64, stream_)};
  };
  ASSERT_EQ(launch(stream_, tries), CUDA_SUCCESS);
  ASSERT_EQ(wait(), CUDA_SUCCESS);
  for (const CUresult result : inside) EXPECT_EQ(result, CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(cu::cuMemsetD8Async(memory, 1, 64, stream_), CUDA_SUCCESS) << "other threads' are not";
}

TEST_F(HostFunctions, WrongArgumentsCallNothing) {
  Called called;
  std::function<void()> nothing = [] { FAIL(); };
  EXPECT_EQ(cu::cuLaunchHostFunc(stream_, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuStreamAddCallback(stream_, nullptr, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cu::cuStreamAddCallback(stream_, Called::run, &called, 1), CUDA_ERROR_INVALID_VALUE);
  CUstream gone = nullptr;
  ASSERT_EQ(cu::cuStreamCreate(&gone, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuStreamDestroy_v2(gone), CUDA_SUCCESS);
  EXPECT_EQ(launch(gone, nothing), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(called.times, 0);
}

TEST_F(HostFunctions, OneThatBlocksHoldsItsStreamAndNoCallOfTheProgram) {
  std::atomic<bool> may_go_on{false}, begun{false};
  std::function<void()> blocks = [&] {
    begun = true;
    while (!may_go_on) std::this_thread::sleep_for(1ms);
  };
  std::thread launcher([&] {  // in a thread, since the strict driver calls the function during the launch
    EXPECT_EQ(loopback::use_device(), CUDA_SUCCESS);
    EXPECT_EQ(launch(stream_, blocks), CUDA_SUCCESS);
    EXPECT_EQ(wait(), CUDA_SUCCESS);
  });
  EXPECT_TRUE(before_deadline([&] { return begun.load(); }));
  CUdeviceptr memory = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
  may_go_on = true;
  launcher.join();
}

TEST_F(HostFunctions, OneThatIsOutstandingWhenTheWorkerEndsIsNeverWaitedFor) {
  std::atomic<bool> may_go_on{false}, begun{false}, ended{false};
  std::function<void()> blocks = [&] {
    begun = true;
    while (!may_go_on) std::this_thread::sleep_for(1ms);
    ended = true;
  };
  std::thread launcher([&] {
    EXPECT_EQ(loopback::use_device(), CUDA_SUCCESS);
    EXPECT_EQ(launch(stream_, blocks), CUDA_SUCCESS);
    wait();
  });
  EXPECT_TRUE(before_deadline([&] { return begun.load(); }));
  EXPECT_EQ(loopback_.end_worker(), host::Served::Ended);
  launcher.join();
  std::function<void()> nothing = [] { FAIL(); };
  EXPECT_EQ(launch(stream_, nothing), CUDA_ERROR_DEVICE_UNAVAILABLE);
  may_go_on = true;
  EXPECT_TRUE(before_deadline([&] { return ended.load(); })) << "it still runs in this process";
}

// A forked child has neither the session nor its callback thread.
TEST_F(HostFunctions, AfterAForkTheChildHasNone) {
  std::function<void()> nothing = [] {};
  ASSERT_EQ(launch(stream_, nothing), CUDA_SUCCESS);
  ASSERT_EQ(wait(), CUDA_SUCCESS);
  EXPECT_EQ(run_in_child([&] { return launch(stream_, nothing) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1; }), 0);
  EXPECT_EQ(launch(stream_, nothing), CUDA_SUCCESS);
  EXPECT_EQ(wait(), CUDA_SUCCESS);
}

}  // namespace
