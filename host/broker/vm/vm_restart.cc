// A VM across the broker's restart: what is kept for the next broker, and how that broker adopts it
// (docs/design/034-restart.md). If any part of a VM is missing, or differs from what this broker would have made, its
// sessions end and nothing of it is adopted.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "host/broker/vm/vm.h"

namespace host::broker {
namespace {

using ring::SlotState;

}  // namespace

// ---- keeping -------------------------------------------------------------------------------------------------------

void Vm::save(std::uint32_t k, SavedSlot& to) const {
  slots_->save(k, to);
  const SlotWorker& worker = workers_[k];
  to.worker = worker.process ? worker.process->pid() : 0;
  const bool is_ready = worker.process && worker.is_ready;
  to.ready = !is_ready ? not_ready : worker.proxy ? ready_with_proxy : ready_without_proxy;
  to.may_spin = worker.may_spin;
  log_->save(k, to);
  memory_.save(k, to);
}

// ---- adopting ------------------------------------------------------------------------------------------------------

void Vm::go_on_with(const SavedVm& saved) {
  heartbeat_->adopt();
  wanted_seen_ = saved.wanted_seen;
  demand_ = std::min(saved.demand, saved.slots);
  for (std::uint32_t k = 0; k < slots_->size(); ++k) adopt_slot(k, saved.slot[k]);
  for (std::uint32_t k = 0; k < slots_->size(); ++k) slots_->look_at(k);  // see what guests did meanwhile
  for (std::uint32_t k = 0; k < slots_->size(); ++k) resolve(k);
  look_at_wanted();
  questions_->go_on();
  if (sessions() > 0) mps_.watch();
  // Unclaimed workers have the old program and configuration; new ones replace them.
  end_unclaimed(0);
  heartbeat_->beat();
  heartbeat_->beat_while_needed();
  spdlog::info("{}: {} session(s) and {} connection(s) of before the restart go on", context_.options.name, sessions(),
               transport_->connections());
}

void Vm::adopt_slot(std::uint32_t k, const SavedSlot& was) {
  SlotWorker& worker = workers_[k];
  slots_->adopt(k, was);
  worker.may_spin = was.may_spin != 0;
  log_->adopt(k, was);
  if (was.worker == 0 || was.ready == not_ready || adopt_worker(k, was)) return;
  worker.telemetry.reset();
  worker.schedule.reset();
  worker.proxy.reset();
  persistence_.forget_worker(k);
}

bool Vm::adopt_worker(std::uint32_t k, const SavedSlot& was) {
  SlotWorker& worker = workers_[k];
  const auto take = [&](const char* what) { return persistence_.take(k, what); };
  WorkerProcess::Kept kept{take("control"), take("output"), take("process")};
  worker.telemetry = Telemetry::adopt(take("telemetry"));
  auto pages = scheduler::WorkerPages::adopt(take("orders"), take("use"), take("bell"));
  if (context_.program.scheduler != nullptr && pages)
    worker.schedule = WorkerSchedule::join(*context_.program.scheduler, context_.scheduled_as, std::move(pages));
  const bool complete = kept.control && kept.output && worker.telemetry &&
                        (context_.program.scheduler == nullptr || worker.schedule) && adopt_proxy(k, was);
  if (kept.process && !complete) persistence_.end_process(std::move(kept.process));
  if (!kept.process || !complete) return false;
  worker.process = WorkerProcess::adopt(context_.loop, std::move(kept), was.worker, context_.program.life_fd,
                                        launcher_->log(), launcher_->label_of(k), events_of(k));
  if (!worker.process) return false;
  worker.is_ready = true;
  mps_.adopted(was.worker);
  memory_.adopt(k, was);
  worker.session = traces_.begin(context_.options.name, k, was.worker, *worker.telemetry);
  note_ready(k, {was.reported.layers, escaped(was.reported.text), was.reported});
  return true;
}

// Adopts the kept connect proxy. False if the worker had one that is lost.
bool Vm::adopt_proxy(std::uint32_t k, const SavedSlot& was) {
  if (Fd listener = persistence_.take(k, "door"))
    workers_[k].proxy = mps_.open_proxy(std::move(listener), launcher_->label_of(k));
  return was.ready != ready_with_proxy || workers_[k].proxy;
}

// Continues what the earlier broker had begun.
void Vm::resolve(std::uint32_t k) {
  SlotWorker& worker = workers_[k];
  if (slots_->release_lost(k)) return;
  const SlotState state = slots_->state(k);
  if (worker.process) {
    if (state == SlotState::Ready || state == SlotState::Claimed) return;
    worker.surplus = state == SlotState::Starting;
    return worker.process->end(VmContext::end_patience);
  }
  if (slots_->word(k).held()) return log_->end(k, "its worker was lost when ivgpud was restarted");
  if (state == SlotState::Ready) slots_->move(k, SlotState::Starting);
  if (state != SlotState::Empty) slots_->start_emptying(k);
}

}  // namespace host::broker
