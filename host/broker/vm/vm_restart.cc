// A VM across the broker's restart: what is kept for the next broker, and how that broker adopts it
// (docs/design/034-restart.md). If any part of a VM is missing, or differs from what this broker would have made, its
// sessions end and nothing of it is adopted.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "host/base/mark.h"
#include "host/broker/config/config_changes.h"
#include "host/broker/vm/vm.h"

namespace host::broker {
namespace {

using ring::SlotState;
using ring::SlotWord;

// Descriptors of each worker.
constexpr const char* kept_of_worker[] = {"control", "output", "process", "telemetry", "orders", "use", "bell", "door"};

}  // namespace

// Identifies what must be unchanged for the region and the workers to be adopted.
std::uint64_t Vm::mark() const {
  std::string text = fmt::format("{}\n{}\nlayout {} telemetry {}\n", restart_keys_in_words(context_.options),
                                 context_.program.library, ring::layout_version, ring::telemetry_version);
  for (const Gpu& gpu : context_.program.gpus.list) text += name_of(gpu) + "\n";
  if (context_.program.mps != nullptr && !context_.program.gpus.list.empty())
    text += "client of " + context_.program.mps->pipe_of(context_.program.gpus.list.front().uuid) + "\n";
  return mark_of(text);
}

bool Vm::make_region(std::string& error) {
  store_.forget_all();
  if (store_ && !context_.options.plain_file.empty())
    store_.all()->notify_now();  // until then the earlier region's file is locked
  region_ = Region::create(context_.options, access_of(context_.options), error);
  if (!region_ || !store_) return region_ != nullptr;
  record_ = VmRecord::create(context_.options.name, mark(), static_cast<std::uint32_t>(slots_.size()),
                             region_->generation(), error);
  if (!record_) return false;
  store_.keep("region", region_->memfd());
  store_.keep("record", record_->memfd());
  return true;
}

// Null if there is nothing to adopt. Else region and record are the old ones.
std::unique_ptr<SavedVm> Vm::find_saved() {
  if (store_.left().empty()) return nullptr;
  std::string why;
  auto record = VmRecord::adopt(store_.take("record"), mark(), static_cast<std::uint32_t>(slots_.size()), why);
  const std::vector<std::string> doorbells = kept_doorbells(context_.options);
  const bool complete = std::ranges::all_of(doorbells, [this](const auto& name) { return store_.has(name); });
  if (record && !complete) why = "not all of its doorbells were kept (FileDescriptorStoreMax)";
  if (record && complete)
    region_ = Region::adopt(context_.options, store_.take("region"), record->saved().generation, why);
  if (region_) {
    record_ = std::move(record);
    return std::make_unique<SavedVm>(record_->saved());
  }
  spdlog::warn("{}: its sessions of before the restart end, and the VM has to be started again: {}",
               context_.options.name, why);
  return nullptr;
}

// ---- keeping -------------------------------------------------------------------------------------------------------

// Called for ready workers: an unready worker dies with its broker.
void Vm::keep_worker(std::uint32_t k) {
  const Slot& slot = slots_[k];
  const int fds[] = {slot.worker->control_fd(),
                     slot.worker->output_fd(),
                     slot.worker->process_fd(),
                     slot.telemetry->memfd(),
                     slot.schedule ? slot.schedule->pages().orders_to_keep() : -1,
                     slot.schedule ? slot.schedule->pages().use_fd() : -1,
                     slot.schedule ? slot.schedule->pages().scheduler_doorbell_fd() : -1,
                     slot.proxy ? slot.proxy->listener_fd() : -1};
  static_assert(std::size(fds) == std::size(kept_of_worker));
  for (std::size_t i = 0; i < std::size(fds); ++i)
    if (fds[i] >= 0) store_.keep(name_in_store(k, kept_of_worker[i]), fds[i]);
}

void Vm::forget_worker(std::uint32_t k) {
  for (const char* what : kept_of_worker) store_.forget(name_in_store(k, what));
}

void Vm::save(std::uint32_t k) {
  if (!record_) return;
  const Slot& slot = slots_[k];
  SavedSlot& to = record_->saved().slot[k];
  to.word = slot.known.word();
  to.peer = slot.peer;
  to.worker = slot.worker ? slot.worker->pid() : 0;
  const bool is_ready = slot.worker && slot.is_ready;
  to.ready = !is_ready ? not_ready : slot.proxy ? ready_with_proxy : ready_without_proxy;
  to.may_spin = slot.may_spin;
  log_->save(k, to);
  memory_.save(k, to);
}

void Vm::save_counts() {
  if (!record_) return;
  record_->saved().wanted_seen = wanted_seen_;
  record_->saved().demand = demand_;
}

void Vm::save_channel(std::uint32_t k, std::uint64_t channel) {
  if (record_) record_->saved().slot[k].channel = channel;
}

// ---- adopting ------------------------------------------------------------------------------------------------------

// Numbers new connections above those that slots name.
KeptTransport Vm::kept_transport(const SavedVm* saved) const {
  KeptTransport keep;
  keep.store = store_;
  for (std::uint32_t k = 0; saved != nullptr && k < saved->slots; ++k) {
    keep.first_peer = std::max(keep.first_peer, saved->slot[k].peer + 1);
    keep.channels.push_back(saved->slot[k].channel);
    const SlotWord word = SlotWord::of(saved->slot[k].word);
    keep.guests = keep.guests || word.held() || word.state == SlotState::Released;
  }
  return keep;
}

void Vm::go_on_with(const SavedVm& saved) {
  adopted_ = true;
  heartbeat_ = region_->header()[&ring::RegionHeader::heartbeat].load(std::memory_order_relaxed);
  wanted_seen_ = saved.wanted_seen;
  demand_ = std::min(saved.demand, saved.slots);
  for (std::uint32_t k = 0; k < slots_.size(); ++k) adopt_slot(k, saved.slot[k]);
  for (std::uint32_t k = 0; k < slots_.size(); ++k) look_at(k);  // see what guests did meanwhile
  for (std::uint32_t k = 0; k < slots_.size(); ++k) resolve(k);
  look_at_wanted();
  go_on_with_questions();
  if (sessions() > 0) mps_.watch();
  // Unclaimed workers have the old program and configuration; new ones replace them.
  end_unclaimed(0);
  beat();
  beat_while_held();
  spdlog::info("{}: {} session(s) and {} connection(s) of before the restart go on", context_.options.name, sessions(),
               transport_->connections());
}

void Vm::adopt_slot(std::uint32_t k, const SavedSlot& was) {
  Slot& slot = slots_[k];
  slot.known = SlotWord::of(was.word);
  slot.peer = was.peer;
  slot.may_spin = was.may_spin != 0;
  log_->adopt(k, was);
  if (was.worker == 0 || was.ready == not_ready || adopt_worker(k, was)) return;
  slot.telemetry.reset();
  slot.schedule.reset();
  slot.proxy.reset();
  forget_worker(k);
}

bool Vm::adopt_worker(std::uint32_t k, const SavedSlot& was) {
  Slot& slot = slots_[k];
  const auto take = [&](const char* what) { return store_.take(name_in_store(k, what)); };
  WorkerProcess::Kept kept{take("control"), take("output"), take("process")};
  slot.telemetry = Telemetry::adopt(take("telemetry"));
  auto pages = scheduler::WorkerPages::adopt(take("orders"), take("use"), take("bell"));
  if (context_.program.scheduler != nullptr && pages)
    slot.schedule = WorkerSchedule::join(*context_.program.scheduler, context_.scheduled_as, std::move(pages));
  const bool complete = kept.control && kept.output && slot.telemetry &&
                        (context_.program.scheduler == nullptr || slot.schedule) && adopt_proxy(k, was);
  if (kept.process && !complete) store_.all()->end_process(std::move(kept.process));
  if (!kept.process || !complete) return false;
  slot.worker = WorkerProcess::adopt(context_.loop, std::move(kept), was.worker, context_.program.life_fd, worker_log_,
                                     label_of(k), events_of(k));
  if (!slot.worker) return false;
  slot.is_ready = true;
  mps_.adopted(was.worker);
  memory_.adopt(k, was);
  slot.session = traces_.begin(context_.options.name, k, was.worker, *slot.telemetry);
  note_ready(k, {was.reported.layers, escaped(was.reported.text), was.reported});
  return true;
}

// Adopts the kept connect proxy. False if the worker had one that is lost.
bool Vm::adopt_proxy(std::uint32_t k, const SavedSlot& was) {
  if (Fd listener = store_.take(name_in_store(k, "door")))
    slots_[k].proxy = mps_.open_proxy(std::move(listener), label_of(k));
  return was.ready != ready_with_proxy || slots_[k].proxy;
}

// Continues what the earlier broker had begun.
void Vm::resolve(std::uint32_t k) {
  Slot& slot = slots_[k];
  const SlotState state = slot.known.state;
  if (slot.known.held() && slot.peer != 0 && !transport_->has(slot.peer)) return release_held(k);
  if (slot.worker) {
    if (state == SlotState::Ready || state == SlotState::Claimed) return;
    slot.surplus = state == SlotState::Starting;
    return slot.worker->end(VmContext::end_patience);
  }
  if (slot.known.held()) return log_->end(k, "its worker was lost when ivgpud was restarted");
  if (state == SlotState::Ready) move(k, SlotState::Starting);
  if (state != SlotState::Empty) start_emptying(k);
}

}  // namespace host::broker
