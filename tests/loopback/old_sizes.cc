// CUDA 3's forms that return sizes of 32 bits (ring/abi/old_sizes.h): how a size is clamped, and in which contexts the
// guest's forms work. On the strict fake driver.
#include <gtest/gtest.h>

#include "ring/abi/old_sizes.h"
#include "tests/loopback/backend_fake.h"
#include "tests/loopback/in_process.h"

namespace {

using loopback::InProcess;

TEST(OldSizes, ClampASizeThatDoesNotFit) {
  constexpr std::size_t gib = std::size_t{1} << 30;
  EXPECT_EQ(cuabi::size_in_32_bits(3 * gib), 3 * gib);
  EXPECT_EQ(cuabi::size_in_32_bits(4 * gib - 1), 0xffffffffu);
  EXPECT_EQ(cuabi::size_in_32_bits(4 * gib), 0xffffffffu);
}

class OldSizesCalls : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loopback_.ok()); }
  static void expect_invalid_context() {
    unsigned a = 7, b = 8;
    EXPECT_EQ(cu::cuMemGetInfo(&a, &b), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(a, 7u);
    EXPECT_EQ(b, 8u);
    EXPECT_EQ(cu::cuMemGetInfo(nullptr, nullptr), CUDA_ERROR_INVALID_CONTEXT) << "before the arguments";
    EXPECT_EQ(cu::cuDeviceTotalMem(&a, 0), CUDA_SUCCESS) << "which needs no context";
    EXPECT_EQ(a, fake::device_memory);
    EXPECT_EQ(cu::cuDeviceTotalMem(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  }

  InProcess loopback_{loopback::backend()};
};

TEST_F(OldSizesCalls, RefuseInNewerContexts) {
  expect_invalid_context();
  CUcontext context = nullptr;
  ASSERT_EQ(cu::cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
  expect_invalid_context();
  ASSERT_EQ(cu::cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cu::cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  expect_invalid_context();
}

TEST_F(OldSizesCalls, ReturnSizesInAContextOfTheOldCuCtxCreate) {
  CUcontext context = nullptr;
  ASSERT_EQ(cu::cuCtxCreate(&context, 0, 0), CUDA_SUCCESS);
  unsigned available = 0, total = 0;
  EXPECT_EQ(cu::cuMemGetInfo(&available, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, fake::device_memory);
  EXPECT_GT(available, 0u);
  total = 0;
  EXPECT_EQ(cu::cuMemGetInfo(nullptr, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, fake::device_memory);
}

}  // namespace
