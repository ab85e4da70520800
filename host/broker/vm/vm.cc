#include "host/broker/vm/vm.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "host/broker/region/slot_step.h"
#include "ring/verify/mutants.h"

namespace host::broker {
namespace {

using ring::SlotState;
using ring::SlotWord;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A claimer writes its owner at once. A claimer that has not after this time died in between.
constexpr auto owner_patience = seconds(2);
// An ending broker does not answer doorbells, so it increments the heartbeat as often as a waiting guest would request
// it.
constexpr auto last_beats = milliseconds(100);

}  // namespace

// ---- beginning and end ---------------------------------------------------------------------------------------------

Vm::Vm(EventLoop& loop, const VmOptions& options, const WorkerProgram& program, TraceServer& traces,
       ScrubQueue& scrub_queue)
    : context_{loop, options, program},
      traces_(traces),
      scrub_queue_(scrub_queue),
      persistence_(context_, [this](std::uint32_t k, SavedSlot& to) { save(k, to); }),
      slots_(static_cast<std::size_t>(options.slots)),
      pace_(loop, options.starts_per_second, options.start_burst, [this] { refill(); }),
      gpus_(context_, slots_.size(), [this](const auto& which) { end_unclaimed_where(which); }),
      answers_(answers_per_second, answers_at_once, Clock::now()) {
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
  memory_.count(slots_.size(),
                {.send =
                     [this](std::uint32_t k, const auto& words) {
                       persistence_.save(k);  // the record has a grant before the worker learns of it
                       return slots_[k].worker && slots_[k].worker->send(words);
                     },
                 .end =
                     [this](std::uint32_t k, const std::string& why) {
                       if (slots_[k].worker) slots_[k].worker->kill_now(why.c_str());
                     },
                 .taken = [this](std::uint32_t k, unsigned device) -> std::uint64_t {
                   return slots_[k].telemetry ? slots_[k].telemetry->taken(device) : 0;
                 },
                 .is_spare = [this](std::uint32_t k) { return slots_[k].known.state == SlotState::Ready; },
                 .wake = nullptr,
                 .more_headroom =
                     [this] {
                       if (!context_.stopping) pace_.try_soon();
                     }});
  auto [region, saved] = persistence_.open(error);
  if (!region) return false;
  region_ = std::move(region);
  log_ = std::make_unique<SessionLog>(context_.options.name, *region_, slots_.size());
  scrubbers_ = std::make_unique<RegionScrubbers>(scrub_queue_, *region_, context_.options.name, slots_.size());
  transport_ =
      make_transport(context_.loop, *region_, context_.options, broker, persistence_.kept_transport(saved.get()),
                     {[this] { look(); }, [this](std::uint32_t peer) { on_peer_gone(peer); }, [this] { on_vm_gone(); },
                      [this](std::uint32_t k) { on_holder_gone(k); },
                      [this](auto slot, auto channel) { persistence_.save_channel(slot, channel); }},
                     error);
  if (!transport_) return false;
  spdlog::info("{}: {} slots of {} MiB{}{}", context_.options.name, slots_.size(), region_->slot_bytes() >> 20,
               transport_->knows_peers()              ? ""
               : context_.options.transport == "pmem" ? ", for a pmem device whose memory is "
                                                      : ", for an ivshmem-plain device whose memory is ",
               transport_->memory());
  if (!mps_.join(saved != nullptr,
                 {.ready =
                      [this] {
                        if (!context_.stopping) pace_.try_soon();
                      },
                  .failed = [this] { pace_.report_warm(); },
                  .lost = [this](const std::string& why) { on_mps_lost(why); },
                  .end_sessions = [this] { end_lost_sessions(); },
                  .has_sessions = [this] { return sessions() > 0; },
                  .fault = [this] { return reported_fault(); }},
                 error))
    return false;
  if (saved) go_on_with(*saved);
  if (context_.options.jail_ioctls == "any" && context_.options.jail != "off")
    spdlog::warn("{}: jail_ioctls = \"any\": its workers may make every request of NVIDIA's kernel modules",
                 context_.options.name);
  return true;
}

Vm::~Vm() {
  for (EventLoop::Id* id : {&beat_timer_, &stop_timer_, &question_timer_}) context_.loop.forget(*id);
  if (context_.program.facts != nullptr) context_.program.facts->forget(facts_asked_);
  for (Slot& slot : slots_)
    for (EventLoop::Id* id : {&slot.start_timer, &slot.empty_timer}) context_.loop.forget(*id);
  for (const Slot& slot : slots_) traces_.end(slot.session);
  for (Slot& slot : slots_) slot.schedule.reset();
  if (context_.program.scheduler != nullptr) context_.program.scheduler->remove_vm(context_.scheduled_as);
  persistence_.forget_all();
}

void Vm::stop(Clock::duration patience, std::function<void()> done) {
  scrubbers_->stop_everything();
  transport_->close();
  end_all(patience, std::move(done));
}

void Vm::remove(Clock::duration patience, std::function<void()> removed) {
  pace_.report_warm();  // waiting for a removed VM to get warm would be in vain
  transport_->stop_admitting();
  end_all(patience, [this, removed = std::move(removed)] {
    transport_->close();
    context_.loop.forget(beat_timer_);  // a heartbeat would touch the header's page, which will be scrubbed
    scrubbers_->scrub_everything(removed);
  });
}

void Vm::end_all(Clock::duration patience, std::function<void()> done) {
  context_.stopping = true;
  pace_.stop();
  gpus_.stop();
  stopped_ = std::move(done);
  for (EventLoop::Id* id : {&beat_timer_, &stop_timer_, &question_timer_}) context_.loop.forget(*id);
  beat_while_held();
  bool any = false;
  for (Slot& slot : slots_) {
    if (!slot.worker) continue;
    any = true;
    slot.worker->end(patience);
  }
  if (!any) stop_timer_ = context_.loop.after(Clock::duration::zero(), [this] { stopped_(); });
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
  end_starting(keep - std::min(keep, count(SlotState::Ready)));
  end_unclaimed(keep);
  refill();
  error = bounds_.apply();
  return error.empty();
}

// ---- changes by guests in the directory -----------------------------------------------------------------------------

void Vm::look() {
  region_->restore_header();
  beat();
  for (std::uint32_t k = 0; k < slots_.size(); ++k) look_at(k);
  look_at_wanted();
  look_at_questions();
  persistence_.save_counts(wanted_seen_, demand_);
  refill();
  beat_while_held();
}

void Vm::look_at(std::uint32_t k) {
  Slot& slot = slots_[k];
  const std::uint32_t seen = region_->entry(k)[&ring::SlotEntry::state].load(std::memory_order_acquire);  // A
  const Step step = step_between(slot.known, seen);
  const bool taken = slot.known.state == SlotState::Ready && (step == Step::Claimed || step == Step::Released);
  if (taken && demand_ > 0) --demand_;
  if (taken || slot.known.state == SlotState::Claimed) report_owner(k);
  switch (step) {
    case Step::None: release_unowned(k); break;
    case Step::Claimed:
      slot.known = slot.known.with(SlotState::Claimed);
      session_begins(k);
      spdlog::debug("{}: slot {} is claimed by peer {}", context_.options.name, k, region_->owner(k).peer);
      break;
    case Step::Released:
      if (slot.known.state == SlotState::Ready) session_begins(k);  // claimed and released between two looks
      release(k);
      break;
    case Step::PutBack: put_back(k, seen); break;
  }
  learn_owner(k);
  if (slot.known.held()) log_->learn_program(k);
  look_at_pins(k);
  // Its worker has gone, before the claim was seen or while a guest wrote over the word.
  if (slot.known.state == SlotState::Claimed && !slot.worker) move(k, SlotState::Dead);
  persistence_.save(k);
}

void Vm::session_begins(std::uint32_t k) {
  slots_[k].peer = 0;
  log_->begin(k);
  mps_.watch();
}

void Vm::learn_owner(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!slot.known.held() || slot.peer != 0) return;
  if (const std::uint32_t peer = region_->owner(k).peer; transport_->has(peer)) slot.peer = peer;
}

// Reports the session's owner, which the session itself has written, to the clients that trace it.
void Vm::report_owner(std::uint32_t k) {
  const ring::SlotOwner owner = region_->owner(k);
  traces_.claimed(slots_[k].session, owner.pid, owner.peer);
}

void Vm::release_unowned(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!slot.known.held() || log_->age(k) < owner_patience) return;
  learn_owner(k);
  // Without connections a real owner cannot be distinguished from garbage; garbage only wastes a slot of its own VM.
  if (slot.peer != 0 || (!transport_->knows_peers() && region_->owner(k).pid != 0)) return;
  std::uint32_t expected = slot.known.word();
  if (region_->entry(k)[&ring::SlotEntry::state].compare_exchange(expected, slot.known.with(SlotState::Released).word(),
                                                                  std::memory_order_acq_rel)) {  // A, B
    release(k);
  }
}

void Vm::look_at_wanted() {
  const std::uint32_t wanted = region_->header()[&ring::RegionHeader::wanted].load(std::memory_order_acquire);
  const std::uint32_t more = wanted - wanted_seen_;
  wanted_seen_ = wanted;
  demand_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{demand_} + more, slots_.size()));
  if (more > 0) report_full();
}

void Vm::on_peer_gone(std::uint32_t peer) {
  look();  // see its last changes
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    Slot& slot = slots_[k];
    const std::uint32_t holder = slot.peer != 0 ? slot.peer : region_->owner(k).peer;
    if (holder != peer) continue;
    forget_pins(k);
    release_held(k);
  }
  if (!transport_->anybody()) nobody_left();
}

void Vm::on_vm_gone() {
  look();  // see its last changes
  for (std::uint32_t k = 0; k < slots_.size(); ++k) release_held(k);
  nobody_left();
}

void Vm::on_holder_gone(std::uint32_t k) {
  look();  // see its last changes
  release_held(k);
}

void Vm::release_held(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!slot.known.held()) return;
  std::uint32_t expected = slot.known.word();
  const SlotWord released = slot.known.with(SlotState::Released);
  region_->entry(k)[&ring::SlotEntry::state].compare_exchange(expected, released.word(),
                                                              std::memory_order_acq_rel);  // A, B
  release(k);
}

// The guest kernel that used pages of the slot has ended.
void Vm::forget_pins(std::uint32_t k) {
  if (!ring::wrong(ring::Mutant::pins_outlive)) region_->clear_pinned(k);
  look_at_pins(k);
}

void Vm::look_at_pins(std::uint32_t k) {
  if (slots_[k].still_pinned && !region_->pinned(k)) start_emptying(k);
}

void Vm::nobody_left() {
  region_->label();
  for (std::uint32_t k = 0; k < slots_.size(); ++k) forget_pins(k);
  end_surplus();
  scrubbers_->scrub_rest();
  // Scrubs pages that guests wrote in unclaimed slots, too.
  for (std::uint32_t k = 0; k < slots_.size(); ++k)
    if (slots_[k].known.state == SlotState::Empty) scrubbers_->scrub_slot(k);
}

std::size_t Vm::end_sessions(std::optional<std::uint32_t> slot) {
  look();  // what guests did last
  std::size_t ended = 0;
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    if ((slot && *slot != k) || slots_[k].known.state != SlotState::Claimed || !slots_[k].worker) continue;
    log_->set_reason(k, "`ivgpu end` asked for it");
    slots_[k].worker->end(VmContext::end_patience);
    ++ended;
  }
  return ended;
}

// A guest wants a slot and finds none.
void Vm::report_full() {
  const auto taken = [](const Slot& slot) { return slot.known.held() || slot.still_pinned; };
  if (std::all_of(slots_.begin(), slots_.end(), taken)) log_->all_slots_taken();
}

// ---- the broker's own steps ----------------------------------------------------------------------------------------

// Changes nothing and returns false if a guest has changed the word meanwhile; a look then handles that change.
bool Vm::move(std::uint32_t k, SlotState to) {
  Slot& slot = slots_[k];
  const SlotWord next = to == SlotState::Empty ? emptied(slot.known) : slot.known.with(to);
  std::uint32_t expected = slot.known.word();
  if (!region_->entry(k)[&ring::SlotEntry::state].compare_exchange(expected, next.word(), std::memory_order_acq_rel))
    return false;
  slot.known = next;  // B
  persistence_.save(k);
  return true;
}

void Vm::put_back(std::uint32_t k, std::uint32_t seen) {
  if (const auto more = put_backs_.admit()) {
    spdlog::warn("{}: slot {}: a guest wrote {:#x} over {:#x}; put back{}", context_.options.name, k, seen,
                 slots_[k].known.word(), *more);
  }
  region_->entry(k)[&ring::SlotEntry::state].compare_exchange(seen, slots_[k].known.word(), std::memory_order_acq_rel);
}

void Vm::release(std::uint32_t k) {
  Slot& slot = slots_[k];
  slot.known = slot.known.with(SlotState::Released);
  log_->end(k, "");
  persistence_.save(k);
  if (ring::wrong(ring::Mutant::worker_kept) && region_->pinned(k)) return;
  if (slot.worker) {
    slot.worker->end(VmContext::end_patience);
  } else {
    start_emptying(k);
  }
}

// Precondition: the slot has no worker any more.
void Vm::start_emptying(std::uint32_t k) {
  Slot& slot = slots_[k];
  context_.loop.forget(slot.empty_timer);
  slot.still_pinned = slot.known.state == SlotState::Released && region_->pinned(k);
  if (ring::wrong(ring::Mutant::pins_unseen)) slot.still_pinned = false;
  if (slot.still_pinned)
    return spdlog::debug("{}: slot {}: its guest's kernel still uses pages of it", context_.options.name, k);
  scrubbers_->scrub_slot(k, [this, k] {
    if (may_be_emptied(k)) make_empty(k);
  });
}

bool Vm::may_be_emptied(std::uint32_t k) const {
  const SlotState state = slots_[k].known.state;
  return !slots_[k].worker &&
         (state == SlotState::Starting || state == SlotState::Ready || state == SlotState::Released);
}

// Precondition: may_be_emptied(), and the slot is scrubbed. If a guest claims a Ready slot at the last moment, though
// its worker has gone, the slot becomes Dead instead.
void Vm::make_empty(std::uint32_t k) {
  transport_->forget_rings(k);
  if (slots_[k].known.state != SlotState::Ready) region_->clear_owner(k);
  if (!move(k, SlotState::Empty)) {
    look_at(k);
    if (may_be_emptied(k)) {  // the word was put back; a guest that does this often waits longer
      slots_[k].empty_timer = context_.loop.after(milliseconds(10), [this, k] {
        slots_[k].empty_timer = 0;
        start_emptying(k);
      });
      return;
    }
  }
  refill();
}

// ---- the heartbeat -------------------------------------------------------------------------------------------------

// Answers a guest that sends a doorbell because it waits.
void Vm::beat() { region_->header()[&ring::RegionHeader::heartbeat].store(++heartbeat_, std::memory_order_release); }

// A slow timer, for guests that send no doorbell. It finds changes that a guest made without one, because it died
// before or wrote garbage. It also checks Dead slots, whose owners may have died as well.
void Vm::beat_while_held() {
  const auto held = [](const Slot& s) { return s.known.held(); };
  if (std::none_of(slots_.begin(), slots_.end(), held)) return context_.loop.forget(beat_timer_);
  if (beat_timer_ != 0) return;
  beat_timer_ = context_.loop.after(context_.stopping ? last_beats : milliseconds(ring::heartbeat_ms), [this] {
    beat_timer_ = 0;
    if (!context_.stopping) return look();
    beat();
    beat_while_held();
  });
}

std::uint32_t Vm::count(SlotState state) const {
  return static_cast<std::uint32_t>(
      std::count_if(slots_.begin(), slots_.end(), [state](const Slot& s) { return s.known.state == state; }));
}

}  // namespace host::broker
