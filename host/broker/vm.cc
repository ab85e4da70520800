#include "host/broker/vm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "host/broker/slot_step.h"

namespace host::broker {
namespace {

using ring::SlotState;
using ring::SlotWord;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The first driver start of a machine can take many seconds for each GPU.
constexpr auto start_patience = seconds(60);
// A busy client of a sharing daemon must end by itself: killed, it takes the others with it.
constexpr auto end_patience = seconds(2);
// A claimer writes its owner at once. One that has not after this long died between the two.
constexpr auto owner_patience = seconds(2);
// While the broker ends, nobody answers who rings: it beats as often as a guest that waits would ask.
constexpr auto last_beats = milliseconds(100);

std::string said_of(const WorkerProcess::Exit& exit) {
  return exit.how + (exit.last_words.empty() ? "" : ": " + exit.last_words);
}

std::vector<std::string> with_devices(std::vector<std::string> arguments, const VmGpus& gpus) {
  for (const std::string& device : gpus.devices) arguments.insert(arguments.end(), {"--device", device});
  return arguments;
}

}  // namespace

// ---- beginning and end ---------------------------------------------------------------------------------------------

Vm::Vm(EventLoop& loop, const VmOptions& options, const WorkerProgram& program, TraceServer& traces, WipeQueue& wipes)
    : loop_(loop),
      options_(options),
      program_(program),
      traces_(traces),
      wipes_(wipes),
      slots_(static_cast<std::size_t>(options.slots)),
      starts_(static_cast<double>(options.starts_per_second), static_cast<double>(options.start_burst), Clock::now()) {}

std::unique_ptr<Vm> Vm::create(EventLoop& loop, const VmOptions& options, const BrokerOptions& broker,
                               const WorkerProgram& program, TraceServer& traces, WipeQueue& wipes,
                               std::string& error) {
  std::unique_ptr<Vm> vm(new Vm(loop, options, program, traces, wipes));
  if (!vm->open(broker, error)) return nullptr;
  traces.add_vm(options.name, static_cast<std::uint32_t>(options.slots));
  vm->refill();
  return vm;
}

bool Vm::make_group(std::string& error) {
  if (program_.groups == nullptr || !program_.groups->missing().empty()) return true;
  const GroupLimits limits{
      .memory_bytes = options_.memory_max, .pids = options_.pids_max, .cpu_thousandths = options_.cpu_max};
  group_ = program_.groups->make(options_.name, limits, error);
  return group_ != nullptr;
}

bool Vm::open(const BrokerOptions& broker, std::string& error) {
  if (!make_group(error)) return false;
  region_ = Region::create(options_, access_of(options_), error);
  if (!region_) return false;
  const auto wiper = [this](std::vector<Region::Range> ranges, const std::string& what) {
    return std::make_unique<Wiper>(wipes_, *region_, std::move(ranges), options_.name + ": " + what);
  };
  rest_wiper_ = wiper(region_->rest(), "what belongs to no slot");
  for (std::uint32_t k = 0; k < slots_.size(); ++k)
    slots_[k].wiper = wiper({region_->slot_range(k)}, fmt::format("slot {}", k));
  transport_ = make_transport(
      loop_, *region_, options_, broker,
      {[this] { look(); }, [this](std::uint32_t peer) { on_peer_gone(peer); }, [this] { on_vm_gone(); }}, error);
  if (!transport_) return false;
  spdlog::info("{}: {} slots of {} MiB{}{}", options_.name, slots_.size(), region_->slot_bytes() >> 20,
               transport_->tells_peers() ? "" : ", for an ivshmem-plain device whose memory is ", region_->path());
  if (options_.jail_ioctls == "any" && options_.jail != "off")
    spdlog::warn("{}: jail_ioctls = \"any\": its workers may make every request of NVIDIA's kernel modules",
                 options_.name);
  return true;
}

Vm::~Vm() {
  for (EventLoop::Id* id : {&beat_timer_, &refill_timer_, &stop_timer_}) loop_.forget(*id);
  for (Slot& slot : slots_)
    for (EventLoop::Id* id : {&slot.start_timer, &slot.empty_timer}) loop_.forget(*id);
  for (const Slot& slot : slots_) traces_.end(slot.session);
}

void Vm::stop(Clock::duration patience, std::function<void()> done) {
  stopping_ = true;
  stopped_ = std::move(done);
  transport_->close();
  for (EventLoop::Id* id : {&refill_timer_, &beat_timer_}) loop_.forget(*id);
  beat_while_held();
  bool any = false;
  for (Slot& slot : slots_) {
    if (!slot.worker) continue;
    any = true;
    slot.worker->end(patience);
  }
  if (!any) stop_timer_ = loop_.after(Clock::duration::zero(), [this] { stopped_(); });
}

// ---- what guests did to the directory ------------------------------------------------------------------------------

void Vm::look() {
  region_->restore_header();
  beat();
  for (std::uint32_t k = 0; k < slots_.size(); ++k) look_at(k);
  look_at_wanted();
  refill();
  beat_while_held();
}

void Vm::look_at(std::uint32_t k) {
  Slot& slot = slots_[k];
  const std::uint32_t seen = region_->entry(k)[&ring::SlotEntry::state].load(std::memory_order_acquire);  // A
  const Step step = step_between(slot.known, seen);
  const bool taken = slot.known.state == SlotState::Ready && (step == Step::Claimed || step == Step::Released);
  if (taken && demand_ > 0) --demand_;
  if (taken || slot.known.state == SlotState::Claimed) tell_owner(k);
  switch (step) {
    case Step::None: release_unowned(k); break;
    case Step::Claimed:
      slot.known = slot.known.with(SlotState::Claimed);
      slot.claimed = Clock::now();
      slot.peer = 0;
      spdlog::debug("{}: slot {} is claimed by peer {}", options_.name, k, region_->owner(k).peer);
      break;
    case Step::Released: release(k); break;
    case Step::PutBack: put_back(k, seen); break;
  }
  learn_owner(k);
  // Its worker has gone: before the claim was seen, or while a guest scribbled on the word.
  if (slot.known.state == SlotState::Claimed && !slot.worker) move(k, SlotState::Dead);
}

void Vm::learn_owner(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!slot.known.held() || slot.peer != 0) return;
  if (const std::uint32_t peer = region_->owner(k).peer; transport_->has(peer)) slot.peer = peer;
}

// To who traces: whose session it is, as the claimer says.
void Vm::tell_owner(std::uint32_t k) {
  const ring::SlotOwner owner = region_->owner(k);
  traces_.claimed(slots_[k].session, owner.pid, owner.peer);
}

void Vm::release_unowned(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!slot.known.held() || Clock::now() - slot.claimed < owner_patience) return;
  learn_owner(k);
  // Without connections an owner cannot be told from a scribble; it is the VM's own slot that a scribble wastes.
  if (slot.peer != 0 || (!transport_->tells_peers() && region_->owner(k).pid != 0)) return;
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
}

void Vm::on_peer_gone(std::uint32_t peer) {
  look();  // what it did last
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    Slot& slot = slots_[k];
    const std::uint32_t holder = slot.peer != 0 ? slot.peer : region_->owner(k).peer;
    if (holder == peer) release_held(k);
  }
  if (!transport_->anybody()) nobody_left();
}

void Vm::on_vm_gone() {
  look();  // what it did last
  for (std::uint32_t k = 0; k < slots_.size(); ++k) release_held(k);
  nobody_left();
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

void Vm::nobody_left() {
  end_surplus();
  rest_wiper_->start();
  // What they wrote into slots that nobody had goes back to the machine, too.
  for (Slot& slot : slots_)
    if (slot.known.state == SlotState::Empty) slot.wiper->start();
}

// ---- the broker's own steps ----------------------------------------------------------------------------------------

// False when a guest changed the word meanwhile; nothing is changed then, and a look tells what it did.
bool Vm::move(std::uint32_t k, SlotState to) {
  Slot& slot = slots_[k];
  const SlotWord next = to == SlotState::Empty ? emptied(slot.known) : slot.known.with(to);
  std::uint32_t expected = slot.known.word();
  if (!region_->entry(k)[&ring::SlotEntry::state].compare_exchange(expected, next.word(), std::memory_order_acq_rel))
    return false;
  slot.known = next;  // B
  return true;
}

void Vm::put_back(std::uint32_t k, std::uint32_t seen) {
  if (const auto more = put_backs_.admit()) {
    spdlog::warn("{}: slot {}: a guest wrote {:#x} over {:#x}; put back{}", options_.name, k, seen,
                 slots_[k].known.word(), *more);
  }
  region_->entry(k)[&ring::SlotEntry::state].compare_exchange(seen, slots_[k].known.word(), std::memory_order_acq_rel);
}

void Vm::release(std::uint32_t k) {
  Slot& slot = slots_[k];
  slot.known = slot.known.with(SlotState::Released);
  spdlog::debug("{}: slot {} is released", options_.name, k);
  if (slot.worker) {
    slot.worker->end(end_patience);
  } else {
    start_emptying(k);
  }
}

void Vm::start_emptying(std::uint32_t k) {
  loop_.forget(slots_[k].empty_timer);
  slots_[k].wiper->start([this, k] {
    if (may_be_emptied(k)) make_empty(k);
  });
}

bool Vm::may_be_emptied(std::uint32_t k) const {
  const SlotState state = slots_[k].known.state;
  return !slots_[k].worker &&
         (state == SlotState::Starting || state == SlotState::Ready || state == SlotState::Released);
}

// Precondition: may_be_emptied, and it is wiped. A Ready slot that a guest claims at the last moment, though its worker
// is gone, becomes Dead instead.
void Vm::make_empty(std::uint32_t k) {
  transport_->forget_rings(k);
  if (slots_[k].known.state != SlotState::Ready) region_->clear_owner(k);
  if (!move(k, SlotState::Empty)) {
    look_at(k);
    if (may_be_emptied(k)) {  // the word was put back; a guest that does this often waits longer
      slots_[k].empty_timer = loop_.after(milliseconds(10), [this, k] {
        slots_[k].empty_timer = 0;
        start_emptying(k);
      });
      return;
    }
  }
  refill();
}

// ---- workers -------------------------------------------------------------------------------------------------------

void Vm::refill() {
  if (stopping_ || refill_timer_ != 0) return;
  const auto target = std::max(static_cast<std::uint32_t>(options_.spare), demand_);
  if (count(SlotState::Starting) + count(SlotState::Ready) >= target) return;
  const auto is_empty = [](const Slot& s) { return s.known.state == SlotState::Empty; };
  const auto empty = std::find_if(slots_.begin(), slots_.end(), is_empty);
  if (empty == slots_.end()) return;
  if (const auto pause = backoff_.left(Clock::now()); pause != Span::zero()) return refill_after(pause);
  if (const auto wait = starts_.take(Clock::now()); wait != Span::zero()) return refill_after(wait);
  if (!start_worker(static_cast<std::uint32_t>(empty - slots_.begin()))) return;
  // A start takes about a millisecond; the next waits for another turn of the loop, so that nobody waits for many.
  refill_after(Span::zero());
}

// The last guest has gone: of what was started for those that waited, the spare ones are kept, unless it wrote into
// them.
void Vm::end_surplus() {
  demand_ = 0;
  std::uint32_t ready = count(SlotState::Ready);
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    if (slots_[k].known.state != SlotState::Ready || (ready <= options_.spare && !region_->touched(k))) continue;
    if (!move(k, SlotState::Starting)) continue;
    slots_[k].surplus = true;
    slots_[k].worker->end(end_patience);
    --ready;
  }
}

void Vm::when_warm(std::function<void()> warm) {
  warm_ = std::move(warm);
  if (options_.spare == 0) tell_warm();
}

void Vm::tell_warm() {
  if (const auto warm = std::exchange(warm_, nullptr)) warm();
}

void Vm::refill_after(Clock::duration delay) {
  refill_timer_ = loop_.after(delay, [this] {
    refill_timer_ = 0;
    refill();
  });
}

std::vector<std::string> Vm::arguments_for(std::uint32_t k) const {
  return {"--broker",
          std::to_string(getpid()),
          "--slot-offset",
          std::to_string(region_->slot_offset(k)),
          "--slot-bytes",
          std::to_string(region_->slot_bytes()),
          "--library",
          program_.library,
          "--jail",
          options_.jail,
          "--ioctls",
          options_.jail_ioctls,
          "--uid",
          std::to_string(options_.worker_uid),
          "--gid",
          std::to_string(options_.worker_gid),
          "--spin-us",
          std::to_string(slots_[k].may_spin ? options_.spin_us : 0),
          "--wait-spin-ms",
          std::to_string(options_.wait_spin_ms),
          "--guest-spin-us",
          std::to_string(options_.spin_threads > 0 ? options_.spin_us : 0),
          "--chaos-delay-us",
          std::to_string(options_.chaos_delay_us),
          "--image-bytes",
          std::to_string(options_.session_image_bytes),
          "--objects",
          std::to_string(options_.session_objects),
          "--max-threads",
          std::to_string(options_.own_uid && geteuid() == 0 ? options_.pids_max : 0)};
}

// Which workers may spin is fixed at their start, so that nobody has to agree with anybody on it: at most
// `spin_threads` of those that serve somebody, or will.
bool Vm::one_more_may_spin() const {
  const auto spins = [](const Slot& s) { return s.worker && s.may_spin && s.known.state != SlotState::Released; };
  return std::count_if(slots_.begin(), slots_.end(), spins) < options_.spin_threads;
}

bool Vm::start_worker(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!move(k, SlotState::Starting)) {
    look_at(k);  // puts the word back
    refill_after(milliseconds(10));
    return false;
  }
  slot.wiper->stop();  // pages that would be given back: the worker has them now
  slot.jail = {};
  slot.may_spin = one_more_may_spin();
  std::string error;
  slot.telemetry = Telemetry::create(fmt::format("telemetry:{}/{}", options_.name, k), error);
  if (!slot.telemetry) {
    on_start_failed(k, error);
    return false;
  }
  const WorkerCommand command{.program = program_.path,
                              .arguments = with_devices(arguments_for(k), program_.gpus),
                              .environment = program_.environment,
                              .region_fd = region_->memfd(),
                              .doorbell_fd = transport_->doorbell(k),
                              .telemetry_fd = slot.telemetry->memfd(),
                              .priority = program_.priority,
                              .group_entrance = group_ ? group_->entrance() : -1,
                              .log = &worker_log_};
  slot.worker =
      WorkerProcess::start(loop_, command, fmt::format("{}/{}", options_.name, k),
                           {[this, k](std::uint32_t layers, const std::string& text) { on_ready(k, layers, text); },
                            [this, k](const WorkerProcess::Exit& exit) { on_gone(k, exit); }},
                           error);
  if (!slot.worker) {
    on_start_failed(k, error);
    return false;
  }
  slot.session = traces_.begin(options_.name, k, slot.worker->pid(), *slot.telemetry);
  slot.start_timer = loop_.after(start_patience, [this, k] {
    slots_[k].start_timer = 0;
    slots_[k].worker->kill_now("it was not ready within a minute");
  });
  return true;
}

void Vm::on_ready(std::uint32_t k, std::uint32_t layers, const std::string& text) {
  loop_.forget(slots_[k].start_timer);
  if (!slots_[k].telemetry->seal()) return slots_[k].worker->kill_now("its telemetry cannot be sealed");
  backoff_.succeeded();
  slots_[k].jail = {true, layers, text};
  tell_jail(slots_[k].jail);
  spdlog::debug("{}: slot {}: worker {} is ready", options_.name, k, slots_[k].worker->pid());
  if (!stopping_ && !move(k, SlotState::Ready)) {
    look_at(k);  // a guest wrote over Starting: put back, and the step is tried once more
    if (!move(k, SlotState::Ready)) return slots_[k].worker->end(end_patience);
  }
  tell_warm();
  if (!stopping_ && !transport_->anybody()) end_surplus();
}

// Once, and again when a worker's differs.
void Vm::tell_jail(const WorkerJail& jail) {
  if (jail == jail_told_) return;
  jail_told_ = jail;
  const std::string active = fmt::format("{}", fmt::join(names_of_layers(jail.layers), ", "));
  if (jail.missing.empty()) {
    spdlog::info("{}: the workers' jail is complete: {}", options_.name, active);
  } else {
    spdlog::warn("{}: the workers' jail is incomplete: {}; what holds: {}", options_.name, jail.missing,
                 active.empty() ? "nothing" : active);
  }
}

BoundsStatus Vm::bounds() const {
  BoundsStatus bounds{.session_image_bytes = options_.session_image_bytes,
                      .session_objects = options_.session_objects,
                      .memory_max = options_.memory_max,
                      .pids_max = options_.pids_max,
                      .cpu_max = options_.cpu_max,
                      .group = group_ ? group_->path() : "",
                      .missing = program_.groups != nullptr ? program_.groups->missing() : "",
                      .use = {}};
  if (group_) bounds.use = group_->use();
  return bounds;
}

VmStatus Vm::status() const {
  VmStatus status{options_.name,
                  transport_->socket(),
                  region_->path(),
                  static_cast<std::uint64_t>(options_.region_size),
                  region_->slot_bytes(),
                  options_.jail,
                  options_.spin_threads,
                  options_.spin_us,
                  options_.wait_spin_ms,
                  transport_->connections(),
                  ended_,
                  ends_,
                  {},
                  program_.gpus,
                  bounds()};
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    const Slot& slot = slots_[k];
    SlotStatus s{slot.known, slot.worker ? slot.worker->pid() : 0, slot.worker ? slot.jail : WorkerJail{}, {}, {}, {}};
    if (slot.known.held()) {
      s.owner = region_->owner(k);
      s.claimed_for = Clock::now() - slot.claimed;
    }
    if (slot.worker) s.counters = slot.telemetry->counters();
    status.counters += s.counters;
    status.slots.push_back(s);
  }
  return status;
}

// What a worker has done counts for its VM; what it held has gone with it.
void Vm::retire_telemetry(Slot& slot) {
  traces_.end(std::exchange(slot.session, 0));
  Counters last = slot.telemetry->counters();
  last.device_memory = 0;
  ended_ += last;
  slot.telemetry.reset();
}

void Vm::on_gone(std::uint32_t k, const WorkerProcess::Exit& exit) {
  Slot& slot = slots_[k];
  loop_.forget(slot.start_timer);
  const std::unique_ptr<WorkerProcess> gone = std::move(slot.worker);
  retire_telemetry(slot);
  count_end(k, exit);
  const SlotWord before = slot.known;
  look_at(k);  // the guest may have claimed or released it last; a slot that is claimed becomes Dead here
  if (!released_in_look(before, slot.known)) conclude(k, exit);
  beat_while_held();
  const auto has_worker = [](const Slot& s) { return s.worker != nullptr; };
  if (stopping_ && std::none_of(slots_.begin(), slots_.end(), has_worker)) stopped_();
}

void Vm::keep_failure(std::uint32_t k, const WorkerProcess::Exit& exit) {
  if (ends_.failures.size() == WorkerEnds::most_failures) ends_.failures.pop_front();
  ends_.failures.push_back({exit.worker, k, exit.end == WorkerProcess::End::Signal, exit.number, exit.how});
}

void Vm::count_end(std::uint32_t k, const WorkerProcess::Exit& exit) {
  using End = WorkerProcess::End;
  switch (exit.end) {
    case End::Orderly: ++ends_.orderly; return;
    case End::ProtocolBroken: ++ends_.protocol_broken; break;
    case End::KilledByBroker: ++ends_.killed_by_broker; break;
    case End::Signal: ++ends_.signal; break;
    case End::OtherCode: ++ends_.other_code; break;
  }
  ends_.last_reason = fmt::format("slot {}: the worker {}", k, said_of(exit));
  if (exit.end == End::Signal || exit.end == End::OtherCode) keep_failure(k, exit);
  if (exit.end != End::Signal) return;
  ends_.last_signal = ends_.last_reason;
  if (stopping_) spdlog::warn("{}: {}", options_.name, ends_.last_reason);  // conclude() says it otherwise
}

// A slot without its worker, as the broker's last look found it.
void Vm::conclude(std::uint32_t k, const WorkerProcess::Exit& exit) {
  switch (slots_[k].known.state) {
    case SlotState::Ready: move(k, SlotState::Starting); [[fallthrough]];  // nobody shall claim what is being wiped
    case SlotState::Starting:
      if (stopping_) break;
      if (std::exchange(slots_[k].surplus, false)) {
        start_emptying(k);
        break;
      }
      on_start_failed(k, said_of(exit));
      break;
    case SlotState::Claimed:
    case SlotState::Dead:
      if (stopping_) break;
      if (const auto more = worker_ends_.admit())
        spdlog::warn("{}: slot {}: the worker {} while its guest used it{}", options_.name, k, exit.how, *more);
      break;
    case SlotState::Released:
      if (exit.end != WorkerProcess::End::Orderly) {
        if (const auto more = worker_ends_.admit())
          spdlog::info("{}: slot {}: the worker {}{}", options_.name, k, exit.how, *more);
      }
      start_emptying(k);
      break;
    case SlotState::Empty: break;
  }
}

void Vm::on_start_failed(std::uint32_t k, const std::string& why) {
  backoff_.failed(Clock::now());
  const auto pause = std::chrono::duration_cast<milliseconds>(backoff_.left(Clock::now()));
  spdlog::error("{}: slot {}: the worker {}; the next is started in {} ms", options_.name, k, why, pause.count());
  tell_warm();  // who hears it finds the reason in the log
  start_emptying(k);
}

// ---- the heartbeat -------------------------------------------------------------------------------------------------

// The answer to a guest that rings because it waits.
void Vm::beat() { region_->header()[&ring::RegionHeader::heartbeat].store(++heartbeat_, std::memory_order_release); }

// Rarely, for who does not ask; and what a guest did without a ring (it died before, or scribbled) is seen by then.
// A dead slot's owner may have died, too, without a word: it is looked at like a claimed one.
void Vm::beat_while_held() {
  const auto held = [](const Slot& s) { return s.known.held(); };
  if (std::none_of(slots_.begin(), slots_.end(), held)) return loop_.forget(beat_timer_);
  if (beat_timer_ != 0) return;
  beat_timer_ = loop_.after(stopping_ ? last_beats : milliseconds(ring::heartbeat_ms), [this] {
    beat_timer_ = 0;
    if (!stopping_) return look();
    beat();
    beat_while_held();
  });
}

std::uint32_t Vm::count(SlotState state) const {
  return static_cast<std::uint32_t>(
      std::count_if(slots_.begin(), slots_.end(), [state](const Slot& s) { return s.known.state == state; }));
}

}  // namespace host::broker
