// Which GPUs of a VM its workers find and which are missing. tests/loopback/shares.cc tests how the broker reacts.
#include "host/broker/alloc/gpu_presence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "host/simgpu/image/device_names.h"

namespace {

using host::broker::Gpu;
using host::broker::GpuPresence;
using host::broker::simulated_gpus;
using host::broker::VmGpus;
using host::worker::ReadyMessage;
using Words = std::vector<std::string>;

ReadyMessage worker_with(std::initializer_list<int> gpus) {
  ReadyMessage said{};
  for (const int gpu : gpus)
    std::memcpy(said.gpu[said.gpus++].uuid, simgpu::device_uuid_bytes(gpu).data(), sizeof said.gpu[0].uuid);
  return said;
}

VmGpus given(bool all, const char* count = "2") {
  VmGpus gpus;
  gpus.all = all;
  gpus.list = simulated_gpus(count);
  return gpus;
}

const std::string first = "GPU 0 (GPU-69766770-752d-7369-6d00-000000000001, 0000:01:00.0)";
const std::string second = "GPU 1 (GPU-69766770-752d-7369-6d00-000000000002, 0000:02:00.0)";

TEST(GpuPresence, WhatIsGivenAndNotFoundIsNamed) {
  const VmGpus gpus = given(false);
  GpuPresence presence;
  EXPECT_FALSE(presence.heard(gpus, worker_with({0, 1})));
  EXPECT_TRUE(presence.missing().empty());
  EXPECT_TRUE(presence.heard(gpus, worker_with({0})));
  EXPECT_EQ(presence.missing(), Words{second});
  EXPECT_FALSE(presence.heard(gpus, worker_with({0}))) << "as before";
  EXPECT_TRUE(presence.heard(gpus, worker_with({})));
  EXPECT_EQ(presence.missing(), (Words{first, second}));
  EXPECT_TRUE(presence.heard(gpus, worker_with({0, 1})));
  EXPECT_TRUE(presence.missing().empty());
}

TEST(GpuPresence, WhereAllAreGivenWhatWasFoundBeforeCounts) {
  const VmGpus gpus = given(true);
  GpuPresence presence;
  EXPECT_FALSE(presence.heard(gpus, worker_with({1}))) << "CUDA_VISIBLE_DEVICES of the broker may hide the other";
  EXPECT_FALSE(presence.heard(gpus, worker_with({0, 1})));
  EXPECT_TRUE(presence.heard(gpus, worker_with({1})));
  EXPECT_EQ(presence.missing(), Words{first});
}

TEST(GpuPresence, NoGpuAtAllIsReportedFromTheStart) {
  GpuPresence presence;
  EXPECT_TRUE(presence.heard(given(true, "0"), worker_with({})));
  EXPECT_EQ(presence.missing(), Words{"any GPU"});
  EXPECT_TRUE(presence.heard(given(true, "0"), worker_with({4})));
  EXPECT_TRUE(presence.heard(given(true, "0"), worker_with({})));
  EXPECT_EQ(presence.missing(), Words{"GPU-69766770-752d-7369-6d00-000000000005"})
      << "the kernel did not list it at the start";
}

// A MIG device's old name lacks the UUID that CUDA reports for the device.
TEST(GpuPresence, AMigDeviceIsMissedByNumberAlone) {
  VmGpus gpus;
  gpus.all = false;
  gpus.list.resize(2);
  gpus.list[0].uuid = "MIG-GPU-69766770-752d-7369-6d00-000000000001/1/0";
  gpus.list[1].uuid = "MIG-69766770-752d-7369-6d00-000000000002";
  GpuPresence presence;
  EXPECT_FALSE(presence.heard(gpus, worker_with({6, 1})));
  EXPECT_TRUE(presence.heard(gpus, worker_with({6})));
  EXPECT_EQ(presence.missing().size(), 2U);
}

TEST(GpuPresence, WorkersWhoseWordsAreNonsenseMakeNothingGrow) {
  const VmGpus gpus = given(true);
  GpuPresence presence;
  for (int round = 0; round < 100; ++round) {
    ReadyMessage said{};
    said.gpus = ~0U;
    std::memset(said.gpu, round, sizeof said.gpu);
    for (std::uint32_t d = 0; d < ring::max_devices; ++d) said.gpu[d].uuid[0] = static_cast<std::uint8_t>(d);
    presence.heard(gpus, said);
    EXPECT_LE(presence.missing().size(), ring::max_devices);
  }
}

}  // namespace
