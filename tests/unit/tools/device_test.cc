// The guest's device in each of its forms: QEMU's arguments must be those of qemu-config/, which a user would type, and
// impossible combinations must be refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tools/ivgpu/support/error.h"
#include "tools/ivgpu/support/temp_dir.h"
#include "tools/ivgpu/vm/device.h"

namespace ivgpu {
namespace {

namespace fs = std::filesystem;

// The arguments in a file of qemu-config/, without those that do not concern the device and its memory.
std::vector<std::string> documented(const std::string& file) {
  std::ifstream in(fs::path(IVGPU_SOURCES) / "qemu-config" / file);
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    if (word == "-m") {
      in >> word;
      continue;
    }
    words.push_back(word);
  }
  return words;
}

TEST(Device, QemuGetsTheOptionsOfTheConfigurationPages) {
  const std::uint64_t gib = std::uint64_t{1} << 30;
  const Device doorbell{.socket = "/run/ivgpu/vm1.sock"};
  const Device plain{.transport = by_plain, .memory = "/run/ivgpu/vm1.memory", .memory_bytes = gib};
  const Device pmem{.transport = by_pmem,
                    .socket = "/run/ivgpu/vm1.sock",
                    .memory = "/dev/shm/ivgpu-vm1",
                    .memory_bytes = gib + (2 << 20),
                    .ports = 1};
  const auto told = [](const Device& device) {
    std::vector<std::string> words = qemu_words(device);
    for (std::string& word : words)
      for (const auto& [bytes, size] : {std::pair{"size=1073741824", "size=1G"}, {"size=1075838976", "size=1026M"}})
        if (const auto at = word.find(bytes); at != std::string::npos)
          word.replace(at, std::string(bytes).size(), size);
    return words;
  };
  EXPECT_EQ(told(doorbell), documented("doorbell.args"));
  EXPECT_EQ(told(plain), documented("plain-memfd.args"));
  EXPECT_EQ(told(pmem), documented("virtio-pmem.args"));
}

TEST(Device, VsockTakesThePlaceOfPorts) {
  Device device{.transport = by_pmem, .memory = "/m", .memory_bytes = 1 << 20, .ports = 8};
  device.take_vsock(1'000'007, 5);
  const std::vector<std::string> words = qemu_words(device);
  ASSERT_EQ(words.size(), 6U);
  EXPECT_EQ(words.back(), "vhost-vsock-pci,guest-cid=1000007,vhostfd=5");
  EXPECT_EQ(described(device), "virtio-pmem of 1 MiB, doorbells by vsock, CID 1000007");
}

// QEMU refuses a guest whose memories do not fit below maxmem.
TEST(Device, PersistentMemoryHasRoomAboveTheGuestsOwn) {
  const Device device{.transport = by_pmem, .memory_bytes = (std::uint64_t{1} << 30) + (2 << 20)};
  EXPECT_EQ(memory_words("1G", device), "1G,slots=1,maxmem=4G");
  EXPECT_EQ(memory_words("1536", device), "1536M,slots=1,maxmem=4G");
  EXPECT_EQ(memory_words("200GiB", device), "200G,slots=1,maxmem=203G");
  EXPECT_EQ(memory_words("lots", device), "lots,slots=1,maxmem=3G") << "QEMU says that this is none";
  EXPECT_EQ(memory_words("1G", {}), "1G");
}

std::string status(const std::string& memory, int slots) {
  std::string all;
  for (int k = 0; k < slots; ++k) all += (k > 0 ? "," : "") + std::string("{}");
  return R"({"format":1,"vms":[{"name":"other"},{"name":"guest","socket":"/s","memory":")" + memory + R"(","slots":[)" +
         all + "]}]}";
}

TEST(Device, IsWhatTheBrokerServes) {
  const TempDir folder;
  const std::string memory = folder.path() / "memory";
  std::ofstream(memory) << "12345";
  const Device device = device_behind(status(memory, 3), "guest", by_pmem);
  EXPECT_EQ(device.memory, memory);
  EXPECT_EQ(device.memory_bytes, 5U);
  EXPECT_EQ(device.ports, 3U) << "one for each slot";
  EXPECT_EQ(device_behind(status(memory, 64), "guest", by_pmem).ports, 31U) << "a virtio-serial device has no more";
  EXPECT_EQ(device_behind(status(memory, 3), "guest", by_plain).ports, 0U);
  EXPECT_EQ(device_behind(status("", 3), "guest", by_doorbell).socket, "/s");
}

TEST(Device, AnotherTransportByTheExtraSettingsIsRefused) {
  EXPECT_THROW(device_behind(status("/m", 1), "guest", by_doorbell), Error);
  EXPECT_THROW(device_behind(status("", 1), "guest", by_plain), Error);
  EXPECT_THROW(device_behind(status("", 1), "nobody", by_doorbell), Error);
}

}  // namespace
}  // namespace ivgpu
