// A fixture for tests of the simulated GPU's driver calls: makes the primary context current, and prints readable
// failures.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <ostream>

inline const char* code_name(CUresult code) {
  const char* name = nullptr;
  cuGetErrorName(code, &name);
  return name == nullptr ? "a code without a name" : name;
}

// Prints the name of the code instead of its number.
inline void PrintTo(CUresult code, std::ostream* out) { *out << code_name(code); }

#define OK(call) ASSERT_EQ((call), CUDA_SUCCESS)

class InContext : public testing::Test {
 protected:
  void SetUp() override {
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context_, 0));
    OK(cuCtxSetCurrent(context_));
  }
  void TearDown() override {
    EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }
  CUcontext context_ = nullptr;
};
