// ivgpu-check's judgement of a kernel module, from the module's own information: one line states whether interrupts
// wake programs, or the reason why not.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "tools/check/module.h"

namespace check {
namespace {

Finding judge(std::uint32_t device, std::uint32_t module, std::uint32_t broker, std::uint32_t slots = 8,
              bool no_doorbell = false) {
  IvgpuModuleInfo info{};
  info.device_vectors = device, info.vectors = module;
  info.flags = module > 0 ? IVGPU_MODULE_WAKES : 0;
  std::strcpy(info.release, "0.9.7");
  return judge_wakes("/dev/ivgpu0", info, {slots, broker, no_doorbell});
}

bool says(const Finding& f, const char* words) { return (f.what + " -> " + f.remedy).find(words) != std::string::npos; }

TEST(CheckModule, OneThatWakesEverybody) {
  for (const auto& [device, module, broker] : {std::array{1u, 1u, 1u}, {4u, 4u, 4u}, {64u, 8u, 64u}, {64u, 8u, 8u}}) {
    const Finding f = judge(device, module, broker);
    EXPECT_EQ(f.state, State::Ok) << f.what;
    EXPECT_EQ(f.what, "/dev/ivgpu0 of kernel module 0.9.7: processes are apart, and their waits are woken");
  }
}

TEST(CheckModule, ABrokerThatRaisesNoInterrupts) {
  const Finding f = judge(1, 1, 0);
  EXPECT_EQ(f.state, State::Warning);
  EXPECT_TRUE(says(f, "processes are apart, but waits use timed sleeps")) << f.what;
  EXPECT_TRUE(says(f, "the broker raises no interrupts")) << f.what;
}

TEST(CheckModule, ADeviceThatIsMemoryAlone) {
  const Finding f = judge(0, 0, 0, 8, true);
  EXPECT_EQ(f.state, State::Warning);
  EXPECT_TRUE(says(f, "processes are apart, but waits use timed sleeps")) << f.what;
  EXPECT_TRUE(says(f, "an ivshmem-plain device has no interrupts and no doorbell -> give the VM")) << f.what;
  // The module's information counts, whatever a program of the VM has written into the region.
  EXPECT_EQ(judge(4, 4, 4, 8, true).state, State::Ok);
}

TEST(CheckModule, AKernelThatGivesNoInterrupts) {
  const Finding f = judge(4, 0, 4);
  EXPECT_EQ(f.state, State::Warning);
  EXPECT_TRUE(says(f, "the module has no interrupts of the device -> the kernel's log")) << f.what;
}

TEST(CheckModule, QemuAndTheConfigurationHaveDifferentNumbers) {
  const Finding f = judge(4, 4, 1);
  EXPECT_EQ(f.state, State::Warning);
  EXPECT_TRUE(says(f, "waits in 6 of 8 slots use timed sleeps: the broker raises 1 interrupts, QEMU's device has 4"))
      << f.what;
  EXPECT_TRUE(says(f, "the same vectors")) << f.remedy;
}

TEST(CheckModule, ARegionWithoutSlotsWakesNobody) { EXPECT_NE(judge(1, 1, 1, 0).state, State::Ok); }

}  // namespace
}  // namespace check
