// A guest with the kernel module and its worker in one process. The module assigns the slot. Waits sleep in the module
// until the worker raises an interrupt. Removing the device ends the session.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "guest/process/process.h"
#include "guest/process/thread.h"
#include "guest/session/channel.h"
#include "tests/deadline.h"
#include "tests/loopback/backend_fake.h"
#include "tests/loopback/in_process.h"

namespace {

using loopback::backend, loopback::fake_driver, loopback::InProcess;
using namespace std::chrono_literals;

loopback::InProcessOptions with_module() {
  loopback::InProcessOptions o;
  o.same_kernel = false;
  o.module = true;
  return o;
}

class WithModule : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(loopback_.ok());
    ASSERT_EQ(cu::cuMemAlloc_v2(&device_, 4096), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  }
  void TearDown() override { fake_driver().open_gate(); }
  // Blocks the worker in a driver call until the test opens the gate.
  void block_worker() {
    fake_driver().close_gate();
    ASSERT_EQ(cu::cuMemsetD8Async(device_, 1, 1, stream_), CUDA_SUCCESS);
    while (!fake_driver().somebody_waits()) std::this_thread::yield();
  }
  loopback::FakeModule& module() { return *loopback_.module(); }
  void await_sleeper() {
    while (module().asleep() == 0) std::this_thread::yield();
  }

  InProcess loopback_{backend(), with_module()};
  CUdeviceptr device_ = 0;
  CUstream stream_ = nullptr;
};

TEST_F(WithModule, AWaitSleepsThereAndTheWorkersInterruptEndsIt) {
  module().ignore_time_limits();
  for (int round = 0; round < 20; ++round) {
    const std::uint32_t woken = module().woken();
    block_worker();
    std::thread opener([&] {
      await_sleeper();
      fake_driver().open_gate();
    });
    EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
    opener.join();
    EXPECT_GT(module().woken(), woken) << "round " << round;
  }
}

// A long wait sleeps in steps of 50 ms, the interval of the liveness checks, without timed sleeps in between. A busy
// machine can only lengthen the steps.
TEST_F(WithModule, ALongWaitIsFewSleeps) {
  block_worker();
  const std::uint32_t slept = module().slept();
  const auto start = std::chrono::steady_clock::now();
  std::thread opener([&] {
    EXPECT_TRUE(before_deadline([&] { return module().slept() - slept >= 4; }));
    fake_driver().open_gate();
  });
  loopback::TimedSleeps sleeps;
  {
    const loopback::CountedSleeps counted(sleeps);
    EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, 3 * 50ms);
  EXPECT_EQ(sleeps.count, 0u);
  opener.join();
}

// After a sleep has returned ENODEV, the library accesses no byte of the slot, and calls fail as after the broker's
// end.
TEST_F(WithModule, ADeviceThatIsTakenAwayFailsTheCallsThatSleep) {
  block_worker();
  std::thread unplugger([&] {
    await_sleeper();
    module().unplug();
  });
  testing::internal::CaptureStderr();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ivgpu: the session with the host is lost: the ivshmem device was taken away\n");
  unplugger.join();
  EXPECT_TRUE(guest::session()->liveness().lost());
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  CUdeviceptr more = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&more, 16), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

// The kernel has replaced the slot by zeros while a thread polls. The thread's call and the next call must fail,
// whatever the thread reads. Without the library's check, calls would succeed with zeros as results.
class Ended : public WithModule {
 protected:
  void end_slot() { loopback_.slot().header()[&ring::SlotHeader::magic].store(0); }
  void expect_lost() {
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "ivgpu: the session with the host is lost: its slot was taken away\n");
    EXPECT_TRUE(guest::session()->liveness().lost());
    EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  }
};

TEST_F(Ended, AReplyOfASlotThatHasEndedIsNone) {
  testing::internal::CaptureStderr();
  end_slot();
  CUdeviceptr more = 0;
  EXPECT_EQ(cu::cuMemAlloc_v2(&more, 16), CUDA_ERROR_DEVICE_UNAVAILABLE);
  expect_lost();
}

TEST_F(Ended, AReplyWithoutResultsNeither) {
  ASSERT_EQ(cu::cuMemsetD8Async(device_, 1, 1, stream_), CUDA_SUCCESS);
  testing::internal::CaptureStderr();
  end_slot();
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEVICE_UNAVAILABLE);
  expect_lost();
}

TEST_F(Ended, StagedBytesNeither) {
  std::vector<std::byte> bytes(4 << 20);
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, bytes.size()), CUDA_SUCCESS);
  testing::internal::CaptureStderr();
  end_slot();
  EXPECT_EQ(cu::cuMemcpyDtoH_v2(bytes.data(), device, bytes.size()), CUDA_ERROR_DEVICE_UNAVAILABLE);
  expect_lost();
}

TEST_F(Ended, StagedRowsNeither) {
  std::vector<std::byte> bytes(64 * 64);
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_DEVICE, rows.srcDevice = device_, rows.srcPitch = 64;
  rows.dstMemoryType = CU_MEMORYTYPE_HOST, rows.dstHost = bytes.data(), rows.dstPitch = 64;
  rows.WidthInBytes = 32, rows.Height = 64;
  ASSERT_EQ(cu::cuMemcpy2D_v2(&rows), CUDA_SUCCESS);
  testing::internal::CaptureStderr();
  end_slot();
  EXPECT_EQ(cu::cuMemcpy2D_v2(&rows), CUDA_ERROR_DEVICE_UNAVAILABLE);
  expect_lost();
}

// The slot's data is invalid after the device's removal. The log must name the removal as the reason.
TEST_F(Ended, ThatTheDeviceHasGoneIsTheReason) {
  module().unplug();
  testing::internal::CaptureStderr();
  guest::session()->liveness().lose("a reply is shorter than its call's");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ivgpu: the session with the host is lost: the ivshmem device was taken away\n");
}

TEST_F(WithModule, WaitsUseTimedSleepsBesideAModuleWithoutSleepers) {
  module().refuse_sleeps();
  block_worker();
  loopback::TimedSleeps sleeps;
  const loopback::CountedSleeps counted(sleeps);
  std::thread opener([&] {
    EXPECT_TRUE(before_deadline([&] { return sleeps.count >= 3; }));
    fake_driver().open_gate();
  });
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_SUCCESS);
  opener.join();
}

// Other threads run until the process ends and may use the slot. Therefore only the end of the process frees the slot.
TEST_F(WithModule, AProcessThatEndsLeavesTheSlotToItsEnd) {
  guest::finish();
  EXPECT_EQ(module().released(), 0u);
  EXPECT_EQ(cu::cuStreamSynchronize(stream_), CUDA_ERROR_DEINITIALIZED);
}

TEST_F(WithModule, ASessionThatIsNotWantedGivesTheSlotBack) {
  guest::session()->leave();
  EXPECT_EQ(module().released(), 1u);
}

TEST(WithModuleOff, WaitsUseTimedSleeps) {
  setenv("IVGPU_OFF", "wakes", 1);
  InProcess loopback(backend(), with_module());
  ASSERT_TRUE(loopback.ok());
  ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(loopback.module()->slept(), 0u);
}

// With IVGPU_OFF=wakes the guest announces no sleep, even on the worker's own kernel, so the worker wakes no sleeper.
TEST(WithModuleOff, WaitsUseTimedSleepsOnThisMachine) {
  setenv("IVGPU_OFF", "wakes", 1);
  InProcess loopback(backend());
  ASSERT_TRUE(loopback.ok());
  const auto asleep = loopback.slot().control(guest::this_channel().index())[&ring::ChannelControl::guest_asleep];
  CUdeviceptr device = 0;
  ASSERT_EQ(cu::cuMemAlloc_v2(&device, 64), CUDA_SUCCESS);
  fake_driver().close_gate();
  ASSERT_EQ(cu::cuMemsetD8Async(device, 1, 1, nullptr), CUDA_SUCCESS);
  loopback::TimedSleeps sleeps;
  const loopback::CountedSleeps counted(sleeps);
  std::thread opener([&] {
    EXPECT_TRUE(before_deadline([&] {
      EXPECT_EQ(asleep.load(), 0u);
      return sleeps.count >= 20;
    }));
    fake_driver().open_gate();
  });
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  opener.join();
}

TEST(WithModuleOff, NobodyIsWokenByABrokerThatRaisesNoInterrupts) {
  loopback::InProcessOptions o = with_module();
  o.guest_vectors = 0;
  InProcess loopback(backend(), o);
  ASSERT_TRUE(loopback.ok());
  ASSERT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(loopback.module()->slept(), 0u);
}

}  // namespace
