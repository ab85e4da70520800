// CUDA_VISIBLE_DEVICES in every form, compared with the results of the real driver on a machine with two H200 GPUs
// (driver 580.159.04, 2026-11-22).
#include "ring/abi/visible_devices.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using cuabi::Uuid;

constexpr Uuid first{0xeb, 0x69, 0x6b, 0x50, 0x65, 0x8e, 0xe8, 0x1a, 0xd4, 0xc1, 0xc8, 0x7b, 0x51, 0xf4, 0x6e, 0x54},
    second{0xc7, 0xb1, 0x0d, 0x88, 0x43, 0x93, 0xa6, 0xc1, 0xc1, 0x6a, 0xdb, 0x22, 0x19, 0xfd, 0xb6, 0xfc};
const std::string a = "GPU-eb696b50-658e-e81a-d4c1-c87b51f46e54", b = "GPU-c7b10d88-4393-a6c1-c16a-db2219fdb6fc";

// Returns the visible devices as digits, or the error's number.
std::string seen(const char* list, const std::vector<Uuid>& devices = {first, second}) {
  std::vector<std::uint32_t> visible;
  const CUresult result = cuabi::visible_devices(list, devices, visible);
  if (result != CUDA_SUCCESS) return std::to_string(static_cast<int>(result));
  std::string digits;
  for (const std::uint32_t index : visible) digits += std::to_string(index);
  return digits;
}

TEST(VisibleDevices, AsTheDriverAnswers) {
  struct Case {
    std::string list, expected;
  };
  std::string twenty_times, zeros(40, '0'), blanks = "1" + std::string(300, ' ');
  for (int i = 0; i < 20; ++i) twenty_times += i == 0 ? "0,1" : ",0,1";
  const Case cases[] = {
      {"", "100"},
      {"0", "0"},
      {"1", "1"},
      {"2", "100"},
      {"0,1", "01"},
      {"1,0", "10"},
      {"0,2", "0"},
      {"2,0", "100"},
      {"0,0", "101"},
      {"0,1,0", "101"},
      {"1,1", "101"},
      // The first element without a device ends the list.
      {"-1", "100"},
      {"0,-1", "0"},
      {"-1,0", "100"},
      {"0,-1,1", "0"},
      {"1,-1,0", "1"},
      {"-2", "100"},
      {"0,-2", "0"},
      {"-1a", "100"},
      {"junk", "100"},
      {"0,junk", "0"},
      {"junk,0", "100"},
      {"1,junk,0", "1"},
      {",", "100"},
      {"0,,1", "0"},
      {",0", "100"},
      {"0,", "0"},
      {"a1", "100"},
      {" ", "100"},
      {"all", "100"},
      {"none", "100"},
      {"void", "100"},
      {"NoDevFiles", "100"},
      // Numbers in strtol's syntax.
      {" 0", "0"},
      {"0 ", "0"},
      {"0 ,1", "01"},
      {"0, 1", "01"},
      {"\t0", "0"},
      {"0\n", "0"},
      {"00", "0"},
      {"01", "1"},
      {"+1", "1"},
      {"+0", "0"},
      {"-0", "0"},
      {"0x1", "0"},
      {"0x0", "0"},
      {"1.5", "1"},
      {"1a", "1"},
      {"0a", "0"},
      {"1 0", "1"},
      {"0;1", "0"},
      {"0:1", "0"},
      {"99999999999", "100"},
      {"4294967296", "0"},
      {"4294967297", "1"},
      {"18446744073709551616", "100"},
      {twenty_times, "101"},
      {zeros, "0"},
      {blanks, "1"},
      // UUIDs and their prefixes.
      {a, "0"},
      {b, "1"},
      {"GPU-c7b10d88", "1"},
      {"GPU-c", "1"},
      {"GPU-e", "0"},
      {"GPU-", "100"},
      {"GPU", "100"},
      {"G", "100"},
      {"gpu-c7b10d88-4393-a6c1-c16a-db2219fdb6fc", "100"},
      {"GPU-C7B10D88-4393-A6C1-C16A-DB2219FDB6FC", "1"},
      {"c7b10d88-4393-a6c1-c16a-db2219fdb6fc", "100"},
      {"c7b10d884393a6c1c16adb2219fdb6fc", "100"},
      {a + "," + b, "01"},
      {b + "," + a, "10"},
      {a + "," + a, "101"},
      {b + "," + b, "101"},
      {"GPU-00000000", "100"},
      {"GPU-00000000-0000-0000-0000-000000000000", "100"},
      {b + "junk", "1"},
      {b + "0", "1"},
      {b + " ", "1"},
      {b + ",junk", "1"},
      {" " + b, "100"},
      {b + ", " + a, "1"},
      {"GPU-c7b10d88,GPU-eb696b50", "10"},
      {b + ",GPU-00000000", "1"},
      {a + ",-1," + b, "0"},
      {"MIG-" + b.substr(4), "1"},
      {"MIG-" + b, "100"},
      {"MIG-" + b + "/0/0", "100"},
      // The first element decides the syntax of all elements.
      {b + ",0", "1"},
      {b + ",1", "1"},
      {"1," + b, "1"},
      {"0," + a, "0"},
      {"0," + b, "0"},
      {a + ",1", "0"},
      {"0,GPU-00000000", "0"},
  };
  for (const Case& c : cases) EXPECT_EQ(seen(c.list.c_str()), c.expected) << '"' << c.list << '"';
  EXPECT_EQ(seen(nullptr), "01");
}

// NVIDIA's manual requires that a prefix belongs to only one device.
TEST(VisibleDevices, ABeginningOfTwoNamesNone) {
  Uuid near = first;
  near[15] ^= 1;
  EXPECT_EQ(seen("GPU-eb696b50", {first, near}), "100");
  EXPECT_EQ(seen(a.c_str(), {first, near}), "0");
}

TEST(VisibleDevices, OfNoDevicesNoneIsSeen) {
  EXPECT_EQ(seen(nullptr, {}), "100");
  EXPECT_EQ(seen("0", {}), "100");
}

// may_name_a_device(), which knows no devices, must agree with visible_devices() for any devices.
TEST(VisibleDevices, ListsThatNameNothingAnywhere) {
  for (const char* list : {"", "-1", "junk", " ", ",0", "-1,0", "a1", "GPU", "GPU-", "all", " GPU-e", "gpu-e"}) {
    EXPECT_FALSE(cuabi::may_name_a_device(list)) << list;
    EXPECT_EQ(seen(list), "100") << list;
  }
  for (const char* list : {"0", "7", "1,-1", "GPU-0", "MIG-e", " 3", "0x9"})
    EXPECT_TRUE(cuabi::may_name_a_device(list)) << list;
  EXPECT_TRUE(cuabi::may_name_a_device(nullptr));
}

TEST(VisibleDevices, Order) {
  using cuabi::DeviceOrder;
  EXPECT_EQ(cuabi::device_order(nullptr), DeviceOrder::FastestFirst);
  EXPECT_EQ(cuabi::device_order("FASTEST_FIRST"), DeviceOrder::FastestFirst);
  EXPECT_EQ(cuabi::device_order("PCI_BUS_ID"), DeviceOrder::PciBusId);
  for (const char* other : {"", "junk", "pci_bus_id"}) EXPECT_EQ(cuabi::device_order(other), DeviceOrder::Invalid);
}

}  // namespace
