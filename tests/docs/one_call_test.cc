// docs/one-call.md shows a call's bytes and how the host handles them. This test makes the call: the guest's
// marshalling writes into a ring in private memory, the host's dispatch reads the ring, and the results must match the
// page.
//
// The test uses no thread and no second process: the doorbell is a function call, so the worker's code runs inside the
// guest's publish.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include "guest/calls/calls.h"
#include "guest/calls/stub.h"
#include "guest/process/process.h"
#include "host/untrusted/dispatch.h"
#include "ring/api/records.h"
#include "tests/docs/markdown.h"
#include "tests/other_side.h"

namespace {

using docs_test::Block;
using docs_test::Page;

// The call of the page.
constexpr CUdeviceptr address = 0x7ee0'0000'0000;
constexpr unsigned value = 0x3f80'0000;  // 1.0f
constexpr std::size_t count = 256;
CUstream const driver_stream = reinterpret_cast<CUstream>(0x5000);

// The calls that the driver got, with their arguments.
struct Seen {
  int calls = 0;
  CUdeviceptr to = 0;
  unsigned value = 0;
  std::size_t count = 0;
  CUstream stream = nullptr;
} seen;

host::Driver fake_driver() {
  host::Driver d;
  d.cuMemHostRegister_v2 = [](void*, std::size_t, unsigned) { return CUDA_SUCCESS; };
  d.cuStreamCreate = [](CUstream* stream, unsigned) { return *stream = driver_stream, CUDA_SUCCESS; };
  d.cuMemAlloc_v2 = [](CUdeviceptr* at, std::size_t) { return *at = address, CUDA_SUCCESS; };
  d.cuMemsetD32Async = [](CUdeviceptr to, unsigned with, std::size_t n, CUstream stream) {
    seen = {seen.calls + 1, to, with, n, stream};
    return CUDA_SUCCESS;
  };
  return d;
}

// The host's side of one channel. It executes the ring's records, and answers like host/untrusted/channel.cc.
class Worker {
 public:
  explicit Worker(ring::SlotView slot)
      : driver_(fake_driver()),
        session_(slot, driver_, {}),
        control_(other_side::control(slot, 0)),
        ring_(slot.requests(0)),
        consumer_(ring_) {
    control_.worker_asleep = 1;
  }

  void on_doorbell() {
    std::span<const std::byte> record;
    while (consumer_.take(buffer_, record) == ring::Peer::Ok) {
      last.assign(record.begin(), record.end());
      std::byte reply[256] = {};
      execute(last, reply);
    }
    control_.worker_asleep = 1;
  }

  CUresult execute(std::span<const std::byte> record, std::span<std::byte> reply) {
    ring::RecordHeader header;
    std::memcpy(&header, record.data(), sizeof header);
    host::Request request(session_, header, record.subspan(sizeof header), reply);
    const CUresult result = host::handler_of(header.call)(request);
    if (header.flags & ring::flag_wants_reply) {
      session_.slot.reply(0).copy_in(0, reply.data(), request.out.used());
      control_.reply_length = static_cast<std::uint32_t>(request.out.used());
      control_.reply_result = result;
      control_.reply_position = header.position;
    }
    control_.executed = header.position;
    return result;
  }

  bool broken() const { return session_.protocol.broken; }
  std::uint32_t tail() const { return control_.tail; }
  std::vector<std::byte> ring(std::uint32_t bytes) const {
    return {ring_.bytes.write_only(0), ring_.bytes.write_only(bytes)};
  }
  std::vector<std::byte> last;  // the most recent record

 private:
  host::Driver driver_;
  host::Session session_;
  ring::ChannelControl& control_;
  const ring::RingView ring_;
  ring::Consumer consumer_;
  alignas(16) std::array<std::byte, ring::max_record> buffer_{};
};

// A region with one slot in private memory.
class PrivateRegion final : public guest::Region {
 public:
  static constexpr std::size_t slot_bytes = ring::arena_offset + (32 << 20);
  static constexpr std::size_t bytes = ring::first_slot_offset + slot_bytes;

  PrivateRegion()
      : base_(static_cast<std::byte*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    ring::RegionHeader& header = other_side::region(base_);
    header.version = ring::layout_version;
    header.slot_count = 1;
    header.region_bytes = bytes;
    header.first_slot = ring::first_slot_offset;
    header.slot_bytes = slot_bytes;
    header.magic = ring::region_magic;
    const ring::SlotView slot = view();
    other_side::device_page(slot).device_count = 1;
    other_side::header(slot).version = ring::layout_version;
    other_side::header(slot).channels = 1;
    other_side::header(slot).magic = ring::slot_magic;
    worker = std::make_unique<Worker>(slot);
    other_side::entry(base_, 0).state = ring::SlotWord{.epoch = 1, .state = ring::SlotState::Ready}.word();
  }

  std::byte* map(std::uint64_t offset, std::size_t, void*) override { return base_ + offset; }
  void ring(std::uint32_t peer) override {
    if (peer == ring::peer_of_slot(0)) worker->on_doorbell();
  }
  std::uint64_t size() const override { return bytes; }
  std::uint32_t peer() const override { return ring::first_guest_peer; }
  bool same_kernel() const override { return false; }
  bool same_address_space() const override { return true; }
  void forget() override {}

  std::unique_ptr<Worker> worker;

 private:
  ring::SlotView view() const { return {base_ + ring::first_slot_offset, slot_bytes}; }
  std::byte* base_;
};

// Runs the page's program once for all tests, since a process has one session.
struct Recording {
  Worker* worker = nullptr;
  CUresult result = CUDA_ERROR_UNKNOWN;
  std::uint32_t tail_before = 0, tail_after = 0;
  std::vector<std::byte> record;
};

Recording run_program() {
  auto region = std::make_unique<PrivateRegion>();
  Recording run{.worker = region->worker.get(), .record = {}};
  guest::Session* session = guest::Session::open(std::move(region), false).release();
  if (session == nullptr || guest::initialize_with(session) != CUDA_SUCCESS) return run;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr at = 0;
  guest::calls::cuDevicePrimaryCtxRetain(&context, 0);
  guest::calls::cuCtxSetCurrent(context);
  guest::Stub<api::id_of::cuStreamCreate>::call(&stream, CU_STREAM_NON_BLOCKING);
  guest::calls::cuMemAlloc_v2(&at, count * sizeof value);
  run.tail_before = run.worker->tail();
  run.result = guest::Stub<api::id_of::cuMemsetD32Async>::call(at, value, count, stream);
  run.tail_after = run.worker->tail();
  run.record = run.worker->last;
  return run;
}

const Recording& the_run() {
  static const Recording run = run_program();
  return run;
}

const std::string root = IVGPU_SOURCE_DIR;
const Page& the_page() {
  static const Page page = docs_test::parse(docs_test::read(root + "/docs/one-call.md"));
  return page;
}

// Parses lines "0010  00 11 ... | remark": an offset, bytes, a remark.
std::vector<std::byte> parse_dump(const Block& block) {
  std::vector<std::byte> bytes;
  for (const std::string& line : block.lines) {
    std::istringstream words(line.substr(0, line.find('|')));
    std::string word;
    words >> word;
    EXPECT_EQ(std::stoul(word, nullptr, 16), bytes.size()) << line;
    while (words >> word) bytes.push_back(static_cast<std::byte>(std::stoul(word, nullptr, 16)));
  }
  return bytes;
}

std::string as_dump(std::span<const std::byte> bytes) {
  std::string text;
  char piece[24];
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % 16 == 0) text += (std::snprintf(piece, sizeof piece, "\n%04zx ", i), piece);
    text += (std::snprintf(piece, sizeof piece, i % 8 == 0 ? "  %02x" : " %02x", std::to_integer<unsigned>(bytes[i])),
             piece);
  }
  return text;
}

TEST(OneCall, ThePageShowsTheRecordsBytes) {
  const Recording& run = the_run();
  ASSERT_EQ(run.result, CUDA_SUCCESS);
  const auto& blocks = the_page().blocks;
  const auto dump = std::find_if(blocks.begin(), blocks.end(), [](const Block& b) { return b.kind == "hexdump"; });
  ASSERT_NE(dump, blocks.end()) << "docs/one-call.md has no block ```hexdump";
  EXPECT_EQ(parse_dump(*dump), run.record) << "the guest wrote" << as_dump(run.record);
}

TEST(WireFormat, ThePageShowsTheRingsFirstRecords) {
  const auto before = the_run().worker->ring(the_run().tail_before);
  const Page page = docs_test::parse(docs_test::read(root + "/docs/wire-format.md"));
  const auto dump =
      std::find_if(page.blocks.begin(), page.blocks.end(), [](const Block& b) { return b.kind == "hexdump"; });
  ASSERT_NE(dump, page.blocks.end()) << "docs/wire-format.md has no block ```hexdump";
  EXPECT_EQ(parse_dump(*dump), before) << "the ring holds" << as_dump(before);
}

TEST(OneCall, ThePageShowsTheRingsPositions) {
  const std::string sentence =
      "`tail` goes from " + std::to_string(the_run().tail_before) + " to " + std::to_string(the_run().tail_after);
  EXPECT_NE(the_page().prose.find(sentence), std::string::npos) << "docs/one-call.md does not say: " << sentence;
}

// A ```cpp block quotes the file that its heading names; "..." marks omitted lines.
TEST(OneCall, QuotedLinesStandInTheFilesAsTheyAre) {
  int quoted = 0;
  for (const Block& block : the_page().blocks) {
    if (block.kind != "cpp") continue;
    const auto spans = docs_test::code_spans(block.heading);
    ASSERT_FALSE(spans.empty()) << "no file in the heading: " << block.heading;
    const auto source = docs_test::lines_of(docs_test::read(root + "/" + spans[0]));
    auto from = source.begin();
    for (const std::string& line : block.lines) {
      const std::string wanted = docs_test::trimmed(line);
      if (wanted.empty() || wanted == "...") continue;
      from = std::find_if(from, source.end(), [&](const auto& l) { return docs_test::trimmed(l) == wanted; });
      ASSERT_NE(from, source.end()) << spans[0] << " does not say, or not in this order: " << wanted;
      ++quoted;
    }
  }
  EXPECT_GT(quoted, 10);
}

TEST(OneCall, TheDriverIsCalledWithThePagesArguments) {
  ASSERT_EQ(the_run().result, CUDA_SUCCESS);
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.to, address);
  EXPECT_EQ(seen.value, value);
  EXPECT_EQ(seen.count, count);
  EXPECT_EQ(seen.stream, driver_stream);
}

// The page's record with one changed word, which no correct guest would send.
std::vector<std::byte> changed(std::size_t offset, std::uint64_t to) {
  auto record = the_run().record;
  std::memcpy(record.data() + offset, &to, sizeof to);
  return record;
}

TEST(OneCall, AnAddressOrHandleThatIsNotTheSessionsIsRefused) {
  ASSERT_EQ(the_run().result, CUDA_SUCCESS);
  const int before = seen.calls;
  Worker& worker = *the_run().worker;
  EXPECT_EQ(worker.execute(changed(16, address + 4), {}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(worker.execute(changed(32, count + 1), {}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(worker.execute(changed(32, ~0ULL), {}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(worker.execute(changed(40, 0x3000'0000'0030), {}), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(seen.calls, before);
  EXPECT_FALSE(worker.broken());
}

TEST(OneCallEnd, ANumberThatItsTypeCannotHoldBreaksTheSession) {
  ASSERT_EQ(the_run().result, CUDA_SUCCESS);
  const int before = seen.calls;
  Worker& worker = *the_run().worker;
  EXPECT_FALSE(worker.broken());
  worker.execute(changed(24, 1ULL << 32), {});
  EXPECT_TRUE(worker.broken());
  EXPECT_EQ(seen.calls, before);
}

}  // namespace
