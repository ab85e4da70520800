// A worker's channel with a hostile guest. Records of every call pass through the ring, serve_channel() and the
// handlers to the strict fake driver. The driver aborts on an argument that it never issued.
//
// This thread serves each record on a separate channel. An invalid record behind it makes serve_channel() return, so
// that the next record can use ids from this record's reply.
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/session/session.h"
#include "host/untrusted/callbacks/callback_slots.h"
#include "host/untrusted/channel.h"
#include "ring/api/records.h"
#include "tests/fake/driver.h"
#include "tests/fuzz/moving.h"
#include "tests/fuzz/records.h"
#include "tests/other_side.h"

namespace {

constexpr std::size_t arena_bytes = 4 << 20;
constexpr std::uint64_t largest_allocation = 1 << 20;  // small, since the fake driver fills each allocation
constexpr int most_records = 64;

// The fake driver's table. A call of the table that the fake lacks returns an error.
template <class... P>
CUresult refuse(P...) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
template <class... P>
void refuse_where_null(CUresult (*&entry)(P...)) {
  if (entry == nullptr) entry = refuse<P...>;
}

CUresult (*alloc)(CUdeviceptr*, std::size_t) = nullptr;

host::Driver strict(const fake::Driver& fake) {
  host::Driver driver = fake.table();
#define CALL(id, fn, ...) refuse_where_null(driver.fn);
#define CUSTOM(id, fn, ...) refuse_where_null(driver.fn);
#define LOCAL(...)
#define VARIANT(fn, ...) refuse_where_null(driver.fn);
#define ABSENT(...)
#include "ring/api/driver.def"
  alloc = driver.cuMemAlloc_v2;
  driver.cuMemAlloc_v2 = [](CUdeviceptr* at, std::size_t bytes) {
    return bytes > largest_allocation ? CUDA_ERROR_OUT_OF_MEMORY : alloc(at, bytes);
  };
  return driver;
}

class World {
 public:
  World()
      : driver_(strict(fake_)),
        base_(static_cast<std::byte*>(mmap(nullptr, ring::arena_offset + arena_bytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        slot_(base_, ring::arena_offset + arena_bytes),
        session_(
            slot_, driver_,
            {.spin_us = 0, .chaos_delay_us = 0, .channels = 1, .windows = host::all_windows, .join_at_end = true}) {
    callback_slots_.end();  // no guest can call the program's functions in this target
    CUcontext context = nullptr;
    driver_.cuDevicePrimaryCtxRetain(&context, 0);
    driver_.cuCtxSetCurrent(context);
    session_.reset(0);  // resets the cached current context of this thread
  }
  ~World() {
    // After hello, the arena's original range no longer belongs to this world.
    munmap(reinterpret_cast<void*>(session_.arena.address()), arena_bytes);
    munmap(base_, ring::arena_offset);
  }

  struct Answer {
    bool broken;
    CUresult result;
    std::span<const std::byte> reply;
  };
  // Serves one record. The ring contains `payload`, padded, whatever header.bytes states.
  Answer serve(const fuzz::CallLine& line, ring::RecordHeader header, std::span<const std::byte> payload) {
    fake::programs_call = line.asks_driver();
    ring::ChannelControl& control = other_side::control(slot_, 0);
    std::byte* at = other_side::requests(slot_, 0).data();
    const std::uint32_t whole = ring::record_size(payload.size());
    const ring::RecordHeader last{.bytes = 16, .call = 0xffff};
    std::memcpy(at, &header, sizeof header);
    if (!payload.empty()) std::memcpy(at + sizeof header, payload.data(), payload.size());
    std::memset(at + sizeof header + payload.size(), 0, whole - sizeof header - payload.size());
    std::memcpy(at + whole, &last, sizeof last);
    control.tail = whole + 16, control.head = 0, control.executed = 0, control.reply_position = 0;
    control.deferred_count = 0;
    if (moving_ != nullptr) {
      moving_->forget();
      moving_->watch(at, whole);
      moving_->watch(reinterpret_cast<std::byte*>(session_.arena.address()), arena_bytes);
    }
    stop_ = false;
    host::serve_channel(session_, 0, stop_);
    // If a record's length covers the next record, no invalid record remains to end the session.
    fuzz::require(session_.protocol.broken.exchange(false) || stop_, "a record that is no call's ends the session");
    return read_answer(control);
  }
  // After this call the guest writes during the worker's reads. `stop` ends a channel that waits for more records.
  void move(fuzz::Moving& moving) {
    moving_ = &moving;
    moving.after(10'000, [this] { stop_ = true; });
  }
  bool is_handle(std::uint64_t word) { return fake_.issued(reinterpret_cast<const void*>(word)); }
  // True if the session has an object of this id.
  bool knows(std::uint64_t id) const { return session_.objects.find(id, api::Id::of(id).kind) != nullptr; }

 private:
  Answer read_answer(ring::ChannelControl& control) {
    if (control.executed == 0) return {true, CUDA_ERROR_UNKNOWN, {}};
    if (control.reply_position == 0)
      return {false, static_cast<CUresult>(control.deferred_count != 0 ? control.deferred_result : 0), {}};
    fuzz::require(control.reply_length <= ring::reply_bytes, "a reply fits into its mailbox");
    return {false, static_cast<CUresult>(control.reply_result),
            other_side::reply(slot_, 0).first(control.reply_length)};
  }

  std::atomic<bool> stop_{false};
  fuzz::Moving* moving_ = nullptr;
  fake::Driver fake_;
  host::Driver driver_;
  std::byte* base_;
  ring::SlotView slot_;
  host::Session session_;
  host::CallbackSlots callback_slots_{session_, -1};
};

// The guest may learn device addresses, but no other address of the worker.
void check_reply(World& world, std::span<const std::byte> reply) {
  for (std::size_t i = 0; i + 8 <= reply.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, reply.data() + i, sizeof word);
    fuzz::require(!world.is_handle(word), "a reply holds the driver's handle %llx",
                  static_cast<unsigned long long>(word));
  }
}

// An error's reply also contains ids that the worker has chosen.
void learn_ids(const World& world, fuzz::Records& records, std::span<const std::byte> reply) {
  constexpr std::size_t most = 32;
  for (std::size_t i = 0; i + 8 <= std::min(reply.size(), most * 8); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, reply.data() + i, sizeof word);
    if (world.knows(word)) records.learn_id(word);
  }
}

void learn(const World& world, fuzz::Records& records, const fuzz::CallLine& line, const World::Answer& answer) {
  if (!answer.broken) learn_ids(world, records, answer.reply);
  if (answer.broken || answer.result != CUDA_SUCCESS) return;
  records.succeeded();
  std::uint64_t first = 0;
  if (answer.reply.size() >= sizeof first) std::memcpy(&first, answer.reply.data(), sizeof first);
  if (line.gives_memory && first != 0) records.learn_address(first);
  if (line.id == api::id_of::cuGraphConditionalHandleCreate) records.learn_number(first);
}

// Makes one object of each kind, so that short inputs find objects to use.
void prepare(World& world, fuzz::Records& records, const std::vector<fuzz::CallLine>& calls) {
  // All choices for a call return this number. 120 gives valid records, 120 bytes of memory and the kernel `fill`;
  // other numbers are flags that the driver accepts.
  struct Choice {
    int id;
    std::uint8_t number = 120;
  };
  for (const auto& [id, number] : {Choice{api::id_of::hello},
                                   {api::id_of::cuMemAlloc_v2},
                                   {api::id_of::cuStreamCreate},
                                   {api::id_of::cuEventCreate},
                                   {api::id_of::cuModuleLoadData},
                                   {api::id_of::cuLibraryLoadData},
                                   {api::id_of::cuModuleGetFunction},
                                   {api::id_of::cuLibraryGetKernel},
                                   {api::id_of::cuGraphCreate, 0},
                                   {api::id_of::cuGraphAddEmptyNode},
                                   {api::id_of::cuGraphAddHostNode},
                                   {api::id_of::cuGraphAddKernelNode_v2, 1},
                                   {api::id_of::cuGraphAddMemcpyNode, 1},
                                   {api::id_of::cuGraphAddMemsetNode, 1},
                                   {api::id_of::cuGraphAddEventRecordNode, 1},
                                   {api::id_of::cuGraphAddEventWaitNode, 1},
                                   {api::id_of::add_pageable, 1},
                                   {api::id_of::cuGraphConditionalHandleCreate, 0},
                                   {api::id_of::cuGraphInstantiateWithParams, 1},
                                   {api::id_of::cuUserObjectCreate, 1}}) {
    const std::vector<std::uint8_t> plain_choices(4096, number);
    fuzz::Input in(plain_choices.data(), plain_choices.size());
    records.read_from(in);
    const auto line = std::find_if(calls.begin(), calls.end(), [wanted = id](const auto& c) { return c.id == wanted; });
    const auto& payload = records.write(*line);
    const ring::RecordHeader header{
        .bytes = ring::record_size(payload.size()), .call = line->id, .flags = ring::flag_wants_reply, .position = 1};
    const auto answer = world.serve(*line, header, payload);
    fuzz::require(answer.result == CUDA_SUCCESS, "there is something for %s", std::string(line->name).c_str());
    learn(world, records, *line, answer);
  }
}

// Begins a capture of the newest stream, in any mode.
void begin_capture(World& world, fuzz::Records& records, fuzz::Input& in) {
  const fuzz::CallLine line{
      .id = api::id_of::cuStreamBeginCapture_v2, .name = "cuStreamBeginCapture_v2", .waits = true, .fields = {}};
  const auto& payload = records.write_newest(api::Handle::Stream, in.below(3));
  world.serve(
      line,
      {.bytes = ring::record_size(payload.size()), .call = line.id, .flags = ring::flag_wants_reply, .position = 1},
      payload);
}

// Indexed by call id. libFuzzer counts these elements as coverage, so it keeps an input that makes a new call succeed.
[[gnu::section("__libfuzzer_extra_counters")]] std::uint8_t succeeded[1024];

// The number of successes of each call about captures and graphs. With IVGPU_FUZZ_REACH=1 the process fails if one of
// these calls never succeeds, since the fuzzer would not search its handler beyond the first refusal.
class Reached {
 public:
  explicit Reached(const std::vector<fuzz::CallLine>& calls) : calls_(calls) {}
  Reached(const Reached&) = delete;
  Reached& operator=(const Reached&) = delete;
  ~Reached() {
    if (const char* const asked = getenv("IVGPU_FUZZ_REACH"); asked == nullptr || *asked != '1') return;
    // The seeds do not reach these calls yet, since each call needs a particular node among many.
    constexpr std::string_view not_yet[] = {"cuGraphHostNodeSetParams", "cuGraphChildGraphNodeGetGraph",
                                            "cuGraphEventRecordNodeSetEvent", "cuGraphAddNode_v2"};
    std::string missing;
    for (const fuzz::CallLine& line : calls_)
      if (!times_.contains(line.id) &&
          std::find(std::begin(not_yet), std::end(not_yet), line.name) == std::end(not_yet))
        missing.append(" ").append(line.name);
    std::fprintf(stderr, "of %zu calls of captures and graphs %zu have succeeded\n", calls_.size(), times_.size());
    fuzz::require(missing.empty(), "each call succeeds for one input, but not%s", missing.c_str());
  }
  void count(const fuzz::CallLine& line, const World::Answer& answer) {
    if (answer.broken || answer.result != CUDA_SUCCESS) return;
    succeeded[line.id % std::size(succeeded)] = 1;
    if (fuzz::is_about_graphs(line.name)) ++times_[line.id];
  }

 private:
  const std::vector<fuzz::CallLine>& calls_;
  std::map<std::uint16_t, std::uint64_t> times_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<fuzz::CallLine> calls = fuzz::all_calls(), of_graphs = fuzz::about_graphs(calls);
  static Reached reached(of_graphs);
  fuzz::Input in(data, size);
  World world;
  fuzz::Records records(arena_bytes);
  prepare(world, records, calls);
  records.read_from(in);
  std::optional<fuzz::Moving> moving;
  if (fuzz::memory_moves) world.move(moving.emplace(in));
  const std::vector<fuzz::CallLine>& chosen = in.once_in(2) ? of_graphs : calls;
  if (in.once_in(4)) begin_capture(world, records, in);
  for (int i = 0; i < most_records && !in.empty(); ++i) {
    const fuzz::CallLine& line = chosen[in.below(chosen.size())];
    std::vector<std::byte> payload = records.write(line);
    if (in.once_in(8)) {
      records.damage();
      payload = records.payload();
    }
    payload.resize(std::min<std::size_t>(payload.size(), ring::max_record));
    ring::RecordHeader header{.bytes = ring::record_size(payload.size()), .call = line.id, .flags = 0, .position = 1};
    if (line.waits || in.once_in(4)) header.flags = ring::flag_wants_reply;
    if (in.once_in(8)) header.flags |= ring::flag_per_thread;
    header.flags |= ring::capture_mode_flags(static_cast<unsigned>(in.below(4)));
    if (in.once_in(32)) header.flags = in.number<std::uint16_t>();
    if (in.once_in(64)) header.position = in.any();
    if (in.once_in(64)) header.bytes = static_cast<std::uint32_t>(in.any());
    const World::Answer answer = world.serve(line, header, payload);
    check_reply(world, answer.reply);
    reached.count(line, answer);
    learn(world, records, line, answer);
  }
  return 0;
}
