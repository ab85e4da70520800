#include "host/broker/config_reload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <utility>

#include "host/broker/alloc/placement.h"
#include "host/broker/config/config_changes.h"
#include "host/broker/config/drop_ins.h"
#include "host/broker/config/worker_users.h"

namespace host::broker {
namespace {

const VmOptions* find(const std::vector<VmOptions>& vms, const std::string& name) {
  const auto found = std::find_if(vms.begin(), vms.end(), [&](const VmOptions& vm) { return vm.name == name; });
  return found == vms.end() ? nullptr : &*found;
}

}  // namespace

void ConfigReload::start_for(AnswerServer::Answer asker) {
  const std::vector<std::string> names = vms_.removed_names();
  if (!names.empty())
    asker.reply(fmt::format("info the file is read once these VMs have gone: {}\n", fmt::join(names, ", ")));
  report_.add(asker);
  start("`ivgpu reload`");
}

void ConfigReload::start(const char* asked_by) {
  if (vms_.is_removing()) {
    again_ = asked_by;
    return;
  }
  spdlog::info("{}: reading {} again", asked_by, file_);
  manager_.reloading();
  report_.begin();
  take_file_over();
  if (!vms_.is_removing()) finish();
}

void ConfigReload::finish() {
  report_.finish();
  manager_.ready(vms_.in_words());
}

void ConfigReload::take_file_over() {
  auto read = read_again();
  if (!read) return report_.error(read.error().message + "; nothing is changed");
  auto& [wanted, gpus] = *read;
  for (const RefusedFile& file : wanted.refused) report_.error(in_words(file, vms_.find(file.vm) != nullptr));
  for (const std::string& remark : wanted.remarks) report_.info(remark);
  change_broker(wanted);
  vms_.remove_if([&vms = wanted.vms](const Vm& vm) { return find(vms, vm.options().name) == nullptr; });
  change_vms(wanted.vms, gpus);
  coming_ = std::move(wanted.vms);
  coming_gpus_ = std::move(gpus);
  add_vms();
}

// An error, one sentence, if the broker's file has a mistake.
Result<ConfigReload::Wanted> ConfigReload::read_again() {
  auto wanted = read_config(file_, cores_);
  if (!wanted) return wanted.error();
  keep_refused(*wanted);
  // VMs already served come first, so that a new VM is refused rather than a served one.
  std::stable_partition(wanted->vms.begin(), wanted->vms.end(),
                        [&](const VmOptions& vm) { return vm.file.empty() || vms_.find(vm.name) != nullptr; });
  const auto wrong = [this](const Error& why) { return Error{file_ + ": " + why.message}; };
  if (const auto may = may_give_users(wanted->broker); !may) return wrong(may.error());
  auto gpus = take_possible(*wanted, [this](Config& config) { return check(config); });
  if (gpus && keep_refused(*wanted)) gpus = check(*wanted);
  if (!gpus) return wrong(gpus.error());
  return Wanted{*std::move(wanted), *std::move(gpus)};
}

// Returns each VM's GPUs if the configuration can be served.
Result<std::vector<VmGpus>> ConfigReload::check(Config& wanted) {
  std::vector<VmOptions> stay = vms_.options();
  std::erase_if(stay, [&](const VmOptions& vm) { return find(wanted.vms, vm.name) == nullptr; });
  if (const auto kept = keep_users(wanted.broker.worker_uids, stay, wanted.vms); !kept) return kept.error();
  auto gpus = find_gpus_again(wanted);
  if (!gpus) return gpus.error();
  if (const auto held = services_.hold_gpus(wanted, *gpus); !held) return held.error();
  note_own_users(wanted.vms);
  return gpus;
}

// Keeps a served VM whose file has a mistake. True if a file was refused.
bool ConfigReload::keep_refused(Config& wanted) const {
  bool any = false;
  for (const RefusedFile& file : wanted.refused)
    for (const auto& vm : vms_.all()) {
      if (vm->options().name != file.vm || find(wanted.vms, file.vm) != nullptr) continue;
      wanted.vms.push_back(vm->options());
      any = true;
    }
  return any;
}

// Under MPS a worker is bound to its GPU's daemon, and a chosen placement holds while the VM is served.
bool ConfigReload::keeps_gpus(const Vm& vm) const {
  return services_.shares_by_mps() || vm.options().placement != fixed_placement;
}

// Served VMs keep their placement, whatever the file says.
Result<std::vector<VmGpus>> ConfigReload::find_gpus_again(const Config& wanted) const {
  Config to_be = wanted;
  std::map<std::string, VmGpus> kept;
  for (VmOptions& options : to_be.vms)
    for (const auto& vm : vms_.all()) {
      if (vm->options().name != options.name) continue;
      options.placement = vm->options().placement;
      if (keeps_gpus(*vm)) kept[options.name] = vm->gpus();
    }
  auto found = find_gpus(to_be);
  if (!found) return found.error();
  return place_gpus(to_be, services_.accounts().all(), kept, *std::move(found));
}

void ConfigReload::change_broker(const Config& wanted) {
  const std::string metrics = broker_.metrics;
  for (const std::string& line : take_over(broker_, wanted.broker).lines) report_.info("[broker] " + line);
  for (const std::string& line : services_.take_over_options(wanted.gpu).lines) report_.info("[gpu] " + line);
  services_.apply_options();
  spdlog::set_level(spdlog::level::from_str(broker_.log_level));
  if (broker_.metrics == metrics) return;
  const auto opened = sockets_.open_metrics(broker_);
  if (opened) return;
  report_.error(opened.error().message + "; there are no metrics");
  broker_.metrics.clear();  // the next reload retries
}

void ConfigReload::change_vms(const std::vector<VmOptions>& wanted, const std::vector<VmGpus>& gpus) {
  for (const auto& vm : vms_.all()) {
    const VmOptions* const now = find(wanted, vm->options().name);
    VmOptions options = vm->options();
    const Changes changes = take_over(options, *now, keeps_gpus(*vm));
    options.own_uid = now->own_uid && options.worker_uid == now->worker_uid;
    for (const std::string& line : changes.lines) report_.info(fmt::format("VM {}: {}", options.name, line));
    if (!changes.now && !changes.new_sessions && options.own_uid == vm->options().own_uid) continue;
    const VmGpus& its = gpus[static_cast<std::size_t>(now - wanted.data())];
    const auto changed = vm->change(options, services_.program_for(options, its), changes.new_sessions);
    if (!changed)
      report_.error(
          fmt::format("VM {}: its control group keeps its old bounds: {}", options.name, changed.error().message));
  }
}

void ConfigReload::go_on() {
  add_vms();
  finish();
  if (const char* asked_by = std::exchange(again_, nullptr)) start(asked_by);
}

// Adds the VMs that are not served yet, when all removed ones have gone.
void ConfigReload::add_vms() {
  if (vms_.is_removing()) return;
  for (std::size_t i = 0; i < coming_.size(); ++i) {
    if (vms_.find(coming_[i].name) != nullptr) continue;
    const auto added = vms_.add(coming_[i], coming_gpus_[i], broker_);
    if (added)
      report_.info(fmt::format("VM {}: added", coming_[i].name));
    else
      report_.error(not_served(coming_[i].name, added.error().message));
  }
  coming_.clear();
  coming_gpus_.clear();
}

}  // namespace host::broker
