// A CID and a port for one guest, chosen so that no other guest has either, and the messages on a machine without
// vsock.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/vm/vsock.h"

namespace ivgpu {
namespace {

using Numbers = std::set<std::uint32_t>;

TEST(Vsock, TheFirstNumberIsTakenWhoseCidAndPortAreFree) {
  Numbers cids = {10, 11}, taken;
  const Numbers ports = {12, 14};
  const auto take = [&] {
    return first_free(
        10, 8, [&](std::uint32_t n) { return cids.insert(n).second && taken.insert(n).second; },
        [&](std::uint32_t n) { return ports.count(n) == 0; });
  };
  EXPECT_EQ(take(), 13U) << "10 and 11 are CIDs of others, at port 12 somebody listens";
  EXPECT_EQ(taken, (Numbers{12, 13}));
  EXPECT_EQ(take(), 15U);
  EXPECT_EQ(take(), 16U);
  EXPECT_EQ(take(), 17U);
  EXPECT_EQ(take(), std::nullopt) << "eight were looked at";
}

std::string refusal_of(const char* device) {
  try {
    take_vsock(device);
  } catch (const Error& refused) {
    EXPECT_EQ(refused.code, exit_code::missing);
    return refused.what();
  }
  return "";
}

TEST(Vsock, ReportsTheRemedyOnAMachineWithoutIt) {
  EXPECT_EQ(refusal_of("/nowhere/vhost-vsock"),
            "this machine has no /nowhere/vhost-vsock: 'modprobe vhost_vsock', as root, makes it where the kernel has "
            "vsock, or leave --vsock out for doorbells by virtio-serial");
  const std::string other = refusal_of("/dev/null");
  EXPECT_EQ(other.rfind("the kernel gives no CID of vsock: ", 0), 0U) << other;
}

}  // namespace
}  // namespace ivgpu
