// Traced calls as text: every line of the table, known records, and records with random bytes.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ring/api/call.h"
#include "ring/api/entry_points.h"
#include "ring/api/id.h"
#include "ring/api/records.h"
#include "ring/wire/record.h"
#include "tools/ivgpu/trace/call_text.h"

namespace ivgpu::trace {
namespace {

namespace ids = api::id_of;
using ring::TraceEntry;

struct Line {
  std::uint16_t id;
  std::string name;
};

std::vector<Line> table() {
  std::vector<Line> lines;
  for (const api::EntryPoint& e : api::entry_points)
    if (e.crosses()) lines.push_back({e.id, std::string(e.name)});
  for (const api::SessionCall& c : api::session_calls) lines.push_back({c.id, std::string(c.name)});
  return lines;
}

template <class Record>
std::vector<std::byte> bytes_of(const Record& record) {
  std::vector<std::byte> bytes(sizeof record);
  std::memcpy(bytes.data(), &record, sizeof record);
  return bytes;
}
std::vector<std::byte> slots(const std::vector<std::uint64_t>& words) {
  std::vector<std::byte> bytes(8 * words.size());
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}
std::vector<std::byte> operator+(std::vector<std::byte> bytes, const std::string& text) {
  const std::size_t at = bytes.size();
  bytes.resize(at + ring::padded(text.size()));
  std::memcpy(bytes.data() + at, text.data(), text.size());
  return bytes;
}

TraceEntry entry(int call, const std::vector<std::byte>& payload, const std::vector<std::byte>& reply = {},
                 std::uint16_t flags = ring::flag_wants_reply) {
  TraceEntry e{};
  e.call = static_cast<std::uint16_t>(call);
  e.flags = flags;
  e.payload_bytes = static_cast<std::uint32_t>(payload.size());
  e.reply_bytes = static_cast<std::uint32_t>(reply.size());
  if (!payload.empty()) std::memcpy(e.payload, payload.data(), std::min(payload.size(), sizeof e.payload));
  if (!reply.empty()) std::memcpy(e.reply, reply.data(), std::min(reply.size(), sizeof e.reply));
  return e;
}
std::string line_of(const TraceEntry& e, const KernelNames& names = {}) { return as_line(describe(e, names)); }

constexpr std::uint64_t stream = api::Id{api::Handle::Stream, 3, 0}.value();
constexpr std::uint64_t event = api::Id{api::Handle::Event, 4, 1}.value();
constexpr std::uint64_t function = api::Id{api::Handle::Function, 5, 0}.value();
constexpr std::uint64_t module_id = api::Id{api::Handle::Module, 2, 0}.value();

TEST(CallText, WordsOfCallLines) {
  EXPECT_EQ(line_of(entry(ids::cuMemsetD32Async, slots({0x7ee000000000, 0x3f800000, 256, stream}), {}, 0)),
            "cuMemsetD32Async(address=0x7ee000000000, value=1065353216, count=256, stream=stream#3) = CUDA_SUCCESS");
  EXPECT_EQ(line_of(entry(ids::cuEventRecord, slots({event, 0}), {}, ring::flag_per_thread)),
            "cuEventRecord_ptsz(event=event#4.1, stream=0) = CUDA_SUCCESS");
  EXPECT_EQ(line_of(entry(ids::cuStreamCreateWithPriority, slots({stream, 1, ~std::uint64_t{0}}), {}, 0)),
            "cuStreamCreateWithPriority(new stream=stream#3, value=1, value 2=-1) = CUDA_SUCCESS");
  EXPECT_EQ(line_of(entry(ids::cuMemcpyDtoD_v2, slots({0x1000, 0x2000, 64}))),
            "cuMemcpyDtoD_v2(address=0x1000, address 2=0x2000, count=64) = CUDA_SUCCESS");
}

TEST(CallText, WhatACallGives) {
  const float elapsed = 1.5F;
  std::uint64_t word = 0;
  std::memcpy(&word, &elapsed, sizeof elapsed);
  EXPECT_EQ(line_of(entry(ids::cuEventElapsedTime, slots({4, event, event}), slots({word}))),
            "cuEventElapsedTime(event=event#4.1, event 2=event#4.1) = CUDA_SUCCESS, out=1.500000");
  EXPECT_EQ(line_of(entry(ids::cuMemGetInfo_v2, slots({ring::absent, 8}), slots({4096}))),
            "cuMemGetInfo_v2() = CUDA_SUCCESS, out=4096");
  TraceEntry failed = entry(ids::cuMemGetInfo_v2, slots({8, 8}), slots({1, 2}));
  failed.result = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(line_of(failed), "cuMemGetInfo_v2() = CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_TRUE(describe(failed, {}).failed);
  failed.result = -7;
  EXPECT_EQ(line_of(failed), "cuMemGetInfo_v2() = result -7");
  TraceEntry query = entry(ids::cuStreamQuery, slots({stream}));
  query.result = CUDA_ERROR_NOT_READY;
  EXPECT_EQ(line_of(query), "cuStreamQuery(stream=stream#3) = CUDA_ERROR_NOT_READY");
  EXPECT_FALSE(describe(query, {}).failed) << "that is what it was asked";
}

TEST(CallText, Records) {
  EXPECT_EQ(line_of(entry(ids::cuMemAlloc_v2, bytes_of(api::AllocateRecord{4096, 0, 0, 0}),
                          bytes_of(api::AllocateReply{0x7ee000000000, 0, 4096}))),
            "cuMemAlloc_v2(bytes=4096) = CUDA_SUCCESS, address=0x7ee000000000");
  EXPECT_EQ(line_of(entry(ids::cuMemcpyHtoDAsync_v2, bytes_of(api::CopyRecord{0x1000, 0x20, 8, stream}), {}, 0)),
            "cuMemcpyHtoDAsync_v2(to=0x1000, from=arena+0x20, bytes=8, stream=stream#3) = CUDA_SUCCESS");
  EXPECT_EQ(line_of(entry(ids::cuMemcpyDtoH_v2, bytes_of(api::CopyRecord{0x1000, ring::absent, 8, 0}))),
            "cuMemcpyDtoH_v2(from=0x1000, to=with the record, bytes=8) = CUDA_SUCCESS");
  EXPECT_EQ(line_of(entry(ids::cuModuleLoadData, bytes_of(api::LoadRecord{module_id, ring::absent, 0, 1, 0, 0}) +
                                                     std::string("\x05\0\0\0\0\0\0\0", 8))),
            "cuModuleLoadData(module=module#2, image=with the record, parts=1, options=0, bytes=5) = CUDA_SUCCESS");
}

TEST(CallText, FloatsAndHandlesThatAreGivenBack) {
  const std::uint64_t reference = api::Id{api::Handle::TextureReference, 6}.value();
  EXPECT_EQ(line_of(entry(ids::cuTexRefSetMipmapLevelBias, slots({reference, std::bit_cast<std::uint32_t>(1.5f)}))),
            "cuTexRefSetMipmapLevelBias(texture reference=texture reference#6, value=1.500000) = CUDA_SUCCESS");
  EXPECT_EQ(
      line_of(entry(ids::cuTexRefGetArray, slots({8, reference}), slots({api::Id{api::Handle::Array, 7}.value()}))),
      "cuTexRefGetArray(texture reference=texture reference#6) = CUDA_SUCCESS, array=array#7");
}

TEST(CallText, LaunchesByTheirKernelsName) {
  KernelNames names;
  const auto launch = bytes_of(api::LaunchRecord{function, stream, {4, 1, 1}, {256, 2, 1}, 64, 12, 0, 0}) +
                      std::string("\x00\x10\0\0\0\0\0\0\x07\0\0\0", 12);
  const std::string rest =
      ", stream=stream#3, grid=4x1x1, block=256x2x1, shared=64, parameters=[0x1000 0x7]) = CUDA_SUCCESS";
  EXPECT_EQ(line_of(entry(ids::cuLaunchKernel, launch, {}, 0), names), "cuLaunchKernel(function=function#5" + rest);
  const auto lookup = bytes_of(api::LookupRecord{module_id, function, 6}) + std::string("scale\0", 6);
  const TraceEntry looked_up =
      entry(ids::cuModuleGetFunction, lookup,
            bytes_of(api::FunctionReply{function, 2, 12, 0, 0, 0, 6}) + std::string("\0\0\0\0\x08\0\0\0", 8) +
                std::string("\x08\0\0\0\x04\0\0\0", 8) + std::string("scale\0", 6));
  EXPECT_EQ(line_of(looked_up),
            "cuModuleGetFunction(module=module#2, function=function#5, name=\"scale\") = CUDA_SUCCESS, "
            "function=function#5, parameters=[0+8 8+4], name=\"scale\"");
  names.learn(looked_up);
  EXPECT_EQ(line_of(entry(ids::cuLaunchKernel, launch, {}, 0), names), "cuLaunchKernel(function=scale" + rest);
}

// ---- launch attributes ---------------------------------------------------------------------------------------------

template <class V>
std::string attribute(int tag, const V& value) {
  CUlaunchAttribute a{};
  std::memcpy(&a.id, &tag, sizeof tag);
  std::memcpy(&a.value, &value, sizeof value);
  return std::string(reinterpret_cast<const char*>(&a), sizeof a);
}
std::string launched_with(std::uint32_t count, const std::string& attributes) {
  const api::LaunchRecord record{function, 0, {1, 1, 1}, {1, 1, 1}, 0, 0, count, 0};
  const std::string line = line_of(entry(ids::cuLaunchKernelEx, bytes_of(record) + attributes, {}, 0));
  const std::size_t from = line.find("shared=0") + 8, to = line.find("parameters=");
  return line.substr(from, to - from);
}

TEST(CallText, LaunchAttributesByTheirLines) {
  EXPECT_EQ(launched_with(0, ""), ", ");
  EXPECT_EQ(launched_with(1, attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, -5)), ", priority=-5, ");
  EXPECT_EQ(launched_with(1, attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, api::DimensionsValue{{2, 1, 4}})),
            ", cluster=2x1x4, ");
  EXPECT_EQ(launched_with(1, attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, api::DomainMapValue{0, 1})),
            ", memory_domains={default:0 remote:1}, ");
  EXPECT_EQ(launched_with(1, attribute(99, 7)), ", attribute=99, ");
  const std::string two = attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1) + attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, 2);
  EXPECT_EQ(launched_with(2, two), ", cooperative=1, priority=2, ");
  EXPECT_EQ(launched_with(2, two.substr(0, 72)), ", cooperative=1, attributes=..., ");
}

// True if a trace keeps less than the call's whole record, so that the last arguments are unknown.
bool is_cut_off(int id) {
#define CUSTOM(number, fn, since, way, manner, record) \
  if (id == number && sizeof(api::record) > sizeof(TraceEntry::payload)) return true;
#define CALL(...)
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(number, name, way, record) \
  if (id == number && sizeof(api::record) > sizeof(TraceEntry::payload)) return true;
#include "ring/api/session.def"
  return false;
}

TEST(CallText, EveryLineOfTheTableHasItsNameAndArguments) {
  const std::vector<Line> lines = table();
  ASSERT_GT(lines.size(), 60u);
  for (const Line& line : lines) {
    const CallText text = describe(entry(line.id, slots(std::vector<std::uint64_t>(18, 4))), {});
    EXPECT_EQ(text.name, line.name);
    if (is_cut_off(line.id)) continue;
    for (const Argument& a : text.given) EXPECT_NE(a.value, "?") << line.name << " " << a.name;
  }
}

TEST(CallText, WhatDoesNotFitIsAQuestionMark) {
  EXPECT_EQ(line_of(entry(ids::cuMemsetD32Async, slots({0x1000}), {}, 0)),
            "cuMemsetD32Async(address=0x1000, value=?, count=?, stream=?) = CUDA_SUCCESS");
  EXPECT_EQ(line_of(entry(ids::cuLaunchKernel, {}, {}, 0)),
            "cuLaunchKernel(function=?, stream=?, grid=?x?x?, block=?x?x?, shared=?, parameters=?) = CUDA_SUCCESS");
  EXPECT_EQ(line_of(entry(4711, {})), "call 4711() = CUDA_SUCCESS");
  const auto lookup = bytes_of(api::LookupRecord{1, 2, 1 << 20}) + std::string("a\x1b[2J\"\\\n");
  const std::string line = line_of(entry(ids::cuModuleGetFunction, lookup));
  EXPECT_NE(line.find("name=\"a\\x1b[2J\"\\x5c\\x0a\"..."), std::string::npos) << line;
}

// Runs under ASan: the code must not read beyond an entry's own bytes, and must print only text.
TEST(CallText, NonsenseStaysText) {
  std::minstd_rand random(11);
  KernelNames names;
  for (int round = 0; round < 300; ++round)
    for (const Line& line : table()) {
      TraceEntry e{};
      auto* bytes = reinterpret_cast<unsigned char*>(&e);
      for (std::size_t i = 0; i < sizeof e; ++i)
        bytes[i] = static_cast<unsigned char>(random() % 3 == 0 ? random() : 0);
      if (random() % 2 == 0) e.payload_bytes = static_cast<std::uint32_t>(random() % 160);
      if (random() % 2 == 0) e.result = 0;
      e.call = line.id;
      names.learn(e);
      for (const char c : line_of(e, names)) ASSERT_TRUE(c >= ' ' && c < 0x7f);
    }
}

}  // namespace
}  // namespace ivgpu::trace
