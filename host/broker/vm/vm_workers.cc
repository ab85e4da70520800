// A VM's workers: start ahead, ready, end, and the effect of their end on their slots.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

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

}  // namespace

void Vm::refill() {
  if (context_.stopping || pace_.is_waiting()) return;
  const auto target = std::max(static_cast<std::uint32_t>(context_.options.spare), demand_);
  if (slots_->count(SlotState::Starting) + slots_->count(SlotState::Ready) >= target) return;
  const auto empty = slots_->find(SlotState::Empty);
  if (!empty) return;
  if (!mps_.may_start()) return;
  if (!memory_.has_room(demand_)) return;
  if (!pace_.may_start()) return;
  if (!start_worker(*empty)) return;
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
  std::uint32_t ready = slots_->count(SlotState::Ready);
  end_unclaimed_where([&](std::uint32_t k) {
    if (ready <= keep && !region_->touched(k)) return false;
    --ready;
    return true;
  });
}

// A worker that a guest has claimed meanwhile stays.
void Vm::end_unclaimed_where(const std::function<bool(std::uint32_t)>& ends) {
  for (std::uint32_t k = 0; k < workers_.size(); ++k) {
    if (slots_->state(k) != SlotState::Ready || !ends(k) || !slots_->move(k, SlotState::Starting)) continue;
    workers_[k].surplus = true;
    workers_[k].process->end(VmContext::end_patience);
  }
}

// Ends workers that are not ready yet, except `keep`.
void Vm::end_starting(std::uint32_t keep) {
  for (std::uint32_t k = 0; k < workers_.size(); ++k) {
    SlotWorker& worker = workers_[k];
    if (slots_->state(k) != SlotState::Starting || !worker.process || worker.surplus) continue;
    if (keep > 0) {
      --keep;
      continue;
    }
    worker.surplus = true;
    worker.process->end(VmContext::end_patience);
  }
}

void Vm::when_warm(std::function<void()> warm) {
  pace_.when_warm(std::move(warm));
  if (context_.options.spare == 0 || persistence_.has_adopted()) pace_.report_warm();
}

// A worker may spin or not from its start on, so that processes need not agree on it. At most `spin_threads` workers
// that serve a session, or will, may spin.
bool Vm::one_more_may_spin() const {
  std::int64_t spinning = 0;
  for (std::uint32_t k = 0; k < workers_.size(); ++k)
    spinning += workers_[k].process && workers_[k].may_spin && slots_->state(k) != SlotState::Released;
  return spinning < context_.options.spin_threads;
}

// Pages and descriptors that a worker shares with the broker besides the region.
bool Vm::give_pages(std::uint32_t k, std::string& error) {
  SlotWorker& worker = workers_[k];
  const std::string name = fmt::format("{}/{}", context_.options.name, k);
  worker.telemetry = Telemetry::create("telemetry:" + name, error);
  if (!worker.telemetry) return false;
  if (context_.program.scheduler == nullptr) return true;
  worker.schedule = WorkerSchedule::create(*context_.program.scheduler, context_.scheduled_as, name,
                                           persistence_.outlives_broker(), error);
  return worker.schedule != nullptr;
}

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
  events.listener = [this, k](Fd listener) {
    workers_[k].proxy = mps_.open_proxy(std::move(listener), launcher_->label_of(k));
  };
  events.before_kill = [this, k](std::function<void()> then) {
    mps_.before_kill(workers_[k].process->pid(), std::move(then));
  };
  return events;
}

bool Vm::start_worker(std::uint32_t k) {
  SlotWorker& worker = workers_[k];
  if (!slots_->move(k, SlotState::Starting)) {
    slots_->look_at(k);  // puts the word back
    pace_.try_after(milliseconds(10));
    return false;
  }
  scrubbers_->stop_slot(k);  // pages that would be freed belong to the worker now
  worker.jail = {};
  worker.may_spin = one_more_may_spin();
  std::string error;
  if (!give_pages(k, error)) {
    on_start_failed(k, error);
    return false;
  }
  worker.process = WorkerProcess::start(
      context_.loop, launcher_->command_for(k, worker.may_spin, *worker.telemetry, worker.schedule.get()),
      launcher_->label_of(k), events_of(k), error);
  if (!worker.process) {
    on_start_failed(k, error);
    return false;
  }
  memory_.started(k, worker.process->pid());
  mps_.started(worker.process->pid());
  worker.session = traces_.begin(context_.options.name, k, worker.process->pid(), *worker.telemetry);
  worker.start_timer = context_.loop.after(start_patience, [this, k] {
    workers_[k].start_timer = 0;
    workers_[k].process->kill_now("it was not ready within a minute");
  });
  return true;
}

void Vm::on_ready(std::uint32_t k, const WorkerProcess::Ready& reported) {
  context_.loop.forget(workers_[k].start_timer);
  if (!workers_[k].telemetry->seal(persistence_.outlives_broker()))
    return workers_[k].process->kill_now("its telemetry cannot be sealed");
  pace_.succeeded();
  workers_[k].is_ready = true;
  memory_.ready(k, reported.message);
  note_ready(k, reported);
  persistence_.save_ready(k, reported.message);
  keep_worker(k);
  spdlog::debug("{}: slot {}: worker {} is ready", context_.options.name, k, workers_[k].process->pid());
  if (!context_.stopping && !slots_->move(k, SlotState::Ready)) {
    slots_->look_at(k);  // a guest wrote over Starting: the word is put back, and the step tried once more
    if (!slots_->move(k, SlotState::Ready)) return workers_[k].process->end(VmContext::end_patience);
  }
  pace_.report_warm();
  if (context_.stopping) return;
  gpus_.compare(k, reported.message);
  if (!transport_->anybody()) end_surplus();
}

void Vm::keep_worker(std::uint32_t k) {
  const SlotWorker& worker = workers_[k];
  const scheduler::WorkerPages* const pages = worker.schedule ? &worker.schedule->pages() : nullptr;
  persistence_.keep_worker(k, {.control = worker.process->control_fd(),
                               .output = worker.process->output_fd(),
                               .process = worker.process->process_fd(),
                               .telemetry = worker.telemetry->memfd(),
                               .orders = pages != nullptr ? pages->orders_to_keep() : -1,
                               .use = pages != nullptr ? pages->use_fd() : -1,
                               .doorbell = pages != nullptr ? pages->scheduler_doorbell_fd() : -1,
                               .proxy = worker.proxy ? worker.proxy->listener_fd() : -1});
}

void Vm::note_ready(std::uint32_t k, const WorkerProcess::Ready& reported) {
  workers_[k].jail = {true, reported.layers, reported.text};
  gpus_.learn(reported.message);
  if (workers_[k].schedule)
    workers_[k].schedule->ready(workers_[k].process->pid(), reported.message, gpus_.of_guests());
  history_.report_jail(workers_[k].jail);
  if (!workers_[k].proxy) mps_.report_missing_proxy(workers_[k].jail);
}

void Vm::on_gone(std::uint32_t k, const WorkerProcess::Exit& exit) {
  SlotWorker& worker = workers_[k];
  context_.loop.forget(worker.start_timer);
  const std::unique_ptr<WorkerProcess> gone = std::move(worker.process);
  if (std::exchange(worker.is_ready, false)) persistence_.forget_worker(k);
  memory_.gone(k);
  traces_.end(std::exchange(worker.session, 0));
  history_.add(worker.telemetry->counters());
  worker.telemetry.reset();
  worker.schedule.reset();
  worker.proxy.reset();
  history_.add_end(k, exit);
  const SlotWord before = slots_->word(k);
  slots_->look_at(k);  // the guest may have claimed or released it last; a claimed slot becomes Dead here
  if (!released_in_look(before, slots_->word(k))) conclude(k, exit);
  mps_.gone(exit, before.state == SlotState::Claimed);
  heartbeat_->beat_while_needed();
  const auto has_worker = [](const SlotWorker& w) { return w.process != nullptr; };
  if (context_.stopping && std::none_of(workers_.begin(), workers_.end(), has_worker)) stopped_();
}

// Handles a slot whose worker has gone, in the state that the broker's last look found.
void Vm::conclude(std::uint32_t k, const WorkerProcess::Exit& exit) {
  switch (slots_->state(k)) {
    case SlotState::Ready:
      slots_->move(k, SlotState::Starting);
      [[fallthrough]];  // no guest may claim it during the scrub
    case SlotState::Starting:
      if (context_.stopping) break;
      if (std::exchange(workers_[k].surplus, false)) {
        slots_->start_emptying(k);
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
      slots_->start_emptying(k);
      break;
    case SlotState::Empty: break;
  }
}

void Vm::on_start_failed(std::uint32_t k, const std::string& why) {
  const auto pause = std::chrono::duration_cast<milliseconds>(pace_.failed());
  spdlog::error("{}: slot {}: the worker {}; the next is started in {} ms", context_.options.name, k, why,
                pause.count());
  pace_.report_warm();  // the log has the reason for a listener
  slots_->start_emptying(k);
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
  for (std::uint32_t k = 0; k < workers_.size(); ++k) {
    if (!workers_[k].process) continue;
    log_->set_reason(k, "MPS has lost all clients of its GPU");
    workers_[k].process->end(VmContext::end_patience);
  }
}

std::string Vm::reported_fault() const {
  for (std::uint32_t k = 0; k < workers_.size(); ++k) {
    if (!workers_[k].process || !slots_->word(k).held()) continue;
    if (const std::uint32_t fault = workers_[k].telemetry->fault(); fault != 0)
      return fmt::format("session {} of VM {} has had CUDA's error {}", k, context_.options.name, fault);
  }
  return "";
}

}  // namespace host::broker
