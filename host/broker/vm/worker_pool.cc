#include "host/broker/vm/worker_pool.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "host/broker/region/slot_step.h"

namespace host::broker {
namespace {

using ring::SlotState;
using ring::SlotWord;
using std::chrono::milliseconds;

// The first driver start of a machine can take many seconds for each GPU.
constexpr auto start_patience = std::chrono::seconds(60);

}  // namespace

WorkerPool::WorkerPool(const VmContext& context, const Parts& parts, const WorkerLauncher& launcher, Events events)
    : context_(context),
      parts_(parts),
      launcher_(launcher),
      events_(std::move(events)),
      history_(context),
      workers_(parts.slots.size()) {}

// A worker may spin or not from its start on, so that processes need not agree on it. At most `spin_threads` workers
// that serve a session, or will, may spin.
bool WorkerPool::one_more_may_spin() const {
  std::int64_t spinning = 0;
  for (std::uint32_t k = 0; k < workers_.size(); ++k)
    spinning += workers_[k].process && workers_[k].may_spin && parts_.slots.state(k) != SlotState::Released;
  return spinning < context_.options.spin_threads;
}

// Pages and descriptors that a worker shares with the broker besides the region.
Result<void> WorkerPool::give_pages(std::uint32_t k) {
  SlotWorker& worker = workers_[k];
  const std::string name = fmt::format("{}/{}", context_.options.name, k);
  auto telemetry = Telemetry::create("telemetry:" + name);
  if (!telemetry) return telemetry.error();
  worker.telemetry = *std::move(telemetry);
  if (context_.program.scheduler == nullptr) return {};
  auto schedule = WorkerSchedule::create(*context_.program.scheduler, context_.scheduled_as, name,
                                         parts_.persistence.outlives_broker());
  if (!schedule) return schedule.error();
  worker.schedule = *std::move(schedule);
  return {};
}

WorkerProcess::Events WorkerPool::events_of(std::uint32_t k) {
  WorkerProcess::Events events{.ready = [this, k](const WorkerProcess::Ready& reported) { on_ready(k, reported); },
                               .memory =
                                   [this, k](const worker::MemoryMessage& reported) {
                                     const bool sensible = parts_.memory.heard(k, reported);
                                     parts_.persistence.save(k);
                                     return sensible;
                                   },
                               .gone = [this, k](const WorkerProcess::Exit& exit) { on_gone(k, exit); }};
  if (!parts_.mps.is_client()) return events;
  events.listener = [this, k](Fd listener) {
    workers_[k].proxy = parts_.mps.open_proxy(std::move(listener), launcher_.label_of(k));
  };
  events.before_kill = [this, k](std::function<void()> then) {
    parts_.mps.before_kill(workers_[k].process->pid(), std::move(then));
  };
  return events;
}

bool WorkerPool::start(std::uint32_t k) {
  SlotWorker& worker = workers_[k];
  if (!parts_.slots.move(k, SlotState::Starting)) {
    parts_.slots.look_at(k);  // puts the word back
    parts_.pace.try_after(milliseconds(10));
    return false;
  }
  worker.jail = {};
  worker.may_spin = one_more_may_spin();
  if (const auto given = give_pages(k); !given) {
    on_start_failed(k, given.error().message);
    return false;
  }
  auto process = WorkerProcess::start(
      context_.loop, launcher_.command_for(k, worker.may_spin, *worker.telemetry, worker.schedule.get()),
      launcher_.label_of(k), events_of(k));
  if (!process) {
    on_start_failed(k, process.error().message);
    return false;
  }
  worker.process = *std::move(process);
  parts_.memory.started(k, worker.process->pid());
  parts_.mps.started(worker.process->pid());
  worker.session = parts_.traces.begin(context_.options.name, k, worker.process->pid(), *worker.telemetry);
  worker.start_timer = context_.loop.after(start_patience, [this, k] {
    workers_[k].start_timer = 0;
    workers_[k].process->kill_now("it was not ready within a minute");
  });
  return true;
}

void WorkerPool::on_ready(std::uint32_t k, const WorkerProcess::Ready& reported) {
  context_.loop.forget(workers_[k].start_timer);
  if (!workers_[k].telemetry->seal(parts_.persistence.outlives_broker()))
    return workers_[k].process->kill_now("its telemetry cannot be sealed");
  parts_.pace.succeeded();
  workers_[k].is_ready = true;
  parts_.memory.ready(k, reported.message);
  note_ready(k, reported);
  parts_.persistence.save_ready(k, reported.message);
  keep(k);
  spdlog::debug("{}: slot {}: worker {} is ready", context_.options.name, k, workers_[k].process->pid());
  if (!context_.stopping && !parts_.slots.move(k, SlotState::Ready)) {
    parts_.slots.look_at(k);  // a guest wrote over Starting: the word is put back, and the step tried once more
    if (!parts_.slots.move(k, SlotState::Ready)) return workers_[k].process->end(VmContext::end_patience);
  }
  parts_.pace.report_warm();
  if (!context_.stopping) events_.ready(k, reported.message);
}

void WorkerPool::keep(std::uint32_t k) {
  const SlotWorker& worker = workers_[k];
  const scheduler::WorkerPages* const pages = worker.schedule ? &worker.schedule->pages() : nullptr;
  parts_.persistence.keep_worker(k, {.control = worker.process->control_fd(),
                                     .output = worker.process->output_fd(),
                                     .process = worker.process->process_fd(),
                                     .telemetry = worker.telemetry->memfd(),
                                     .orders = pages != nullptr ? pages->orders_to_keep() : -1,
                                     .use = pages != nullptr ? pages->use_fd() : -1,
                                     .doorbell = pages != nullptr ? pages->scheduler_doorbell_fd() : -1,
                                     .proxy = worker.proxy ? worker.proxy->listener_fd() : -1});
}

void WorkerPool::note_ready(std::uint32_t k, const WorkerProcess::Ready& reported) {
  workers_[k].jail = {true, reported.layers, reported.text};
  parts_.gpus.learn(reported.message);
  if (workers_[k].schedule)
    workers_[k].schedule->ready(workers_[k].process->pid(), reported.message, parts_.gpus.of_guests());
  history_.report_jail(workers_[k].jail);
  if (!workers_[k].proxy) parts_.mps.report_missing_proxy(workers_[k].jail);
}

void WorkerPool::on_gone(std::uint32_t k, const WorkerProcess::Exit& exit) {
  SlotWorker& worker = workers_[k];
  context_.loop.forget(worker.start_timer);
  const std::unique_ptr<WorkerProcess> gone = std::move(worker.process);
  if (std::exchange(worker.is_ready, false)) parts_.persistence.forget_worker(k);
  parts_.memory.gone(k);
  parts_.traces.end(std::exchange(worker.session, 0));
  history_.add(worker.telemetry->counters());
  worker.telemetry.reset();
  worker.schedule.reset();
  worker.proxy.reset();
  history_.add_end(k, exit);
  const SlotWord before = parts_.slots.word(k);
  parts_.slots.look_at(k);  // the guest may have claimed or released it last; a claimed slot becomes Dead here
  if (!released_in_look(before, parts_.slots.word(k))) conclude(k, exit);
  parts_.mps.gone(exit, before.state == SlotState::Claimed);
  events_.gone();
  const auto has_worker = [](const SlotWorker& w) { return w.process != nullptr; };
  if (context_.stopping && std::none_of(workers_.begin(), workers_.end(), has_worker)) stopped_();
}

// Handles a slot whose worker has gone, in the state that the broker's last look found.
void WorkerPool::conclude(std::uint32_t k, const WorkerProcess::Exit& exit) {
  switch (parts_.slots.state(k)) {
    case SlotState::Ready:
      parts_.slots.move(k, SlotState::Starting);
      [[fallthrough]];  // no guest may claim it during the scrub
    case SlotState::Starting:
      if (context_.stopping) break;
      if (std::exchange(workers_[k].surplus, false)) {
        parts_.slots.start_emptying(k);
        break;
      }
      on_start_failed(k, end_in_words(exit));
      break;
    case SlotState::Claimed:
    case SlotState::Dead:
      if (context_.stopping) break;
      parts_.log.end(k, parts_.log.reason(k) != nullptr
                            ? parts_.log.reason(k)
                            : fmt::format("the worker {} while its guest used it", exit.how));
      break;
    case SlotState::Released:
      if (exit.end != WorkerProcess::End::Orderly) parts_.log.worker_ended(k, exit.how);
      parts_.slots.start_emptying(k);
      break;
    case SlotState::Empty: break;
  }
}

void WorkerPool::on_start_failed(std::uint32_t k, const std::string& why) {
  const auto pause = std::chrono::duration_cast<milliseconds>(parts_.pace.failed());
  spdlog::error("{}: slot {}: the worker {}; the next is started in {} ms", context_.options.name, k, why,
                pause.count());
  parts_.pace.report_warm();  // the log has the reason for a listener
  parts_.slots.start_emptying(k);
}

std::string WorkerPool::reported_fault() const {
  for (std::uint32_t k = 0; k < workers_.size(); ++k) {
    if (!workers_[k].process || !parts_.slots.word(k).held()) continue;
    if (const std::uint32_t fault = workers_[k].telemetry->fault(); fault != 0)
      return fmt::format("session {} of VM {} has had CUDA's error {}", k, context_.options.name, fault);
  }
  return "";
}

// ---- end -----------------------------------------------------------------------------------------------------------

void WorkerPool::end_unused(std::uint32_t k) {
  workers_[k].surplus = true;
  workers_[k].process->end(VmContext::end_patience);
}

void WorkerPool::end_session(std::uint32_t k, const char* reason) {
  parts_.log.set_reason(k, reason);
  workers_[k].process->end(VmContext::end_patience);
}

void WorkerPool::end_each(const char* reason) {
  for (std::uint32_t k = 0; k < workers_.size(); ++k)
    if (workers_[k].process) end_session(k, reason);
}

void WorkerPool::end_all(Clock::duration patience, std::function<void()> done) {
  stopped_ = std::move(done);
  context_.loop.forget(stop_timer_);
  bool any = false;
  for (const SlotWorker& worker : workers_) {
    if (!worker.process) continue;
    any = true;
    worker.process->end(patience);
  }
  if (!any) stop_timer_ = context_.loop.after(Clock::duration::zero(), [this] { stopped_(); });
}

void WorkerPool::leave() {
  context_.loop.forget(stop_timer_);
  for (SlotWorker& worker : workers_) context_.loop.forget(worker.start_timer);
  for (const SlotWorker& worker : workers_) parts_.traces.end(worker.session);
  for (SlotWorker& worker : workers_) worker.schedule.reset();
}

void WorkerPool::note_owner(std::uint32_t k, const ring::SlotOwner& owner) {
  parts_.traces.claimed(workers_[k].session, owner.pid, owner.peer);
}

// ---- across a restart ----------------------------------------------------------------------------------------------

void WorkerPool::save(std::uint32_t k, SavedSlot& to) const {
  const SlotWorker& worker = workers_[k];
  to.worker = worker.process ? worker.process->pid() : 0;
  const bool is_ready = worker.process && worker.is_ready;
  to.ready = !is_ready ? not_ready : worker.proxy ? ready_with_proxy : ready_without_proxy;
  to.may_spin = worker.may_spin;
}

void WorkerPool::adopt(std::uint32_t k, const SavedSlot& was) {
  SlotWorker& worker = workers_[k];
  worker.may_spin = was.may_spin != 0;
  if (was.worker == 0 || was.ready == not_ready || adopt_worker(k, was)) return;
  worker.telemetry.reset();
  worker.schedule.reset();
  worker.proxy.reset();
  parts_.persistence.forget_worker(k);
}

bool WorkerPool::adopt_worker(std::uint32_t k, const SavedSlot& was) {
  SlotWorker& worker = workers_[k];
  const auto take = [&](const char* what) { return parts_.persistence.take(k, what); };
  WorkerProcess::Kept kept{take("control"), take("output"), take("process")};
  worker.telemetry = Telemetry::adopt(take("telemetry"));
  auto pages = scheduler::WorkerPages::adopt(take("orders"), take("use"), take("bell"));
  if (context_.program.scheduler != nullptr && pages)
    worker.schedule = WorkerSchedule::join(*context_.program.scheduler, context_.scheduled_as, std::move(pages));
  const bool complete = kept.control && kept.output && worker.telemetry &&
                        (context_.program.scheduler == nullptr || worker.schedule) && adopt_proxy(k, was);
  if (kept.process && !complete) parts_.persistence.end_process(std::move(kept.process));
  if (!kept.process || !complete) return false;
  worker.process = WorkerProcess::adopt(context_.loop, std::move(kept), was.worker, context_.program.life_fd,
                                        launcher_.log(), launcher_.label_of(k), events_of(k));
  if (!worker.process) return false;
  worker.is_ready = true;
  parts_.mps.adopted(was.worker);
  parts_.memory.adopt(k, was);
  worker.session = parts_.traces.begin(context_.options.name, k, was.worker, *worker.telemetry);
  note_ready(k, {was.reported.layers, escaped(was.reported.text), was.reported});
  return true;
}

// Adopts the kept connect proxy. False if the worker had one that is lost.
bool WorkerPool::adopt_proxy(std::uint32_t k, const SavedSlot& was) {
  if (Fd listener = parts_.persistence.take(k, "door"))
    workers_[k].proxy = parts_.mps.open_proxy(std::move(listener), launcher_.label_of(k));
  return was.ready != ready_with_proxy || workers_[k].proxy;
}

// Continues what the earlier broker had begun.
void WorkerPool::resolve(std::uint32_t k) {
  SlotWorker& worker = workers_[k];
  if (parts_.slots.release_lost(k)) return;
  const SlotState state = parts_.slots.state(k);
  if (worker.process) {
    if (state == SlotState::Ready || state == SlotState::Claimed) return;
    worker.surplus = state == SlotState::Starting;
    return worker.process->end(VmContext::end_patience);
  }
  if (parts_.slots.word(k).held()) return parts_.log.end(k, "its worker was lost when ivgpud was restarted");
  if (state == SlotState::Ready) parts_.slots.move(k, SlotState::Starting);
  if (state != SlotState::Empty) parts_.slots.start_emptying(k);
}

}  // namespace host::broker
