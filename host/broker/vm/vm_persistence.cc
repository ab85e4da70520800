#include "host/broker/vm/vm_persistence.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "host/base/mark.h"
#include "host/broker/config/config_changes.h"
#include "ring/ops/telemetry.h"

namespace host::broker {
namespace {

using ring::SlotState;
using ring::SlotWord;

// Names of each worker's descriptors in the store, in the order of WorkerDescriptors.
constexpr const char* kept_of_worker[] = {"control", "output", "process", "telemetry", "orders", "use", "bell", "door"};

}  // namespace

// Identifies what must be unchanged for the region and the workers to be adopted.
std::uint64_t VmPersistence::mark() const {
  const WorkerProgram& program = context_.program;
  std::string text = fmt::format("{}\n{}\nlayout {} telemetry {}\n", restart_keys_in_words(context_.options),
                                 program.library, ring::layout_version, ring::telemetry_version);
  for (const Gpu& gpu : program.gpus.list) text += name_of(gpu) + "\n";
  if (program.mps != nullptr && !program.gpus.list.empty())
    text += "client of " + program.mps->pipe_of(program.gpus.list.front().uuid) + "\n";
  return mark_of(text);
}

Result<VmPersistence::Opened> VmPersistence::open() {
  if (auto region = adopt_region()) {
    adopted_ = true;
    return Opened{std::move(region), std::make_unique<SavedVm>(record_->saved())};
  }
  auto region = make_region();
  if (!region) return region.error();
  return Opened{*std::move(region), nullptr};
}

Result<std::unique_ptr<Region>> VmPersistence::make_region() {
  store_.forget_all();
  if (store_ && !context_.options.plain_file.empty())
    store_.all()->notify_now();  // until then the earlier region's file is locked
  auto region = Region::create(context_.options, access_of(context_.options));
  if (!region || !store_) return region;
  auto record = VmRecord::create(context_.options.name, mark(), static_cast<std::uint32_t>(context_.options.slots),
                                 (*region)->generation());
  if (!record) return record.error();
  record_ = *std::move(record);
  store_.keep("region", (*region)->memfd());
  store_.keep("record", record_->memfd());
  return region;
}

// Null if there is nothing to adopt. Else the record is the old one, too.
std::unique_ptr<Region> VmPersistence::adopt_region() {
  if (store_.left().empty()) return nullptr;
  auto region = take_region();
  if (region) return *std::move(region);
  spdlog::warn("{}: its sessions of before the restart end, and the VM has to be started again: {}",
               context_.options.name, region.error().message);
  return nullptr;
}

// The error is half a sentence.
Result<std::unique_ptr<Region>> VmPersistence::take_region() {
  auto record = VmRecord::adopt(store_.take("record"), mark(), static_cast<std::uint32_t>(context_.options.slots));
  if (!record) return record.error();
  const std::vector<std::string> doorbells = kept_doorbells(context_.options);
  if (!std::ranges::all_of(doorbells, [this](const auto& name) { return store_.has(name); }))
    return Error{"not all of its doorbells were kept (FileDescriptorStoreMax)"};
  auto region = Region::adopt(context_.options, store_.take("region"), (*record)->saved().generation);
  if (region) record_ = *std::move(record);
  return region;
}

KeptTransport VmPersistence::kept_transport(const SavedVm* left) const {
  KeptTransport keep;
  keep.store = store_;
  for (std::uint32_t k = 0; left != nullptr && k < left->slots; ++k) {
    keep.first_peer = std::max(keep.first_peer, left->slot[k].peer + 1);
    keep.channels.push_back(left->slot[k].channel);
    const SlotWord word = SlotWord::of(left->slot[k].word);
    keep.guests = keep.guests || word.held() || word.state == SlotState::Released;
  }
  return keep;
}

void VmPersistence::save(std::uint32_t k) {
  if (record_) fill_(k, record_->saved().slot[k]);
}

void VmPersistence::save_counts(std::uint32_t wanted_seen, std::uint32_t demand) {
  if (!record_) return;
  record_->saved().wanted_seen = wanted_seen;
  record_->saved().demand = demand;
}

void VmPersistence::save_channel(std::uint32_t k, std::uint64_t channel) {
  if (record_) record_->saved().slot[k].channel = channel;
}

void VmPersistence::save_ready(std::uint32_t k, const worker::ReadyMessage& reported) {
  if (record_) record_->saved().slot[k].reported = reported;
}

void VmPersistence::keep_worker(std::uint32_t k, const WorkerDescriptors& descriptors) {
  const int fds[] = {descriptors.control, descriptors.output, descriptors.process,  descriptors.telemetry,
                     descriptors.orders,  descriptors.use,    descriptors.doorbell, descriptors.proxy};
  static_assert(std::size(fds) == std::size(kept_of_worker));
  for (std::size_t i = 0; i < std::size(fds); ++i)
    if (fds[i] >= 0) store_.keep(name_in_store(k, kept_of_worker[i]), fds[i]);
}

void VmPersistence::forget_worker(std::uint32_t k) {
  for (const char* what : kept_of_worker) store_.forget(name_in_store(k, what));
}

}  // namespace host::broker
