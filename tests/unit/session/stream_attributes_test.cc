// Stream attributes and tensor maps in a worker: valid records and invalid ones.
#include "tests/unit/own_attributes.h"
#include "tests/unit/session/records.h"

namespace {

using namespace session_test;
using own_attributes::with;
namespace ids = api::id_of;

class StreamAttributes : public testing::Test {
 protected:
  Payload set(const CUlaunchAttribute& attribute) const {
    return Payload::record(api::SetStreamAttributeRecord{stream, 1, 0}).bytes(&attribute, sizeof attribute);
  }
  api::WindowValue window(std::uint64_t start, std::uint64_t bytes) const { return {start, bytes, 0, 2, 1, 0}; }

  World world;
  std::uint64_t stream = world.stream();
  std::uint64_t memory = world.memory(4096);
};

TEST_F(StreamAttributes, OneCrosses) {
  const CUlaunchAttribute policy = with(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, int{3}, 0);
  EXPECT_EQ(world.send(ids::cuStreamSetAttribute, set(policy)).result, CUDA_SUCCESS);
  Payload two = set(policy);
  two.bytes(&policy, sizeof policy);
  EXPECT_TRUE(world.send(ids::cuStreamSetAttribute, two).broken) << "two attributes";
  for (const std::uint32_t count : {0U, 2U, ~0U}) {
    const api::SetStreamAttributeRecord record{stream, count, 0};
    Payload p = Payload::record(record).bytes(&policy, sizeof policy);
    EXPECT_TRUE(world.send(ids::cuStreamSetAttribute, p).broken) << count;
  }
  Payload padded = Payload::record(api::SetStreamAttributeRecord{stream, 1, 1}).bytes(&policy, sizeof policy);
  EXPECT_TRUE(world.send(ids::cuStreamSetAttribute, padded).broken) << "padding";
}

TEST_F(StreamAttributes, AWindowIsTheSessions) {
  const auto ask = [&](const api::WindowValue& value) {
    return world.send(ids::cuStreamSetAttribute, set(with(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, value, 0)));
  };
  EXPECT_EQ(ask(window(memory, 4096)).result, CUDA_SUCCESS);
  EXPECT_EQ(ask(window(0, 0)).result, CUDA_SUCCESS) << "none";
  EXPECT_EQ(ask(window(memory, 4097)).result, CUDA_SUCCESS) << "its length is the driver's to judge";
  EXPECT_EQ(ask(window(memory, ~0ULL)).result, CUDA_SUCCESS);
  for (const api::WindowValue& bad :
       {window(memory + 4096, 1), window(memory - 1, 2), window(0, 1), window(~0ULL, 2)}) {
    const Answer a = ask(bad);
    EXPECT_FALSE(a.broken);
    EXPECT_EQ(a.result, CUDA_ERROR_INVALID_VALUE) << bad.start << " " << bad.bytes;
  }
  api::WindowValue padded = window(memory, 64);
  padded.pad = 1;
  EXPECT_TRUE(ask(padded).broken);
}

TEST_F(StreamAttributes, OnesThatHoldHandlesDoNotCross) {
  const std::uint64_t event = world.event();
  for (const auto tag : {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
                         CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE}) {
    EXPECT_TRUE(world.send(ids::cuStreamSetAttribute, set(with(tag, event, 0))).broken) << tag;
    const api::GetStreamAttributeRecord record{stream, static_cast<std::uint32_t>(tag), 0};
    EXPECT_EQ(world.send(ids::cuStreamGetAttribute, Payload::record(record)).result, CUDA_ERROR_INVALID_VALUE) << tag;
  }
}

// The fake driver fills the whole union.
TEST_F(StreamAttributes, TheReplyHasAsMuchAsTheAttributeUses) {
  const api::GetStreamAttributeRecord record{stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, 0};
  const Answer a = world.send(ids::cuStreamGetAttribute, Payload::record(record));
  ASSERT_EQ(a.result, CUDA_SUCCESS);
  const auto reply = a.read<api::StreamAttributeReply>();
  EXPECT_EQ(reply.value[0], 0x01010101u);
  for (std::size_t i = 1; i < std::size(reply.value); ++i) EXPECT_EQ(reply.value[i], 0u) << i;
}

TEST_F(StreamAttributes, StreamsAreTheSessions) {
  const CUlaunchAttribute policy = with(CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, int{3}, 0);
  for (const std::uint64_t s : {std::uint64_t{3}, world.event(), ~std::uint64_t{0}}) {
    stream = s;
    EXPECT_EQ(world.send(ids::cuStreamSetAttribute, set(policy)).result, CUDA_ERROR_INVALID_HANDLE) << s;
    const api::GetStreamAttributeRecord record{s, CU_LAUNCH_ATTRIBUTE_PRIORITY, 0};
    EXPECT_EQ(world.send(ids::cuStreamGetAttribute, Payload::record(record)).result, CUDA_ERROR_INVALID_HANDLE) << s;
  }
}

api::TensorMapRecord tensor(std::uint64_t address) {
  api::TensorMapRecord r{};
  r.address = address;
  r.rank = 3;
  r.dimensions[0] = r.dimensions[1] = r.dimensions[2] = 16;
  return r;
}

constexpr int encoders[] = {ids::cuTensorMapEncodeTiled, ids::cuTensorMapEncodeIm2col,
                            ids::cuTensorMapEncodeIm2colWide};

TEST(TensorMaps, AreMadeForMemoryOfTheSession) {
  World world;
  const std::uint64_t memory = world.memory(256);
  for (const int call : encoders) {
    const Answer a = world.send(call, Payload::record(tensor(memory)));
    ASSERT_EQ(a.result, CUDA_SUCCESS) << call;
    for (const std::uint64_t word : a.read<api::TensorMapReply>().map) EXPECT_EQ(word, 0x5a5a5a5a5a5a5a5au);
    for (const std::uint64_t elsewhere : {std::uint64_t{0}, memory - 1, memory + 256, ~std::uint64_t{0}})
      EXPECT_EQ(world.send(call, Payload::record(tensor(elsewhere))).result, CUDA_ERROR_INVALID_VALUE) << elsewhere;
  }
}

TEST(TensorMaps, ARankThatIsNoneBreaks) {
  World world;
  const std::uint64_t memory = world.memory(256);
  for (const int call : encoders) {
    for (const std::uint32_t rank : {0U, 6U, 64U, ~0U}) {
      api::TensorMapRecord r = tensor(memory);
      r.rank = rank;
      EXPECT_TRUE(world.send(call, Payload::record(r)).broken) << rank;
    }
    api::TensorMapRecord padded = tensor(memory);
    padded.pad = 1;
    EXPECT_TRUE(world.send(call, Payload::record(padded)).broken);
    EXPECT_TRUE(world.send(call, Payload::record(tensor(memory)).slot(0).slot(0)).broken) << "bytes left over";
  }
}

TEST(TensorMaps, MoveToMemoryOfTheSession) {
  World world;
  api::MoveTensorMapRecord r{};
  r.address = world.memory(256);
  EXPECT_EQ(world.send(ids::cuTensorMapReplaceAddress, Payload::record(r)).result, CUDA_SUCCESS);
  r.address += 256;
  EXPECT_EQ(world.send(ids::cuTensorMapReplaceAddress, Payload::record(r)).result, CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
