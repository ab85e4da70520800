#include "ring/abi/launch_blocking.h"

#include <gtest/gtest.h>

namespace {

// The values are from an H200's driver.
TEST(LaunchBlocking, IsSwitchedOnByTheNumberOneAlone) {
  for (const char* value : {"1", " 1", "01", "1x"}) EXPECT_TRUE(cuabi::launches_block(value)) << value;
  for (const char* value : {static_cast<const char*>(nullptr), "", "0", "2", "x", "true"})
    EXPECT_FALSE(cuabi::launches_block(value)) << (value == nullptr ? "not set" : value);
}

}  // namespace
