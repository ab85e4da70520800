// A VM's workers: start ahead, ready, end, and the effect of their end on their slots.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "host/broker/region/slot_step.h"
#include "host/broker/vm/vm.h"

namespace host::broker {
namespace {

using ring::SlotState;
using ring::SlotWord;
using std::chrono::milliseconds;

// The first driver start of a machine can take many seconds for each GPU.
constexpr auto start_patience = std::chrono::seconds(60);

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more,
                              const VmGpus& gpus) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  for (const std::string& device : gpus.devices) arguments.insert(arguments.end(), {"--device", device});
  return arguments;
}

}  // namespace

void Vm::refill() {
  if (context_.stopping || pace_.is_waiting()) return;
  const auto target = std::max(static_cast<std::uint32_t>(context_.options.spare), demand_);
  if (count(SlotState::Starting) + count(SlotState::Ready) >= target) return;
  const auto is_empty = [](const Slot& s) { return s.known.state == SlotState::Empty; };
  const auto empty = std::find_if(slots_.begin(), slots_.end(), is_empty);
  if (empty == slots_.end()) return;
  if (!mps_.may_start()) return;
  if (!memory_.has_room(demand_)) return;
  if (!pace_.may_start()) return;
  if (!start_worker(static_cast<std::uint32_t>(empty - slots_.begin()))) return;
  // A start takes about a millisecond. The next start waits for another loop iteration, so that no client waits for
  // many.
  pace_.try_after(Span::zero());
}

// The last guest has gone: ends the workers started for waiting guests, but keeps `spare` workers that guests have not
// written into.
void Vm::end_surplus() {
  demand_ = 0;
  end_unclaimed(static_cast<std::uint32_t>(context_.options.spare));
}

// Ends ready workers without a session, except `keep`.
void Vm::end_unclaimed(std::uint32_t keep) {
  std::uint32_t ready = count(SlotState::Ready);
  end_unclaimed_where([&](std::uint32_t k) {
    if (ready <= keep && !region_->touched(k)) return false;
    --ready;
    return true;
  });
}

// A worker that a guest has claimed meanwhile stays.
void Vm::end_unclaimed_where(const std::function<bool(std::uint32_t)>& ends) {
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    if (slots_[k].known.state != SlotState::Ready || !ends(k) || !move(k, SlotState::Starting)) continue;
    slots_[k].surplus = true;
    slots_[k].worker->end(VmContext::end_patience);
  }
}

// Ends workers that are not ready yet, except `keep`.
void Vm::end_starting(std::uint32_t keep) {
  for (Slot& slot : slots_) {
    if (slot.known.state != SlotState::Starting || !slot.worker || slot.surplus) continue;
    if (keep > 0) {
      --keep;
      continue;
    }
    slot.surplus = true;
    slot.worker->end(VmContext::end_patience);
  }
}

void Vm::when_warm(std::function<void()> warm) {
  pace_.when_warm(std::move(warm));
  if (context_.options.spare == 0 || persistence_.has_adopted()) pace_.report_warm();
}

std::vector<std::string> Vm::arguments_for(std::uint32_t k) const {
  return {"--broker",
          std::to_string(getpid()),
          "--slot-offset",
          std::to_string(region_->slot_offset(k)),
          "--slot-bytes",
          std::to_string(region_->slot_bytes()),
          "--library",
          context_.program.library,
          "--jail",
          context_.options.jail,
          "--ioctls",
          context_.options.jail_ioctls,
          "--uid",
          std::to_string(context_.options.worker_uid),
          "--gid",
          std::to_string(context_.options.worker_gid),
          "--spin-us",
          std::to_string(slots_[k].may_spin ? context_.options.spin_us : 0),
          "--wait-spin-ms",
          std::to_string(context_.options.wait_spin_ms),
          "--guest-spin-us",
          std::to_string(context_.options.spin_threads > 0 ? context_.options.spin_us : 0),
          "--chaos-delay-us",
          std::to_string(context_.options.chaos_delay_us),
          "--image-bytes",
          std::to_string(context_.options.session_image_bytes),
          "--objects",
          std::to_string(context_.options.session_objects),
          "--gpus",
          std::to_string(std::min<std::size_t>(context_.program.gpus.list.size(), ring::max_devices)),
          "--outlive-ms",
          std::to_string(persistence_.outlives_broker() ? context_.program.outlive_ms : 0),
          "--doorbell-by",
          opened_by_path(context_.options) ? "broker" : "guest",
          "--max-threads",
          std::to_string(context_.options.own_uid && geteuid() == 0 ? context_.options.pids_max : 0),
          "--connect",
          mps_.is_client() ? "asked" : "refused"};
}

// A worker may spin or not from its start on, so that processes need not agree on it. At most `spin_threads` workers
// that serve a session, or will, may spin.
bool Vm::one_more_may_spin() const {
  const auto spins = [](const Slot& s) { return s.worker && s.may_spin && s.known.state != SlotState::Released; };
  return std::count_if(slots_.begin(), slots_.end(), spins) < context_.options.spin_threads;
}

// Pages and descriptors that a worker shares with the broker besides the region.
bool Vm::give_pages(std::uint32_t k, std::string& error) {
  Slot& slot = slots_[k];
  const std::string name = fmt::format("{}/{}", context_.options.name, k);
  slot.telemetry = Telemetry::create("telemetry:" + name, error);
  if (!slot.telemetry) return false;
  if (context_.program.scheduler == nullptr) return true;
  slot.schedule = WorkerSchedule::create(*context_.program.scheduler, context_.scheduled_as, name,
                                         persistence_.outlives_broker(), error);
  return slot.schedule != nullptr;
}

WorkerCommand Vm::command_for(std::uint32_t k) {
  const Slot& slot = slots_[k];
  WorkerCommand command{.program = context_.program.path,
                        .arguments = with(arguments_for(k), memory_.arguments(), context_.program.gpus),
                        .environment = context_.program.environment,
                        .region_fd = region_->memfd(),
                        .doorbell_fd = transport_->doorbell(k),
                        .interrupt_fd = transport_->interrupt(k),
                        .telemetry_fd = slot.telemetry->memfd(),
                        .priority = context_.program.priority,
                        .life_fd = persistence_.outlives_broker() ? context_.program.life_fd : -1,
                        .group_entrance = bounds_.entrance(),
                        .log = &worker_log_};
  if (slot.schedule == nullptr) return command;
  command.orders_fd = slot.schedule->pages().orders_fd();
  command.use_fd = slot.schedule->pages().use_fd();
  command.scheduler_doorbell_fd = slot.schedule->pages().scheduler_doorbell_fd();
  return command;
}

std::string Vm::label_of(std::uint32_t k) const { return fmt::format("{}/{}", context_.options.name, k); }

WorkerProcess::Events Vm::events_of(std::uint32_t k) {
  WorkerProcess::Events events{.ready = [this, k](const WorkerProcess::Ready& reported) { on_ready(k, reported); },
                               .memory =
                                   [this, k](const worker::MemoryMessage& reported) {
                                     const bool sensible = memory_.heard(k, reported);
                                     persistence_.save(k);
                                     return sensible;
                                   },
                               .gone = [this, k](const WorkerProcess::Exit& exit) { on_gone(k, exit); }};
  if (!mps_.is_client()) return events;
  events.listener = [this, k](Fd listener) { slots_[k].proxy = mps_.open_proxy(std::move(listener), label_of(k)); };
  events.before_kill = [this, k](std::function<void()> then) {
    mps_.before_kill(slots_[k].worker->pid(), std::move(then));
  };
  return events;
}

bool Vm::start_worker(std::uint32_t k) {
  Slot& slot = slots_[k];
  if (!move(k, SlotState::Starting)) {
    look_at(k);  // puts the word back
    pace_.try_after(milliseconds(10));
    return false;
  }
  scrubbers_->stop_slot(k);  // pages that would be freed belong to the worker now
  slot.jail = {};
  slot.may_spin = one_more_may_spin();
  std::string error;
  if (!give_pages(k, error)) {
    on_start_failed(k, error);
    return false;
  }
  slot.worker = WorkerProcess::start(context_.loop, command_for(k), label_of(k), events_of(k), error);
  if (!slot.worker) {
    on_start_failed(k, error);
    return false;
  }
  memory_.started(k, slot.worker->pid());
  mps_.started(slot.worker->pid());
  slot.session = traces_.begin(context_.options.name, k, slot.worker->pid(), *slot.telemetry);
  slot.start_timer = context_.loop.after(start_patience, [this, k] {
    slots_[k].start_timer = 0;
    slots_[k].worker->kill_now("it was not ready within a minute");
  });
  return true;
}

void Vm::on_ready(std::uint32_t k, const WorkerProcess::Ready& reported) {
  context_.loop.forget(slots_[k].start_timer);
  if (!slots_[k].telemetry->seal(persistence_.outlives_broker()))
    return slots_[k].worker->kill_now("its telemetry cannot be sealed");
  pace_.succeeded();
  slots_[k].is_ready = true;
  memory_.ready(k, reported.message);
  note_ready(k, reported);
  persistence_.save_ready(k, reported.message);
  keep_worker(k);
  spdlog::debug("{}: slot {}: worker {} is ready", context_.options.name, k, slots_[k].worker->pid());
  if (!context_.stopping && !move(k, SlotState::Ready)) {
    look_at(k);  // a guest wrote over Starting: the word is put back, and the step tried once more
    if (!move(k, SlotState::Ready)) return slots_[k].worker->end(VmContext::end_patience);
  }
  pace_.report_warm();
  if (context_.stopping) return;
  gpus_.compare(k, reported.message);
  if (!transport_->anybody()) end_surplus();
}

void Vm::keep_worker(std::uint32_t k) {
  const Slot& slot = slots_[k];
  const scheduler::WorkerPages* const pages = slot.schedule ? &slot.schedule->pages() : nullptr;
  persistence_.keep_worker(k, {.control = slot.worker->control_fd(),
                               .output = slot.worker->output_fd(),
                               .process = slot.worker->process_fd(),
                               .telemetry = slot.telemetry->memfd(),
                               .orders = pages != nullptr ? pages->orders_to_keep() : -1,
                               .use = pages != nullptr ? pages->use_fd() : -1,
                               .doorbell = pages != nullptr ? pages->scheduler_doorbell_fd() : -1,
                               .proxy = slot.proxy ? slot.proxy->listener_fd() : -1});
}

void Vm::note_ready(std::uint32_t k, const WorkerProcess::Ready& reported) {
  slots_[k].jail = {true, reported.layers, reported.text};
  gpus_.learn(reported.message);
  if (slots_[k].schedule) slots_[k].schedule->ready(slots_[k].worker->pid(), reported.message, gpus_.of_guests());
  history_.report_jail(slots_[k].jail);
  if (!slots_[k].proxy) mps_.report_missing_proxy(slots_[k].jail);
}

void Vm::on_gone(std::uint32_t k, const WorkerProcess::Exit& exit) {
  Slot& slot = slots_[k];
  context_.loop.forget(slot.start_timer);
  const std::unique_ptr<WorkerProcess> gone = std::move(slot.worker);
  if (std::exchange(slot.is_ready, false)) persistence_.forget_worker(k);
  memory_.gone(k);
  traces_.end(std::exchange(slot.session, 0));
  history_.add(slot.telemetry->counters());
  slot.telemetry.reset();
  slot.schedule.reset();
  slot.proxy.reset();
  history_.add_end(k, exit);
  const SlotWord before = slot.known;
  look_at(k);  // the guest may have claimed or released it last; a claimed slot becomes Dead here
  if (!released_in_look(before, slot.known)) conclude(k, exit);
  mps_.gone(exit, before.state == SlotState::Claimed);
  beat_while_held();
  const auto has_worker = [](const Slot& s) { return s.worker != nullptr; };
  if (context_.stopping && std::none_of(slots_.begin(), slots_.end(), has_worker)) stopped_();
}

// Handles a slot whose worker has gone, in the state that the broker's last look found.
void Vm::conclude(std::uint32_t k, const WorkerProcess::Exit& exit) {
  switch (slots_[k].known.state) {
    case SlotState::Ready: move(k, SlotState::Starting); [[fallthrough]];  // no guest may claim it during the scrub
    case SlotState::Starting:
      if (context_.stopping) break;
      if (std::exchange(slots_[k].surplus, false)) {
        start_emptying(k);
        break;
      }
      on_start_failed(k, end_in_words(exit));
      break;
    case SlotState::Claimed:
    case SlotState::Dead:
      if (context_.stopping) break;
      log_->end(k, log_->reason(k) != nullptr ? log_->reason(k)
                                              : fmt::format("the worker {} while its guest used it", exit.how));
      break;
    case SlotState::Released:
      if (exit.end != WorkerProcess::End::Orderly) log_->worker_ended(k, exit.how);
      start_emptying(k);
      break;
    case SlotState::Empty: break;
  }
}

void Vm::on_start_failed(std::uint32_t k, const std::string& why) {
  const auto pause = std::chrono::duration_cast<milliseconds>(pace_.failed());
  spdlog::error("{}: slot {}: the worker {}; the next is started in {} ms", context_.options.name, k, why,
                pause.count());
  pace_.report_warm();  // the log has the reason for a listener
  start_emptying(k);
}

// A session's program gets the driver's own error from its next call. Spare workers are lost as well, which no program
// would notice before it claims one.
void Vm::on_mps_lost(const std::string& why) {
  if (context_.stopping) return;
  spdlog::warn("{}: {}; {} session(s) get the driver's error and end within {} s, and fresh workers start after them",
               context_.options.name, why, sessions(), MpsRegistration::grace.count());
  end_starting(0);
  end_unclaimed(0);
}

// Ends all workers: none has started since the loss.
void Vm::end_lost_sessions() {
  for (std::uint32_t k = 0; k < slots_.size(); ++k) {
    if (!slots_[k].worker) continue;
    log_->set_reason(k, "MPS has lost all clients of its GPU");
    slots_[k].worker->end(VmContext::end_patience);
  }
}

std::string Vm::reported_fault() const {
  for (std::size_t k = 0; k < slots_.size(); ++k) {
    if (!slots_[k].worker || !slots_[k].known.held()) continue;
    if (const std::uint32_t fault = slots_[k].telemetry->fault(); fault != 0)
      return fmt::format("session {} of VM {} has had CUDA's error {}", k, context_.options.name, fault);
  }
  return "";
}

}  // namespace host::broker
