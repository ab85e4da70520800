// Sizes in the notation of users, of ivgpud and of QEMU.
#include <gtest/gtest.h>

#include <algorithm>

#include "tools/ivgpu/support/broker.h"
#include "tools/ivgpu/support/size.h"
#include "tools/ivgpu/vm/qemu.h"

namespace ivgpu {
namespace {

TEST(Size, EitherNotationIsUnderstood) {
  for (const char* text : {"1G", "1GiB", "1g"}) {
    EXPECT_EQ(size_for_config(text), "1GiB") << text;
    EXPECT_EQ(size_for_qemu(text), "1G") << text;
  }
  EXPECT_EQ(size_for_config("512M"), "512MiB");
  EXPECT_EQ(size_for_config("2048"), "2048MiB");
  EXPECT_EQ(size_for_qemu("2048"), "2048M");
  EXPECT_EQ(size_for_qemu("65536KiB"), "65536K");
}

TEST(Size, LeavesInvalidTextToTheValidator) {
  for (const char* text : {"", "G", "GiB", "1GB", "1 G", "1.5G", "-1G", "1GiBiB", "1iB", "1X", "1Gi", "0x10", "1\"G"}) {
    EXPECT_EQ(size_for_config(text), text);
    EXPECT_EQ(size_for_qemu(text), text);
  }
}

TEST(Size, InBytes) {
  EXPECT_EQ(size_in_bytes("65536KiB"), 65536U << 10);
  EXPECT_EQ(size_in_bytes("2048"), std::uint64_t{2048} << 20);
  EXPECT_EQ(size_in_bytes("3T"), std::uint64_t{3} << 40);
  for (const char* text : {"", "lots", "1GB", "99999999T", "99999999999999999999"})
    EXPECT_EQ(size_in_bytes(text), std::nullopt) << text;
}

TEST(Size, ReachesTheBrokerAndQemuInTheirNotation) {
  const std::string config = broker_config({.vm = "v", .gpu = "sim", .region_size = "1G"}, "/run/x");
  EXPECT_NE(config.find("region_size = \"1GiB\"\n"), std::string::npos) << config;
  QemuOptions qemu;
  qemu.memory = "2GiB";
  const auto words = qemu_command(qemu);
  const auto at = std::find(words.begin(), words.end(), "-m");
  ASSERT_TRUE(at != words.end() && at + 1 != words.end());
  EXPECT_EQ(at[1], "2G");
}

}  // namespace
}  // namespace ivgpu
