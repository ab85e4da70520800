#include "host/broker/vm/vm.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace host::broker {
namespace {

using ring::SlotState;

}  // namespace

// ---- beginning and end ---------------------------------------------------------------------------------------------

Vm::Vm(EventLoop& loop, const VmOptions& options, const WorkerProgram& program, TraceServer& traces,
       ScrubQueue& scrub_queue)
    : context_{loop, options, program},
      traces_(traces),
      scrub_queue_(scrub_queue),
      persistence_(context_, [this](std::uint32_t k, SavedSlot& to) { save(k, to); }),
      pace_(loop, options.starts_per_second, options.start_burst, [this] { refill(); }),
      gpus_(context_, static_cast<std::size_t>(options.slots),
            [this](const auto& which) { end_unclaimed_where(which); }) {
  if (program.scheduler != nullptr) context_.scheduled_as = program.scheduler->add_vm(share_of(context_.options));
}

std::unique_ptr<Vm> Vm::create(EventLoop& loop, const VmOptions& options, const BrokerOptions& broker,
                               const WorkerProgram& program, TraceServer& traces, ScrubQueue& scrub_queue,
                               std::string& error) {
  std::unique_ptr<Vm> vm(new Vm(loop, options, program, traces, scrub_queue));
  if (!vm->open(broker, error)) return nullptr;
  traces.add_vm(options.name, static_cast<std::uint32_t>(options.slots));
  vm->refill();
  return vm;
}

bool Vm::open(const BrokerOptions& broker, std::string& error) {
  if (!bounds_.make_group(error)) return false;
  const auto slots = static_cast<std::size_t>(context_.options.slots);
  memory_.count(slots, {.send =
                            [this](std::uint32_t k, const auto& words) {
                              persistence_.save(k);  // the record has a grant before the worker learns of it
                              const auto& worker = (*workers_)[k];
                              return worker.process && worker.process->send(words);
                            },
                        .end =
                            [this](std::uint32_t k, const std::string& why) {
                              const auto& worker = (*workers_)[k];
                              if (worker.process) worker.process->kill_now(why.c_str());
                            },
                        .taken = [this](std::uint32_t k, unsigned device) -> std::uint64_t {
                          const auto& worker = (*workers_)[k];
                          return worker.telemetry ? worker.telemetry->taken(device) : 0;
                        },
                        .is_spare = [this](std::uint32_t k) { return slots_->state(k) == SlotState::Ready; },
                        .wake = nullptr,
                        .more_headroom =
                            [this] {
                              if (!context_.stopping) pace_.try_soon();
                            }});
  auto [region, saved] = persistence_.open(error);
  if (!region) return false;
  region_ = std::move(region);
  log_ = std::make_unique<SessionLog>(context_.options.name, *region_, slots);
  transport_ =
      make_transport(context_.loop, *region_, context_.options, broker, persistence_.kept_transport(saved.get()),
                     {[this] { look(); }, [this](std::uint32_t peer) { on_peer_gone(peer); }, [this] { on_vm_gone(); },
                      [this](std::uint32_t k) { on_holder_gone(k); },
                      [this](auto slot, auto channel) { persistence_.save_channel(slot, channel); }},
                     error);
  if (!transport_) return false;
  spdlog::info("{}: {} slots of {} MiB{}{}", context_.options.name, slots, region_->slot_bytes() >> 20,
               transport_->knows_peers()              ? ""
               : context_.options.transport == "pmem" ? ", for a pmem device whose memory is "
                                                      : ", for an ivshmem-plain device whose memory is ",
               transport_->memory());
  slots_ = std::make_unique<SlotTable>(
      context_, *region_, *transport_, scrub_queue_, *log_, persistence_,
      SlotTable::Acts{
          .has_worker = [this](std::uint32_t k) { return (*workers_)[k].process != nullptr; },
          .end_worker = [this](std::uint32_t k) { (*workers_)[k].process->end(VmContext::end_patience); },
          .owner_seen = [this](std::uint32_t k, const ring::SlotOwner& owner) { workers_->note_owner(k, owner); },
          .session_begins = [this] { on_session(); },
          .emptied = [this] { refill(); }});
  workers_ = std::make_unique<WorkerPool>(
      context_, WorkerPool::Parts{*slots_, persistence_, memory_, mps_, gpus_, *log_, pace_, traces_},
      WorkerLauncher(context_, *region_, *transport_, persistence_, bounds_, memory_, mps_),
      WorkerPool::Events{.ready =
                             [this](std::uint32_t k, const worker::ReadyMessage& reported) {
                               gpus_.compare(k, reported);
                               if (!transport_->anybody()) end_surplus();
                             },
                         .gone = [this] { heartbeat_->beat_while_needed(); }});
  questions_ = std::make_unique<GpuQuestions>(context_, *region_, *slots_, gpus_, memory_, mps_);
  heartbeat_ = std::make_unique<Heartbeat>(
      context_.loop, *region_,
      Heartbeat::Acts{.is_needed = [this] { return slots_->sessions() > 0; }, .look = [this] { look(); }});
  if (!mps_.join(saved != nullptr,
                 {.ready =
                      [this] {
                        if (!context_.stopping) pace_.try_soon();
                      },
                  .failed = [this] { pace_.report_warm(); },
                  .lost = [this](const std::string& why) { on_mps_lost(why); },
                  .end_sessions = [this] { end_lost_sessions(); },
                  .has_sessions = [this] { return sessions() > 0; },
                  .fault = [this] { return workers_->reported_fault(); }},
                 error))
    return false;
  if (saved) go_on_with(*saved);
  if (context_.options.jail_ioctls == "any" && context_.options.jail != "off")
    spdlog::warn("{}: jail_ioctls = \"any\": its workers may make every request of NVIDIA's kernel modules",
                 context_.options.name);
  return true;
}

Vm::~Vm() {
  if (workers_) workers_->leave();
  if (context_.program.scheduler != nullptr) context_.program.scheduler->remove_vm(context_.scheduled_as);
  persistence_.forget_all();
}

void Vm::stop(Clock::duration patience, std::function<void()> done) {
  slots_->scrubbers().stop_everything();
  transport_->close();
  end_all(patience, std::move(done));
}

void Vm::remove(Clock::duration patience, std::function<void()> removed) {
  pace_.report_warm();  // waiting for a removed VM to get warm would be in vain
  transport_->stop_admitting();
  end_all(patience, [this, removed = std::move(removed)] {
    transport_->close();
    heartbeat_->stop();  // a heartbeat would touch the header's page, which will be scrubbed
    slots_->scrubbers().scrub_everything(removed);
  });
}

void Vm::end_all(Clock::duration patience, std::function<void()> done) {
  context_.stopping = true;
  pace_.stop();
  gpus_.stop();
  questions_->stop();
  heartbeat_->begin_end();
  workers_->end_all(patience, std::move(done));
}

bool Vm::change(const VmOptions& options, const WorkerProgram& program, bool new_sessions, std::string& error) {
  const bool other_pace = options.starts_per_second != context_.options.starts_per_second ||
                          options.start_burst != context_.options.start_burst;
  context_.options = options;
  context_.program = program;
  gpus_.forget();
  if (other_pace) pace_.limit(options.starts_per_second, options.start_burst);
  if (context_.program.scheduler != nullptr)
    context_.program.scheduler->change_vm(context_.scheduled_as, share_of(context_.options));
  transport_->bound_connections(static_cast<std::size_t>(context_.options.connections));
  memory_.bound();
  const std::uint32_t keep = new_sessions ? 0 : std::max(static_cast<std::uint32_t>(context_.options.spare), demand_);
  end_starting(keep - std::min(keep, slots_->count(SlotState::Ready)));
  end_unclaimed(keep);
  refill();
  error = bounds_.apply();
  return error.empty();
}

// ---- changes by guests in the directory -----------------------------------------------------------------------------

void Vm::look() {
  region_->restore_header();
  heartbeat_->beat();
  for (std::uint32_t k = 0; k < slots_->size(); ++k) slots_->look_at(k);
  look_at_wanted();
  questions_->look();
  persistence_.save_counts(wanted_seen_, demand_);
  refill();
  heartbeat_->beat_while_needed();
}

void Vm::on_session() {
  if (demand_ > 0) --demand_;
  mps_.watch();
}

// True if no slot is left for another program.
bool Vm::is_full() const {
  for (std::uint32_t k = 0; k < slots_->size(); ++k)
    if (!slots_->word(k).held() && !slots_->is_pinned(k)) return false;
  return true;
}

void Vm::look_at_wanted() {
  const std::uint32_t wanted = region_->header()[&ring::RegionHeader::wanted].load(std::memory_order_acquire);
  const std::uint32_t more = wanted - wanted_seen_;
  wanted_seen_ = wanted;
  demand_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{demand_} + more, slots_->size()));
  if (more > 0 && is_full()) log_->all_slots_taken();
}

void Vm::on_peer_gone(std::uint32_t peer) {
  look();  // see its last changes
  slots_->release_held_by(peer);
  if (!transport_->anybody()) nobody_left();
}

void Vm::on_vm_gone() {
  look();  // see its last changes
  for (std::uint32_t k = 0; k < slots_->size(); ++k) slots_->release_held(k);
  nobody_left();
}

void Vm::on_holder_gone(std::uint32_t k) {
  look();  // see its last changes
  slots_->release_held(k);
}

void Vm::nobody_left() {
  region_->label();
  for (std::uint32_t k = 0; k < slots_->size(); ++k) slots_->forget_pins(k);
  end_surplus();
  slots_->scrubbers().scrub_rest();
  // Scrubs pages that guests wrote in unclaimed slots, too.
  for (std::uint32_t k = 0; k < slots_->size(); ++k)
    if (slots_->state(k) == SlotState::Empty) slots_->scrubbers().scrub_slot(k);
}

std::size_t Vm::end_sessions(std::optional<std::uint32_t> slot) {
  look();  // what guests did last
  std::size_t ended = 0;
  for (std::uint32_t k = 0; k < slots_->size(); ++k) {
    if ((slot && *slot != k) || slots_->state(k) != SlotState::Claimed || !(*workers_)[k].process) continue;
    workers_->end_session(k, "`ivgpu end` asked for it");
    ++ended;
  }
  return ended;
}

}  // namespace host::broker
