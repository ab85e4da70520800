#include "ring/abi/error_text.h"

#include <gtest/gtest.h>

namespace {

TEST(ErrorText, name_is_not_string) {
  EXPECT_STREQ(cuabi::error_name(CUDA_ERROR_INVALID_VALUE), "CUDA_ERROR_INVALID_VALUE");
  EXPECT_STREQ(cuabi::error_string(CUDA_ERROR_INVALID_VALUE), "invalid argument");
  EXPECT_STREQ(cuabi::error_name(CUDA_SUCCESS), "CUDA_SUCCESS");
  EXPECT_STREQ(cuabi::error_string(CUDA_ERROR_ILLEGAL_ADDRESS), "an illegal memory access was encountered");
  EXPECT_STREQ(cuabi::error_string(CUDA_ERROR_UNKNOWN), "unknown error");
}

TEST(ErrorText, numbers_that_cuda_h_does_not_name_have_neither) {
  for (const int code : {-1, 9, 35, 203, 721 + 1, 917, 1000, 1 << 30}) {
    EXPECT_EQ(cuabi::error_name(static_cast<CUresult>(code)), nullptr) << code;
    EXPECT_EQ(cuabi::error_string(static_cast<CUresult>(code)), nullptr) << code;
  }
}

TEST(ErrorText, the_table_is_complete) {
  int named = 0;
  for (int code = 0; code < 1000; ++code) {
    const bool has_name = cuabi::error_name(static_cast<CUresult>(code)) != nullptr;
    EXPECT_EQ(has_name, cuabi::error_string(static_cast<CUresult>(code)) != nullptr) << code;
    named += has_name ? 1 : 0;
  }
  EXPECT_EQ(named, 101);  // the number of enumerators of CUresult in cuda.h 13.0
}

}  // namespace
