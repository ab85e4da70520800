// Several channels of one session at once, as threads of a hostile guest use them: a channel ends, resets or recreates
// an object that another channel uses. One thread serves each channel, with one session on the strict fake driver.
//
// Only one thread runs at a time, and the input chooses it. The choice can change
// - before each record, when the last record has been executed;
// - before and after each call of the driver: between a lookup and the use, and between the driver's result and the
//   session's update;
// - before each lock that the worker takes (tests/fuzz/locks.h).
// The choice never depends on time, so an input repeats its finding. This target does not search interleavings between
// atomic operations: tests/unit/session/objects_test.cc covers them.
//
// Records follow the protocol, except that one in 64 has a damaged word. The target expects that valid records do not
// break the session, and that no thread waits forever. No object may reach the driver in a record that began after the
// object's end. At rest, the session must know exactly the driver's objects and memory. After all objects have ended,
// every count must be 0.
#include <sys/mman.h>

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "host/session/session.h"
#include "host/untrusted/callbacks/callback_slots.h"
#include "host/untrusted/channel.h"
#include "ring/api/records.h"
#include "tests/fake/driver.h"
#include "tests/fuzz/locks.h"
#include "tests/fuzz/turns.h"
#include "tests/fuzz/whole_records.h"
#include "tests/other_side.h"

namespace {

constexpr std::size_t arena_bytes = 4 << 20;
constexpr unsigned most_records = 48;       // the sum of all channels' records
constexpr std::uint32_t quiet_channel = 8;  // serves before and after the other channels, which are 0 to 3
constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

class World;
class Lane;
thread_local Lane* lane = nullptr;  // the channel that this thread serves
thread_local bool in_driver = false;
fuzz::Turns* turns = nullptr;  // null while only one channel is served

void point() {
  if (lane != nullptr && turns != nullptr && !in_driver) turns->pass();
}

std::uint64_t record_of_this_thread();
std::optional<std::string_view> asked_by_this_thread();

// ---- the driver, with a switch point before and after each call ----------------------------------------------------

host::Driver plain;

template <auto entry>
struct Through;
template <class... P, CUresult (*host::Driver::*entry)(P...)>
struct Through<entry> {
  static CUresult call(P... p) {
    if (plain.*entry == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    point();
    in_driver = true;
    fake::programs_call = asked_by_this_thread();
    CUresult result = CUDA_ERROR_INVALID_HANDLE;  // the result of a use that raced with the object's end
    try {
      result = (plain.*entry)(p...);
    } catch (const fake::Raced&) {
    }
    in_driver = false;
    point();
    return result;
  }
};

host::Driver with_points(const fake::Driver& fake) {
  plain = fake.table();
  host::Driver driver;
#define CALL(id, fn, ...) driver.fn = Through<&host::Driver::fn>::call;
#define CUSTOM CALL
#define LOCAL(fn, ...) driver.fn = Through<&host::Driver::fn>::call;
#define VARIANT(fn, ...) driver.fn = Through<&host::Driver::fn>::call;
#define ABSENT(...)
#include "ring/api/driver.def"
  return driver;
}

// ---- records, and which records ran at the same time
// -----------------------------------------------------------------

struct Span {
  std::uint64_t began = 0, executed = never;
};
std::vector<Span> spans;  // indexed by record
std::uint64_t ticks = 0;

std::uint64_t record_of_this_thread();
bool overlap(std::uint64_t one, std::uint64_t other) {
  return spans[one].began < spans[other].executed && spans[other].began < spans[one].executed;
}

// A record that the worker is serving, as the guest knows the record.
struct Sent {
  const fuzz::CallLine* line = nullptr;
  std::uint64_t made = 0;
  bool wants_reply = false;
  unsigned mode = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// A channel. It writes its next record when the worker looks for one and the last record has been executed.
class Lane {
 public:
  Lane(World& world, std::uint32_t channel);
  void serve();
  // Called in the serving thread before each read of shared memory.
  void before_read(const void* at) {
    if (at == &control_.tail && control_.head == control_.tail && !stop_) next();
  }
  std::uint64_t record() const { return record_; }
  std::string_view asks_driver() const { return sent_.line != nullptr ? sent_.line->asks_driver() : ""; }

 private:
  void next();
  void send(const std::vector<std::byte>& payload);
  void conclude();

  World& world_;
  const std::uint32_t channel_;
  ring::ChannelControl& control_;
  std::byte* const ring_;
  std::atomic<bool> stop_{false};
  Sent sent_;
  std::uint64_t position_ = 0, record_ = 0;
};

std::uint64_t record_of_this_thread() { return lane != nullptr ? lane->record() : 0; }
std::optional<std::string_view> asked_by_this_thread() {
  return lane != nullptr ? std::optional(lane->asks_driver()) : std::nullopt;
}

class World {
 public:
  explicit World(fuzz::Input& in)
      : in_(in),
        driver_(with_points(fake_)),
        base_(static_cast<std::byte*>(mmap(nullptr, ring::arena_offset + arena_bytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        slot(base_, ring::arena_offset + arena_bytes),
        session(slot, driver_, {.spin_us = 0, .chaos_delay_us = 0, .windows = host::all_windows, .join_at_end = true}),
        ids_([this](std::uint64_t id) { return known(id); }),
        records_(in, ids_) {
    const auto choice = in.number();
    of_graphs_ = choice >= 192;
    fake_.let_race({record_of_this_thread, overlap, choice % 2 == 1});
    callback_slots_.end();  // no guest can call the program's functions in this target
    spans.assign(1, {});
    // make_current() expects the context that an earlier session left current in this thread.
    CUcontext context = nullptr;
    plain.cuDevicePrimaryCtxRetain(&context, 0);
    plain.cuCtxSetCurrent(context);
  }
  ~World() { munmap(base_, ring::arena_offset + arena_bytes); }

  void run() {
    prepare();
    const auto channels = 2 + static_cast<unsigned>(in_.below(fuzz::Turns::most_threads - 1));
    fuzz::Turns order(channels, in_);
    turns = &order;
    std::vector<std::thread> threads;
    for (unsigned c = 0; c < channels; ++c) threads.emplace_back([this, c] { serve_in_turn(c); });
    for (std::thread& thread : threads) thread.join();
    turns = nullptr;
    fuzz::require(!session.protocol.broken || damaged_, "whole records break no session, as one of %s does",
                  std::string(unfinished_).c_str());
    if (session.protocol.broken) return;
    check_known();
    end_everything();
  }

  // Chooses the next record. Returns false if there is none.
  bool choose(Sent& sent, std::vector<std::byte>& payload);
  void executed(const Sent& sent, CUresult result, std::span<const std::byte> reply);
  // The session broke during this record, which may be the cause.
  void broken_by(const Sent& sent) { unfinished_ = sent.line->name; }

 private:
  bool known(std::uint64_t id) const { return session.objects.find(id, api::Id::of(id).kind) != nullptr; }
  void serve_in_turn(unsigned channel) {
    turns->begin(channel);
    Lane(*this, channel).serve();
    turns->end();
  }
  // Serves these records in order, on a separate channel.
  void serve_alone() {
    std::memset(static_cast<void*>(&other_side::control(slot, quiet_channel)), 0, sizeof(ring::ChannelControl));
    Lane(*this, quiet_channel).serve();
  }
  void order(const char* name, std::vector<std::uint64_t> words) { ordered_.push_back({name, std::move(words)}); }
  void prepare();
  std::size_t handles_to_be_known();
  void check_known();
  void check_ranges();
  void end_everything();
  bool choose_ordered(Sent& sent, std::vector<std::byte>& payload);

  struct Ordered {
    std::string_view name;
    std::vector<std::uint64_t> words;  // the payload; empty: generated
  };
  fuzz::Input& in_;
  fake::Driver fake_;
  const host::Driver driver_;
  std::byte* const base_;

 public:
  const ring::SlotView slot;
  host::Session session;

 private:
  host::CallbackSlots callback_slots_{session, -1};
  fuzz::SharedIds ids_;
  fuzz::WholeRecords records_;
  std::deque<Ordered> ordered_;
  bool chosen_by_input_ = false, damaged_ = false, of_graphs_ = false;
  std::string_view unfinished_;
  unsigned sent_ = 0;
};

const std::vector<fuzz::CallLine>& calls() {
  static const std::vector<fuzz::CallLine> known = [] {
    std::vector<fuzz::CallLine> lines = fuzz::all_calls();
    // bring_name reads a name from the arena. This target writes no names into the arena, and a name without a NUL
    // breaks the session.
    std::erase_if(lines, [](const fuzz::CallLine& line) {
      return !fuzz::WholeRecords::knows(line) || line.name == "bring_name";
    });
    return lines;
  }();
  return known;
}
const std::vector<fuzz::CallLine>& calls_of_graphs() {
  static const std::vector<fuzz::CallLine> known = fuzz::about_graphs(calls());
  return known;
}
// Calls that end objects in use, or that create state beside them. Every second record is one of these calls.
constexpr std::string_view telling[] = {"cuDevicePrimaryCtxReset_v2",
                                        "cuModuleUnload",
                                        "cuLibraryUnload",
                                        "cuMemFree_v2",
                                        "cuStreamDestroy_v2",
                                        "cuEventDestroy_v2",
                                        "pin_arena",
                                        "join_arena",
                                        "cuMemAlloc_v2",
                                        "cuModuleLoadData",
                                        "cuLibraryLoadData",
                                        "cuModuleGetFunction",
                                        "cuLibraryGetKernel",
                                        "cuModuleGetGlobal_v2",
                                        "cuLibraryGetGlobal",
                                        "cuLibraryGetManaged",
                                        "shadow_variable",
                                        "cuKernelGetFunction",
                                        "cuLibraryGetModule"};
const fuzz::CallLine& call_named(std::string_view name) {
  static const std::vector<fuzz::CallLine> all = fuzz::all_calls();
  return *std::find_if(all.begin(), all.end(), [&](const auto& line) { return line.name == name; });
}

// ---- a channel -----------------------------------------------------------------------------------------------------

Lane::Lane(World& world, std::uint32_t channel)
    : world_(world),
      channel_(channel),
      control_(other_side::control(world.slot, channel)),
      ring_(other_side::requests(world.slot, channel).data()) {}

void Lane::serve() {
  lane = this;
  host::serve_channel(world_.session, channel_, stop_);
  if (sent_.line != nullptr) conclude();
  lane = nullptr;
}

void Lane::next() {
  if (sent_.line != nullptr) conclude();
  point();
  std::vector<std::byte> payload;
  if (world_.session.protocol.broken || !world_.choose(sent_, payload)) {
    stop_ = true;
    return;
  }
  send(payload);
}

void Lane::send(const std::vector<std::byte>& payload) {
  const ring::RecordHeader header{.bytes = ring::record_size(payload.size()),
                                  .call = sent_.line->id,
                                  .flags = static_cast<std::uint16_t>((sent_.wants_reply ? ring::flag_wants_reply : 0) |
                                                                      ring::capture_mode_flags(sent_.mode)),
                                  .position = ++position_};
  fuzz::require(control_.tail + header.bytes <= ring::request_bytes, "the ring has room for all records");
  std::memcpy(ring_ + control_.tail, &header, sizeof header);
  std::copy(payload.begin(), payload.end(), ring_ + control_.tail + sizeof header);
  record_ = spans.size();
  spans.push_back({.began = ++ticks});
  control_.tail += header.bytes;
}

void Lane::conclude() {
  const Sent sent = std::exchange(sent_, {});
  if (control_.executed != position_) return world_.broken_by(sent);
  spans[record_].executed = ++ticks;
  const bool replied = control_.reply_position == position_;
  fuzz::require(replied == sent.wants_reply, "who wants a reply gets one");
  if (!replied) return world_.executed(sent, CUDA_SUCCESS, {});
  fuzz::require(control_.reply_length <= ring::reply_bytes, "a reply fits into its mailbox");
  world_.executed(sent, static_cast<CUresult>(control_.reply_result),
                  other_side::reply(world_.slot, channel_).first(control_.reply_length));
}

// ---- sending and receiving -----------------------------------------------------------------------------------------

bool World::choose(Sent& sent, std::vector<std::byte>& payload) {
  if (!chosen_by_input_) return choose_ordered(sent, payload);
  if (in_.empty() || ++sent_ > most_records) return false;
  const std::vector<fuzz::CallLine>& chosen = of_graphs_ ? calls_of_graphs() : calls();
  const fuzz::CallLine& line =
      !of_graphs_ && in_.once_in(2) ? call_named(in_.pick(telling)) : chosen[in_.below(chosen.size())];
  payload = records_.write(line);
  sent = {&line, records_.made(), line.waits || in_.once_in(4)};
  if (session.graphs.captures.any()) sent.mode = static_cast<unsigned>(in_.below(4));
  if (in_.once_in(64)) {
    payload = records_.damage();
    damaged_ = true;
  }
  return true;
}

bool World::choose_ordered(Sent& sent, std::vector<std::byte>& payload) {
  if (ordered_.empty()) return false;
  const Ordered wanted = std::move(ordered_.front());
  ordered_.pop_front();
  const fuzz::CallLine& line = call_named(wanted.name);
  sent = {&line, 0, true};
  const auto bytes = std::as_bytes(std::span(wanted.words));
  payload.assign(bytes.begin(), bytes.end());
  if (wanted.words.empty()) {
    payload = records_.write(line);
    sent.made = records_.made();
  }
  return true;
}

// The guest may learn device addresses, but no other address of the worker.
void World::executed(const Sent& sent, CUresult result, std::span<const std::byte> reply) {
  if (sent.made != 0) ids_.made(sent.made);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i + sizeof word <= reply.size(); i += sizeof word) {
    std::memcpy(&word, reply.data() + i, sizeof word);
    fuzz::require(!fake_.issued(reinterpret_cast<const void*>(word)), "a reply holds the driver's handle %llx",
                  static_cast<unsigned long long>(word));
  }
  // A reply has ids that the worker has chosen, even an error's reply, at any multiple of four bytes.
  for (std::size_t i = 0; i + sizeof word <= reply.size(); i += sizeof(std::uint32_t)) {
    std::memcpy(&word, reply.data() + i, sizeof word);
    if (known(word)) ids_.found(word);
  }
  if (sent.line->finds != api::Handle::None && result == CUDA_SUCCESS && reply.size() >= sizeof word) {
    std::memcpy(&word, reply.data(), sizeof word);
    ids_.found(word);
  }
  if (!sent.line->gives_memory || result != CUDA_SUCCESS || reply.size() < sizeof word) return;
  std::memcpy(&word, reply.data(), sizeof word);
  records_.learn_address(word);
}

// Makes one object of each kind, so that short inputs find objects to share.
void World::prepare() {
  order("hello", {ring::window_count, 0});
  for (const char* name : {"cuMemAlloc_v2", "cuStreamCreate", "cuEventCreate", "cuModuleLoadData", "cuLibraryLoadData",
                           "cuModuleGetFunction", "cuLibraryGetKernel", "cuModuleGetGlobal_v2"})
    order(name, {});
  if (of_graphs_) order("cuGraphCreate", {ids_.take(api::Handle::Graph, 0), 0});
  serve_alone();
  chosen_by_input_ = true;
}

// ---- checks at rest ------------------------------------------------------------------------------------------------

// Counts the driver's handles, without the driver's own pool if the guest has not requested it.
std::size_t World::handles_to_be_known() {
  const void* const own = fake_.own_pool();
  const auto names_it = [&](std::uint64_t id) { return session.objects.find(id, api::Id::of(id).kind) == own; };
  const bool is_known = own == nullptr || std::any_of(ids_.all().begin(), ids_.all().end(), names_it);
  return fake_.live_handles() - (is_known ? 0 : 1);
}

void World::check_known() {
  std::uint64_t found = 0, resources = 0, of_graphs = 0;
  std::set<const void*> graphs;
  for (const std::uint64_t id : ids_.all())
    if (const void* handle = session.objects.find(id, api::Id::of(id).kind); handle != nullptr) {
      ++found;
      if (api::Id::of(id).kind == api::Handle::Resource) {  // bytes in the session, not a handle
        ++resources;
        continue;
      }
      const api::Handle kind = api::Id::of(id).kind;
      if (kind == api::Handle::Graph) graphs.insert(handle);
      if (kind == api::Handle::Graph || kind == api::Handle::GraphNode || kind == api::Handle::UserObject) ++of_graphs;
      fuzz::require(fake_.is_live(handle), "what id %llx names is the driver's", static_cast<unsigned long long>(id));
    }
  fuzz::require(session.objects.count() == found, "%llu objects are counted, %llu are there",
                static_cast<unsigned long long>(session.objects.count()), static_cast<unsigned long long>(found));
  fuzz::require(handles_to_be_known() == found - resources - of_graphs || damaged_,
                "the driver has %zu objects, the session %llu", handles_to_be_known(),
                static_cast<unsigned long long>(found - resources - of_graphs));
  for (const void* graph : fake_.live_graphs())
    fuzz::require(graphs.contains(graph) || damaged_, "each graph that the program is to destroy has an id");
  check_ranges();
}

void World::check_ranges() {
  const auto live = fake_.live_ranges();
  const auto is_live = [&](std::uint64_t at) {
    return std::any_of(live.begin(), live.end(), [&](const auto& r) { return at - r.first < r.second; });
  };
  for (const std::uint64_t at : records_.addresses())
    fuzz::require(!session.memory.addresses.contains(at, 1) || is_live(at) || session.arena.holds(at),
                  "memory that may be named is the driver's");
  // After a fault of the context no memory can be freed. A reset then returns memory that the session has released.
  if (other_side::header(slot).fault != 0) return;
  for (const auto& [start, bytes] : live)
    fuzz::require(session.memory.addresses.contains(start, bytes), "the driver's memory may be named");
  fuzz::require(session.memory.addresses.count() == live.size() + fake_.registered_bytes() / ring::huge_page,
                "%llu ranges are counted, the driver has %zu",
                static_cast<unsigned long long>(session.memory.addresses.count()), live.size());
}

// A reset ends the context's objects, including captures; all other objects end one by one. The driver's own pool
// stays, and so do resources and descriptors, which no call ends.
void World::end_everything() {
  constexpr std::pair<api::Handle, const char*> ends[] = {
      {api::Handle::Library, "cuLibraryUnload"},      {api::Handle::MemPool, "cuMemPoolDestroy"},
      {api::Handle::Allocation, "cuMemRelease"},      {api::Handle::Link, "cuLinkDestroy"},
      {api::Handle::GraphExec, "cuGraphExecDestroy"}, {api::Handle::Graph, "cuGraphDestroy"}};
  chosen_by_input_ = false;
  order("cuDevicePrimaryCtxReset_v2", {0});
  for (const std::uint64_t id : ids_.all())
    for (const auto& [kind, end] : ends)
      if (api::Id::of(id).kind == kind && known(id) && !session.objects.is_owned(id)) order(end, {id});
  for (const std::uint64_t id : ids_.all())
    if (api::Id::of(id).kind == api::Handle::UserObject && known(id)) order("cuUserObjectRelease", {id, 0x7fff'ffff});
  serve_alone();
  const auto left = [this](api::Handle kind) {
    const auto is_left = [&](std::uint64_t id) { return known(id) && api::Id::of(id).kind == kind; };
    return static_cast<std::size_t>(std::count_if(ids_.all().begin(), ids_.all().end(), is_left));
  };
  fuzz::require(left(api::Handle::MemPool) <= 1, "every pool but the driver's own has ended");
  const std::size_t own = left(api::Handle::MemPool) + left(api::Handle::ResourceDesc);
  fuzz::require(!session.protocol.broken, "an orderly end breaks no session");
  fuzz::require(session.objects.count() == own + left(api::Handle::Resource),
                "no object of the session's is counted at the end");
  fuzz::require(session.code.budget.used() == 0, "no image is counted at the end");
  fuzz::require(session.memory.addresses.count() == fake_.registered_bytes() / ring::huge_page,
                "only the arena may be named at the end");
  fuzz::require(session.telemetry.page().device_memory == 0, "the telemetry shows no device memory at the end");
  fuzz::require(handles_to_be_known() == own && fake_.live_allocations() == 0, "the driver has nothing at the end");
}

}  // namespace

void fuzz::lock_wanted() { point(); }
bool fuzz::lock_taken() {
  if (lane == nullptr || turns == nullptr || in_driver) return false;
  turns->blocked();
  return true;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ring::observer = [](const void* at, std::size_t) {
    if (lane != nullptr) lane->before_read(at);
  };
  fuzz::Input in(data, size);
  World(in).run();
  return 0;
}
