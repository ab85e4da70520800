#include "host/broker/vm/vm.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace host::broker {

using ring::SlotState;

// ---- beginning -----------------------------------------------------------------------------------------------------

Vm::Vm(EventLoop& loop, const VmOptions& options, const WorkerProgram& program)
    : context_{loop, options, program},
      persistence_(context_, [this](std::uint32_t k, SavedSlot& to) { save(k, to); }),
      pace_(loop, options.starts_per_second, options.start_burst, [this] { supply_->refill(); }),
      gpus_(context_, static_cast<std::size_t>(options.slots),
            [this](const auto& ends) { supply_->end_unclaimed_where(ends); }) {
  if (program.scheduler != nullptr) context_.scheduled_as = program.scheduler->add_vm(share_of(context_.options));
}

Result<std::unique_ptr<Vm>> Vm::create(EventLoop& loop, const VmOptions& options, const BrokerOptions& broker,
                                       const WorkerProgram& program, TraceServer& traces, ScrubQueue& scrub_queue) {
  std::unique_ptr<Vm> vm(new Vm(loop, options, program));
  if (const auto opened = vm->open(broker, traces, scrub_queue); !opened) return opened.error();
  traces.add_vm(options.name, static_cast<std::uint32_t>(options.slots));
  vm->supply_->refill();
  return vm;
}

Result<void> Vm::open(const BrokerOptions& broker, TraceServer& traces, ScrubQueue& scrub_queue) {
  if (const auto made = bounds_.make_group(); !made) return made.error();
  count_memory();
  auto opened = persistence_.open();
  if (!opened) return opened.error();
  region_ = std::move(opened->region);
  const std::unique_ptr<SavedVm> saved = std::move(opened->left);
  auto transport =
      make_transport(context_.loop, *region_, context_.options, broker, persistence_.kept_transport(saved.get()),
                     {[this] { look(); }, [this](std::uint32_t peer) { on_peer_gone(peer); }, [this] { on_vm_gone(); },
                      [this](std::uint32_t k) {
                        look();
                        slots_->release_held(k);
                      },
                      [this](auto slot, auto channel) { persistence_.save_channel(slot, channel); }});
  if (!transport) return transport.error();
  transport_ = *std::move(transport);
  spdlog::info("{}: {} slots of {} MiB{}{}", context_.options.name, context_.options.slots, region_->slot_bytes() >> 20,
               transport_->knows_peers()              ? ""
               : context_.options.transport == "pmem" ? ", for a pmem device whose memory is "
                                                      : ", for an ivshmem-plain device whose memory is ",
               transport_->memory());
  make_parts(traces, scrub_queue);
  if (const auto joined = join_mps(saved != nullptr); !joined) return joined.error();
  if (saved) go_on_with(*saved);
  if (context_.options.jail_ioctls == "any" && context_.options.jail != "off")
    spdlog::warn("{}: jail_ioctls = \"any\": its workers may make every request of NVIDIA's kernel modules",
                 context_.options.name);
  return {};
}

void Vm::count_memory() {
  memory_.count(static_cast<std::size_t>(context_.options.slots),
                {.send =
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
}

// Precondition: region and transport exist.
void Vm::make_parts(TraceServer& traces, ScrubQueue& scrub_queue) {
  log_ =
      std::make_unique<SessionLog>(context_.options.name, *region_, static_cast<std::size_t>(context_.options.slots));
  slots_ = std::make_unique<SlotTable>(
      context_, *region_, *transport_, scrub_queue, *log_, persistence_,
      SlotTable::Acts{
          .has_worker = [this](std::uint32_t k) { return (*workers_)[k].process != nullptr; },
          .end_worker = [this](std::uint32_t k) { (*workers_)[k].process->end(VmContext::end_patience); },
          .owner_seen = [this](std::uint32_t k, const ring::SlotOwner& owner) { workers_->note_owner(k, owner); },
          .session_begins =
              [this] {
                supply_->serve_one();
                mps_.watch();
              },
          .emptied = [this] { supply_->refill(); }});
  workers_ = std::make_unique<WorkerPool>(
      context_, WorkerPool::Parts{*slots_, persistence_, memory_, mps_, gpus_, *log_, pace_, traces},
      WorkerLauncher(context_, *region_, *transport_, persistence_, bounds_, memory_, mps_),
      WorkerPool::Events{.ready =
                             [this](std::uint32_t k, const worker::ReadyMessage& reported) {
                               gpus_.compare(k, reported);
                               if (!transport_->anybody()) supply_->end_surplus();
                             },
                         .gone = [this] { heartbeat_->beat_while_needed(); }});
  supply_ = std::make_unique<WorkerSupply>(context_, *region_, *slots_, *workers_, pace_, memory_, mps_, *log_);
  questions_ = std::make_unique<GpuQuestions>(context_, *region_, *slots_, gpus_, memory_, mps_);
  heartbeat_ = std::make_unique<Heartbeat>(
      context_.loop, *region_,
      Heartbeat::Acts{.is_needed = [this] { return slots_->sessions() > 0; }, .look = [this] { look(); }});
}

Result<void> Vm::join_mps(bool goes_on) {
  return mps_.join(goes_on, {.ready =
                                 [this] {
                                   if (!context_.stopping) pace_.try_soon();
                                 },
                             .failed = [this] { pace_.report_warm(); },
                             .lost = [this](const std::string& why) { on_mps_lost(why); },
                             .end_sessions = [this] { workers_->end_each("MPS has lost all clients of its GPU"); },
                             .has_sessions = [this] { return slots_->sessions() > 0; },
                             .fault = [this] { return workers_->reported_fault(); }});
}

void Vm::when_warm(std::function<void()> warm) {
  pace_.when_warm(std::move(warm));
  if (context_.options.spare == 0 || persistence_.has_adopted()) pace_.report_warm();
}

// ---- across a restart of the broker --------------------------------------------------------------------------------

void Vm::save(std::uint32_t k, SavedSlot& to) const {
  slots_->save(k, to);
  workers_->save(k, to);
  log_->save(k, to);
  memory_.save(k, to);
}

void Vm::go_on_with(const SavedVm& saved) {
  heartbeat_->adopt();
  supply_->adopt(saved);
  for (std::uint32_t k = 0; k < slots_->size(); ++k) {
    slots_->adopt(k, saved.slot[k]);
    log_->adopt(k, saved.slot[k]);
    workers_->adopt(k, saved.slot[k]);
  }
  for (std::uint32_t k = 0; k < slots_->size(); ++k) slots_->look_at(k);  // see what guests did meanwhile
  for (std::uint32_t k = 0; k < slots_->size(); ++k) workers_->resolve(k);
  supply_->count_waiting();
  questions_->go_on();
  if (sessions() > 0) mps_.watch();
  // Unclaimed workers have the old program and configuration; new ones replace them.
  supply_->end_unclaimed(0);
  heartbeat_->beat();
  heartbeat_->beat_while_needed();
  spdlog::info("{}: {} session(s) and {} connection(s) of before the restart go on", context_.options.name, sessions(),
               transport_->connections());
}

// ---- end and change ------------------------------------------------------------------------------------------------

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

Result<void> Vm::change(const VmOptions& options, const WorkerProgram& program, bool new_sessions) {
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
  supply_->apply(new_sessions);
  if (const std::string refused = bounds_.apply(); !refused.empty()) return Error{refused};
  return {};
}

// ---- what guests and the operator do -------------------------------------------------------------------------------

void Vm::look() {
  region_->restore_header();
  heartbeat_->beat();
  for (std::uint32_t k = 0; k < slots_->size(); ++k) slots_->look_at(k);
  supply_->count_waiting();
  questions_->look();
  persistence_.save_counts(supply_->wanted_seen(), supply_->demand());
  supply_->refill();
  heartbeat_->beat_while_needed();
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

void Vm::nobody_left() {
  region_->label();
  for (std::uint32_t k = 0; k < slots_->size(); ++k) slots_->forget_pins(k);
  supply_->end_surplus();
  slots_->scrubbers().scrub_rest();
  // Scrubs pages that guests wrote in unclaimed slots, too.
  for (std::uint32_t k = 0; k < slots_->size(); ++k)
    if (slots_->state(k) == SlotState::Empty) slots_->scrubbers().scrub_slot(k);
}

// A session's program gets the driver's own error from its next call. Spare workers are lost as well, which no program
// would notice before it claims one.
void Vm::on_mps_lost(const std::string& why) {
  if (context_.stopping) return;
  spdlog::warn("{}: {}; {} session(s) get the driver's error and end within {} s, and fresh workers start after them",
               context_.options.name, why, sessions(), MpsRegistration::grace.count());
  supply_->end_all_unclaimed();
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

VmStatus Vm::status() const {
  VmStatus status{context_.options.name,
                  transport_->socket(),
                  transport_->memory(),
                  static_cast<std::uint64_t>(context_.options.region_size),
                  region_->slot_bytes(),
                  context_.options.jail,
                  context_.options.spin_threads,
                  context_.options.spin_us,
                  context_.options.wait_spin_ms,
                  transport_->connections(),
                  workers_->history().counters(),
                  workers_->history().ends(),
                  {},
                  context_.program.gpus,
                  bounds_.status(),
                  gpus_.memory()};
  status.quotas = memory_.quotas();
  status.gpus_missing = gpus_.missing().size();
  for (std::uint32_t k = 0; k < slots_->size(); ++k) {
    const SlotWorker& worker = (*workers_)[k];
    SlotStatus s;
    s.word = slots_->word(k);
    s.pinned = slots_->is_pinned(k);
    if (worker.process) {
      s.worker = worker.process->pid();
      s.jail = worker.jail;
      s.counters = worker.telemetry->counters();
    }
    if (s.word.held()) {
      s.owner = region_->owner(k);
      s.program = region_->program(k);
      s.claimed_for = log_->age(k);
    }
    status.counters += s.counters;
    status.slots.push_back(s);
  }
  return status;
}

}  // namespace host::broker
