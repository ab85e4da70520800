// Launch attributes, which the worker reads according to the lines of their table.
#include <gtest/gtest.h>

#include "host/untrusted/marshal/decoded_attributes.h"
#include "tests/unit/own_attributes.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
using own_attributes::EventValue, own_attributes::first_behind, own_attributes::value_in, own_attributes::WindowValue,
    own_attributes::with;

using Own = host::DecodedAttributes<own_attributes::Lines>;

constexpr auto event_tag = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
constexpr auto window_tag = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;

template <class DecodedRequest>
bool take(DecodedRequest& taken, World& world, const CUlaunchAttribute& attribute) {
  return taken.take(*world.session, reinterpret_cast<const std::byte*>(&attribute), 1);
}

TEST(Attributes, BytesBehindAValueDoNotReachTheDriver) {
  World world;
  for (const auto tag : {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_PRIORITY}) {
    host::DecodedAttributes<> taken;
    ASSERT_TRUE(take(taken, world, with(tag, int{-3}, 0x41)));
    EXPECT_EQ(taken.check(*world.session), CUDA_SUCCESS);
    EXPECT_EQ(taken.get()->id, tag);
    EXPECT_EQ(value_in<int>(*taken.get()), -3);
    EXPECT_EQ(first_behind<int>(*taken.get()), 64u);
  }
  host::DecodedAttributes<> ignored;
  ASSERT_TRUE(take(ignored, world, with(CU_LAUNCH_ATTRIBUTE_IGNORE, int{7}, 0x41)));
  EXPECT_EQ(value_in<int>(*ignored.get()), 0);
}

TEST(Attributes, NumbersAreTheDriversToJudge) {
  World world;
  for (const int number : {-1, 4711, 0x7fffffff})
    for (const auto tag : {CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
                           CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE}) {
      host::DecodedAttributes<> taken;
      ASSERT_TRUE(take(taken, world, with(tag, number, 0)));
      EXPECT_EQ(value_in<int>(*taken.get()), number);
    }
}

TEST(Attributes, ATagWithoutALineIsABrokenProtocol) {
  World world;
  Own taken;
  for (const int tag : {0, 2, 17, -1, 0x7fffffff}) {
    CUlaunchAttribute attribute{};
    std::memcpy(&attribute.id, &tag, sizeof tag);
    EXPECT_FALSE(take(taken, world, attribute)) << tag;
  }
}

TEST(Attributes, AnIdBecomesTheDriversHandle) {
  World world;
  const std::uint64_t event = world.event();
  Own taken;
  ASSERT_TRUE(take(taken, world, with(event_tag, EventValue{event, 2, 0}, 0x41)));
  EXPECT_EQ(taken.check(*world.session), CUDA_SUCCESS);
  const auto value = value_in<EventValue>(*taken.get());
  const void* handle = world.session->objects.find(event, Handle::Event);
  EXPECT_EQ(value.event, reinterpret_cast<std::uint64_t>(handle));
  EXPECT_NE(value.event, event);
  EXPECT_EQ(value.flags, 2);
  EXPECT_EQ(first_behind<EventValue>(*taken.get()), 64u);
  for (const std::uint64_t other : {std::uint64_t{0}, world.stream(), event + 16, value.event}) {
    ASSERT_TRUE(take(taken, world, with(event_tag, EventValue{other, 2, 0}, 0)));
    EXPECT_EQ(taken.check(*world.session), CUDA_ERROR_INVALID_HANDLE) << other;
  }
}

TEST(Attributes, AnAddressIsTheSessionsInItsWholeLength) {
  World world;
  const std::uint64_t memory = world.memory(4096);
  Own taken;
  ASSERT_TRUE(take(taken, world, with(window_tag, WindowValue{memory, 4096, 0, 0, 0, 0}, 0)));
  EXPECT_EQ(taken.check(*world.session), CUDA_SUCCESS);
  EXPECT_EQ(value_in<WindowValue>(*taken.get()).address, memory);
  for (const auto& [at, bytes] : {std::pair(memory, std::uint64_t{1} << 30), std::pair(memory, ~std::uint64_t{0}),
                                  std::pair(std::uint64_t{4096}, std::uint64_t{1})}) {
    ASSERT_TRUE(take(taken, world, with(window_tag, WindowValue{at, bytes, 0, 0, 0, 0}, 0)));
    EXPECT_EQ(taken.check(*world.session), CUDA_ERROR_INVALID_VALUE) << at << " " << bytes;
  }
}

TEST(Attributes, PaddingOfAValueThatHoldsSomethingIsABrokenProtocol) {
  World world;
  Own taken;
  EXPECT_FALSE(take(taken, world, with(event_tag, EventValue{world.event(), 0, 1}, 0)));
  EXPECT_FALSE(take(taken, world, with(window_tag, WindowValue{world.memory(64), 64, 0, 0, 0, 1}, 0)));
}

}  // namespace
