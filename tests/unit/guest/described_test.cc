// Launch attributes that the guest sends, and checks of a lookup's reply. Both follow lists of fields.
#include <gtest/gtest.h>

#include "guest/calls/launch_config.h"
#include "guest/marshal/reply.h"
#include "tests/unit/own_attributes.h"

namespace {

using own_attributes::EventValue, own_attributes::first_behind, own_attributes::value_in, own_attributes::with;
using Lines = own_attributes::Lines;

constexpr auto event_tag = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;

TEST(Described, NothingOfTheUnionButTheValueIsSent) {
  const CUlaunchAttribute one = guest::described(with(CU_LAUNCH_ATTRIBUTE_PRIORITY, int{-3}, 0x41));
  EXPECT_EQ(one.id, CU_LAUNCH_ATTRIBUTE_PRIORITY);
  EXPECT_EQ(value_in<int>(one), -3);
  EXPECT_EQ(first_behind<int>(one), 64u);
  for (const char c : one.pad) EXPECT_EQ(c, 0);
  const CUlaunchAttribute none = guest::described(with(CU_LAUNCH_ATTRIBUTE_IGNORE, int{7}, 0x41));
  EXPECT_EQ(value_in<int>(none), 0);
  const CUlaunchAttribute three =
      guest::described(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, api::DimensionsValue{{2, 3, 4}}, 0x41));
  EXPECT_EQ(three.value.clusterDim.z, 4u);
  EXPECT_EQ(first_behind<api::DimensionsValue>(three), 64u);
}

TEST(Described, PaddingOfAValueStaysHere) {
  const CUlaunchAttribute sent = guest::described<Lines>(with(event_tag, EventValue{5, 6, 0x41414141}, 0x41));
  const auto value = value_in<EventValue>(sent);
  EXPECT_EQ(value.event, 5u);
  EXPECT_EQ(value.flags, 6);
  EXPECT_EQ(value.pad, 0u);
  EXPECT_EQ(first_behind<EventValue>(sent), 64u);
}

TEST(Described, IdsAreLookedUpBeforeTheyAreSent) {
  const CUlaunchAttribute attributes[] = {with(event_tag, EventValue{5, 6, 0}, 0)};
  const auto five = [](std::uint64_t id, api::Handle kind) { return id == 5 && kind == api::Handle::Event; };
  EXPECT_EQ(guest::check_ids<Lines>(attributes, five), CUDA_SUCCESS);
  const auto none = [](std::uint64_t, api::Handle) { return false; };
  EXPECT_EQ(guest::check_ids<Lines>(attributes, none), CUDA_ERROR_INVALID_HANDLE);
  const CUlaunchAttribute numbers[] = {with(CU_LAUNCH_ATTRIBUTE_PRIORITY, int{1}, 0)};
  EXPECT_EQ(guest::check_ids(numbers, none), CUDA_SUCCESS);
}

TEST(Described, ATagWithoutALineIsTheDriversError) {
  CUlaunchAttribute attribute = with(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, std::uint64_t{0}, 0);
  CUlaunchConfig config{};
  config.attrs = &attribute, config.numAttrs = 1;
  EXPECT_EQ(guest::check_config("test", &config), CUDA_ERROR_NOT_SUPPORTED);
  const int no_tag = 99;
  std::memcpy(&attribute.id, &no_tag, sizeof no_tag);
  EXPECT_EQ(guest::check_config("test", &config), CUDA_ERROR_INVALID_VALUE);
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  EXPECT_EQ(guest::check_config("test", &config), CUDA_SUCCESS);
  config.numAttrs = api::max_launch_attributes + 1;
  EXPECT_EQ(guest::check_config("test", &config), CUDA_ERROR_INVALID_VALUE);
}

// ---- the reply to a lookup -----------------------------------------------------------------------------------------

using Reply = api::FunctionReplyOf<api::Handle::Function>;
using Places = std::vector<api::ParameterPlace>;

struct Read {
  bool ok;
  guest::Behind behind;
};
// Returns what the guest reads from reply `r` with these places and this name, cut short by `missing` bytes.
Read read(const api::FunctionReply& r, const Places& places, std::string_view name, std::size_t missing = 0) {
  std::vector<std::byte> bytes(4096);
  ring::Writer w(bytes);
  w.bytes(&r, sizeof r);
  w.bytes(places.data(), places.size() * sizeof places[0]);
  w.bytes(name.data(), name.size());
  ring::SharedReader in(ring::SharedBytes(bytes.data(), w.used() - missing));
  guest::RepliedBy<Reply> replied(in);
  return {in.ok(), std::move(replied.behind)};
}
constexpr api::FunctionReply honest{1, 2, 12, 1024, 0, 0, 5};
const Places places{{0, 8}, {8, 4}};
constexpr std::string_view name{"fill\0", 5};

TEST(Replied, AnHonestReplyIsReadWhole) {
  const Read r = read(honest, places, name);
  ASSERT_TRUE(r.ok);
  ASSERT_EQ(r.behind.layout.size(), 2u);
  EXPECT_EQ(r.behind.layout[1].offset, 8u);
  EXPECT_EQ(r.behind.layout[1].size, 4u);
  EXPECT_EQ(r.behind.text, "fill");
}

void expect_failed(const Read& r, const char* what) {
  EXPECT_FALSE(r.ok) << what;
  EXPECT_TRUE(r.behind.layout.empty()) << what;
  EXPECT_TRUE(r.behind.text.empty()) << what;
}

TEST(Replied, CountsThatAreNotTrueFail) {
  for (const std::uint32_t count : {4u, 1000u, 0x20000000u, 0x20000002u, ~0u}) {
    api::FunctionReply r = honest;
    r.params = count;
    expect_failed(read(r, places, name), "parameters");
  }
  for (const std::uint32_t length : {0u, 9u, ~0u - 6, ~0u}) {
    api::FunctionReply r = honest;
    r.name_bytes = length;
    expect_failed(read(r, places, name), "name");
  }
  for (const std::size_t missing : {8u, 16u, 24u, 32u}) expect_failed(read(honest, places, name, missing), "cut");
}

TEST(Replied, APlaceOutsideOfTheBlockFails) {
  for (const api::ParameterPlace& p : Places{{13, 0}, {12, 1}, {0, 13}, {~0u, 2}, {8, ~0u}})
    expect_failed(read(honest, {{0, 8}, p}, name), "place");
}

TEST(Replied, ANameEndsWithItsOnlyNul) {
  expect_failed(read(honest, places, "fills"), "no end");
  expect_failed(read(honest, places, std::string_view("fi\0l\0", 5)), "an end inside");
}

}  // namespace
