// A library and a worker of different releases that share one layout: docs/wire-format.md, Versions.
#include <gtest/gtest.h>

#include <string>

#include "guest/process/process.h"
#include "ring/api/call.h"
#include "tests/loopback/backend_fake.h"
#include "tests/loopback/in_process.h"
#include "tests/loopback/kernels.h"
#include "tests/other_side.h"

namespace {

using loopback::backend, loopback::fake_driver, loopback::InProcess;

// A worker that claims to know calls up to these numbers.
template <std::uint16_t driver, std::uint16_t session>
loopback::InProcessOptions with_worker_of() {
  loopback::InProcessOptions options;
  options.before_open = [](ring::SlotView slot) {
    other_side::header(slot).driver_calls = driver;
    other_side::header(slot).session_calls = session;
  };
  return options;
}

int make_a_cluster_question() {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  int clusters = 0;
  CUmodule module = nullptr;
  CUfunction f = nullptr;
  EXPECT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuModuleGetFunction(&f, module, "fill"), CUDA_SUCCESS);
  return cu::cuOccupancyMaxActiveClusters(&clusters, f, &config);
}

// A library newer than its worker refuses calls that the worker lacks, by name; all others work.
TEST(Release, WhatAnOlderWorkerDoesNotKnowIsNotSent) {
  constexpr std::uint16_t known = api::id_of::cuOccupancyMaxActiveClusters - 1;
  InProcess loopback(backend(), with_worker_of<known, api::id_of::take_output>());
  ASSERT_TRUE(loopback.ok());
  testing::internal::CaptureStderr();
  EXPECT_EQ(make_a_cluster_question(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(make_a_cluster_question(), CUDA_ERROR_NOT_SUPPORTED);
  const std::string log = testing::internal::GetCapturedStderr();
  const std::size_t first = log.find("cuOccupancyMaxActiveClusters is not served by this host (release 9.9.9)");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("cuOccupancyMaxActiveClusters is", first + 1), std::string::npos) << "said twice: " << log;
  EXPECT_EQ(fake_driver().calls("cuOccupancyMaxActiveClusters"), 0u);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS) << "the program goes on";
}

// Tests every call beyond the known numbers, in each way of sending: flat and CUSTOM records, posted and waited calls,
// and launches.
TEST(Release, NoWayOfSendingPassesTheNumber) {
  InProcess loopback(backend(), with_worker_of<1, api::id_of::take_output>());
  EXPECT_FALSE(HasFailure());
  CUdeviceptr at = 0;
  CUstream stream = nullptr;
  CUmodule module = nullptr;
  EXPECT_EQ(cu::cuMemAlloc_v2(&at, 16), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cu::cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cu::cuModuleLoadData(&module, loopback::module_text), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_TRUE(guest::session()->liveness().usable());
}

// The worker does not know the session's call for joining. The library then does not join the arena.
TEST(Release, AnOlderWorkerIsNotAskedToJoinTheArena) {
  InProcess loopback(backend(), with_worker_of<api::known_ids.driver, api::id_of::take_output>());
  ASSERT_TRUE(loopback.ok());
  void* pinned = nullptr;
  ASSERT_EQ(cu::cuMemHostAlloc(&pinned, std::size_t{50} << 20, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuMemHostAlloc(&pinned, std::size_t{64} << 20, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cu::cuMemHostAlloc(&pinned, std::size_t{50} << 20, 0), CUDA_SUCCESS);
  EXPECT_TRUE(guest::session()->liveness().usable());
}

TEST(Release, AWorkerThatReportsNothingHasAnOlderWorkersCalls) {
  InProcess loopback(backend(), with_worker_of<0, 0>());
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(make_a_cluster_question(), CUDA_SUCCESS);
  EXPECT_FALSE(guest::session()->slot().serves(api::id_of::join_arena));
  EXPECT_FALSE(guest::session()->slot().serves(api::silent_workers_ids.driver + 1));
}

// The reverse case: a worker that knows more calls than the library, or claims impossible numbers.
TEST(Release, ANewerWorkerServesThisLibrary) {
  InProcess loopback(backend(), with_worker_of<0xffff, 0xffff>());
  ASSERT_TRUE(loopback.ok());
  EXPECT_EQ(make_a_cluster_question(), CUDA_SUCCESS);
  EXPECT_EQ(cu::cuCtxSynchronize(), CUDA_SUCCESS);
}

}  // namespace
