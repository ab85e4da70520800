// The broker's side of a slot's life (host/broker/vm/slot_table.cc). Guests write any word of the directory at any
// time, connections begin and end, workers become ready, exit or hang, and the input advances the time.
//
// The Vm is the real one. This file defines its workers and its server again, without processes and sockets, under the
// same names, so that the linker prefers these definitions. The clock is fake, too.
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <set>
#include <utility>

#include "host/broker/transport/ivshmem_server.h"
#include "host/broker/vm/vm.h"
#include "tests/fuzz/clock.h"
#include "tests/fuzz/input.h"
#include "tests/other_side.h"

// ---- fake workers and server
// ------------------------------------------------------------------------------------------

namespace host::broker {

constexpr std::uint32_t slots = 4;
constexpr std::int64_t starts_per_second = 10, start_burst = 6;
constexpr std::size_t region_bytes = 128 << 20;

struct Stage {
  std::byte* region = nullptr;  // the VM's whole memory, as guests and workers map it
  struct Worker {
    std::uint32_t slot;
    std::function<void()> gets_ready, exits;
    bool is_ready = false;
  };
  std::map<WorkerProcess*, Worker> workers;
  std::set<WorkerProcess*> asked_to_end;
  bool refuses_starts = false;
  std::uint64_t started = 0;
  IvshmemServer::PeerGone peer_gone;
  std::vector<Announcement> host_peers;

  std::uint32_t& word(std::uint32_t slot) const { return entry(slot).state; }
  ring::SlotEntry& entry(std::uint32_t slot) const { return other_side::entry(region, slot); }
  std::byte* extent(std::uint32_t slot) const {
    return region + ring::first_slot_offset + slot * ring::slot_bytes_for(region_bytes, slots);
  }
};
Stage* stage = nullptr;

// The input decides when descriptors are ready.
class ScriptedWaiter final : public Waiter {
 public:
  const char* name() const override { return "script"; }
  void arm(std::uint64_t id, int fd, short) override { armed_[fd] = id; }
  void disarm(std::uint64_t id, int fd) override {
    if (const auto at = armed_.find(fd); at != armed_.end() && at->second == id) armed_.erase(at);
  }
  void wait(const std::chrono::nanoseconds*, std::vector<Event>& events) override {
    for (const int fd : ready)
      if (const auto at = armed_.find(fd); at != armed_.end()) events.push_back({at->second, 1});
    ready.clear();
  }
  std::vector<int> ready;

 private:
  std::map<int, std::uint64_t> armed_;
};

struct IvshmemServer::Client {};
IvshmemServer::IvshmemServer(EventLoop& loop, ServerOptions options, PeerGone gone)
    : loop_(loop), options_(std::move(options)), gone_(std::move(gone)), next_peer_(ring::first_guest_peer) {}
IvshmemServer::~IvshmemServer() { stage->peer_gone = nullptr; }
host::Result<std::unique_ptr<IvshmemServer>> IvshmemServer::listen(EventLoop& loop, ServerOptions options,
                                                                   PeerGone gone) {
  stage->peer_gone = gone;
  stage->host_peers = options.host_peers;
  stage->region =
      static_cast<std::byte*>(mmap(nullptr, region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, options.memfd, 0));
  fuzz::require(stage->region != MAP_FAILED, "the region can be mapped");
  return std::unique_ptr<IvshmemServer>(new IvshmemServer(loop, std::move(options), std::move(gone)));
}

WorkerProcess::WorkerProcess(EventLoop& loop, WorkerLog& log, std::string label, Events events)
    : loop_(loop), label_(std::move(label)), events_(std::move(events)), log_(log) {}
WorkerProcess::~WorkerProcess() {
  stage->workers.erase(this);
  stage->asked_to_end.erase(this);
}
host::Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(EventLoop& loop, const WorkerCommand& command,
                                                                  std::string label, Events events) {
  ++stage->started;
  if (stage->refuses_starts) return host::Error{"no processes left"};
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(loop, *command.log, std::move(label), std::move(events)));
  const auto slot = static_cast<std::uint32_t>(std::atoi(process->label_.c_str() + process->label_.find('/') + 1));
  fuzz::require(slot < slots, "a worker is started for a slot");
  for (std::size_t i = 0; i < 2 * ring::page; i += 64)
    fuzz::require(stage->extent(slot)[i] == std::byte{0}, "slot %u holds what another session wrote", slot);
  for (const auto& [other, worker] : stage->workers)
    fuzz::require(worker.slot != slot, "slot %u has two workers", slot);
  WorkerProcess* const made = process.get();
  const auto report_ready = [made] {
    if (!std::exchange(stage->workers[made].is_ready, true)) made->on_ready({.gpus = 1});
  };
  stage->workers[made] = {slot, report_ready, [made] { made->on_exit(); }};
  return process;
}
// Only a VM with a descriptor store adopts workers.
std::unique_ptr<WorkerProcess> WorkerProcess::adopt(EventLoop&, Kept, pid_t, int, WorkerLog&, std::string, Events) {
  return nullptr;
}
void WorkerProcess::end(Clock::duration) { stage->asked_to_end.insert(this); }
void WorkerProcess::kill_now(const char*) { stage->asked_to_end.insert(this); }
void WorkerProcess::on_ready(const worker::ReadyMessage& message) const { events_.ready({0, "", message}); }
void WorkerProcess::on_exit() {
  const auto gone = events_.gone;
  const bool asked = stage->asked_to_end.count(this) != 0;
  const Exit exit{.end = asked ? End::Orderly : End::Signal,
                  .worker = 1,
                  .number = asked ? 0 : 11,
                  .how = "exited",
                  .last_words = ""};
  stage->workers.erase(this);
  stage->asked_to_end.erase(this);
  gone(exit);
}

}  // namespace host::broker

// ---- the script ----------------------------------------------------------------------------------------------------

namespace {

using namespace host::broker;
using ring::SlotState, ring::SlotWord;

VmOptions options() {
  VmOptions vm;
  vm.name = "fuzz";
  vm.region_size = static_cast<std::int64_t>(region_bytes);
  vm.slots = slots;
  vm.spare = 1;
  vm.starts_per_second = starts_per_second;
  vm.start_burst = start_burst;
  vm.connections = 4;
  vm.jail = "off";
  return vm;
}

class Script {
 public:
  explicit Script(fuzz::Input& in) : in_(in), loop_(make_waiter()) {
    stage = &stage_;
    vm_ = Vm::create(loop_, options(), {}, {}, traces_, scrub_queue_).value();
    began_ = fuzz::clock_ns;
  }
  ~Script() {
    vm_.reset();
    munmap(stage_.region, region_bytes);
    fuzz::require(stage_.workers.empty(), "workers end with their VM");
    stage = nullptr;
  }

  void run() {
    while (!in_.empty()) {
      one_step();
      turn();
    }
    settle();
  }

 private:
  std::unique_ptr<Waiter> make_waiter() {
    auto waiter = std::make_unique<ScriptedWaiter>();
    waiter_ = waiter.get();
    return waiter;
  }

  // Runs the loop's due callbacks.
  void turn() {
    loop_.after(Clock::duration::zero(), [this] { loop_.stop(); });
    loop_.run();
    const double allowed = start_burst + static_cast<double>(fuzz::clock_ns - began_) / 1e9 * starts_per_second;
    fuzz::require(static_cast<double>(stage_.started) <= allowed + 1, "%llu workers are started in %.3f s",
                  static_cast<unsigned long long>(stage_.started), static_cast<double>(fuzz::clock_ns - began_) / 1e9);
  }

  void pass(std::uint64_t ns) { fuzz::clock_ns += ns; }

  void ring() {
    const std::uint64_t one = 1;
    const int doorbell = stage_.host_peers[0].fd;
    [[maybe_unused]] const auto written = write(doorbell, &one, sizeof one);
    waiter_->ready.push_back(doorbell);
  }

  void one_step() {
    const auto slot = static_cast<std::uint32_t>(in_.below(slots));
    switch (in_.below(12)) {
      case 0: stage_.word(slot) = in_.number<std::uint32_t>(); break;
      case 1: set_state(slot, static_cast<SlotState>(in_.below(8))); break;
      case 2: claim(slot); break;
      case 3: set_state(slot, SlotState::Released); break;
      case 4: ring(); break;
      case 5: pass(1'000'000ULL << in_.below(17)); break;
      case 6: worker_of(slot, &Stage::Worker::gets_ready); break;
      case 7: worker_of(slot, &Stage::Worker::exits); break;
      case 8:
        if (stage_.peer_gone) stage_.peer_gone(ring::first_guest_peer + in_.number());
        break;
      case 9: header().wanted += static_cast<std::uint32_t>(in_.any()); break;
      case 10:
        std::memset(&stage_.entry(slot).owner, in_.number(), sizeof(ring::SlotOwner));
        std::memset(stage_.entry(slot).program, stage_.entry(slot).owner.pid & 0xff, sizeof(ring::SlotEntry::program));
        stage_.entry(slot).pinned = stage_.entry(slot).owner.pid & 1;
        break;
      default: stage_.refuses_starts = in_.once_in(2); break;
    }
  }

  ring::RegionHeader& header() { return other_side::region(stage_.region); }

  void set_state(std::uint32_t slot, SlotState state) {
    stage_.word(slot) = SlotWord::of(stage_.word(slot)).with(state).word();
  }
  // Claims a slot as a guest process does, and writes to the slot's memory. A guest can also write to a slot without a
  // worker. The target does not do that, since a later worker would then read those bytes by the VM's own fault.
  void claim(std::uint32_t slot) {
    const auto serves = [&](const auto& w) { return w.second.slot == slot; };
    if (std::none_of(stage_.workers.begin(), stage_.workers.end(), serves)) return;
    if (SlotWord::of(stage_.word(slot)).state != SlotState::Ready) return;
    set_state(slot, SlotState::Claimed);
    stage_.entry(slot).owner.peer = ring::first_guest_peer + in_.number();
    std::memset(stage_.extent(slot) + in_.below(2 * ring::page - 64), 0xee, 64);
    ring();
  }

  void worker_of(std::uint32_t slot, std::function<void()> Stage::Worker::*what) {
    for (const auto& [process, worker] : stage_.workers)
      if (worker.slot == slot) {
        const auto step = worker.*what;
        return step();
      }
  }

  // Guests release all slots and stop writing, and workers obey. Within 90 s, which is longer than any pause, a slot
  // must be free again.
  void settle() {
    stage_.refuses_starts = false;
    for (int second = 0; second < 90; ++second) {
      for (std::uint32_t k = 0; k < slots; ++k) {
        const SlotState state = SlotWord::of(stage_.word(k)).state;
        stage_.entry(k).pinned = 0;
        if (state == SlotState::Claimed || state == SlotState::Dead) set_state(k, SlotState::Released);
        const auto asked = [&](const auto& w) { return w.second.slot == k && stage_.asked_to_end.count(w.first) != 0; };
        const bool ends = std::any_of(stage_.workers.begin(), stage_.workers.end(), asked);
        worker_of(k, ends ? &Stage::Worker::exits : &Stage::Worker::gets_ready);
      }
      ring();
      turn();
      pass(1'000'000'000);
    }
    bool any = false;
    for (std::uint32_t k = 0; k < slots; ++k) any = any || SlotWord::of(stage_.word(k)).state == SlotState::Ready;
    fuzz::require(any, "no slot is Ready though nobody holds one");
  }

  fuzz::Input& in_;
  Stage stage_;
  ScriptedWaiter* waiter_ = nullptr;
  EventLoop loop_;
  TraceServer traces_{loop_};
  ScrubQueue scrub_queue_{loop_};
  std::unique_ptr<Vm> vm_;
  std::uint64_t began_ = 0;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(std::getenv("FUZZ_LOG") != nullptr ? spdlog::level::debug : spdlog::level::off);
  fuzz::Input in(data, std::min<std::size_t>(size, 1024));
  Script(in).run();
  return 0;
}
