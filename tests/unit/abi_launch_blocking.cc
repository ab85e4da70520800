#include "ring/abi/launch_blocking.h"

#include <gtest/gtest.h>

namespace {

TEST(LaunchBlocking, IsSwitchedOnByOneAlone) {
  EXPECT_TRUE(cuabi::launches_block("1"));
  for (const char* value : {static_cast<const char*>(nullptr), "", "0", "2", "1 ", "true"})
    EXPECT_FALSE(cuabi::launches_block(value)) << (value == nullptr ? "not set" : value);
}

}  // namespace
