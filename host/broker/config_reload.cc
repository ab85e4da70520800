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
  Config wanted;
  std::vector<VmGpus> gpus;
  std::string error;
  if (!read_again(wanted, gpus, error)) return report_.error(error + "; nothing is changed");
  for (const RefusedFile& file : wanted.refused) report_.error(in_words(file, vms_.find(file.vm) != nullptr));
  for (const std::string& remark : wanted.remarks) report_.info(remark);
  change_broker(wanted);
  vms_.remove_if([&](const Vm& vm) { return find(wanted.vms, vm.options().name) == nullptr; });
  change_vms(wanted.vms, gpus);
  coming_ = std::move(wanted.vms);
  coming_gpus_ = std::move(gpus);
  add_vms();
}

// False if the broker's file has a mistake; `error` is one sentence.
bool ConfigReload::read_again(Config& wanted, std::vector<VmGpus>& gpus, std::string& error) {
  auto read = read_config(file_, cores_);
  if (!read) return error = read.error().message, false;
  wanted = *std::move(read);
  keep_refused(wanted);
  // VMs already served come first, so that a new VM is refused rather than a served one.
  std::stable_partition(wanted.vms.begin(), wanted.vms.end(),
                        [&](const VmOptions& vm) { return vm.file.empty() || vms_.find(vm.name) != nullptr; });
  const Possible possible = [this](Config& config) -> Result<std::vector<VmGpus>> {
    std::vector<VmGpus> its;
    std::string why;
    if (!is_possible(config, its, why)) return Error{why};
    return its;
  };
  const auto wrong = [&](const Error& why) { return error = file_ + ": " + why.message, false; };
  if (const auto may = may_give_users(wanted.broker); !may) return wrong(may.error());
  auto found = take_possible(wanted, possible);
  if (found && keep_refused(wanted)) found = possible(wanted);
  if (!found) return wrong(found.error());
  gpus = *std::move(found);
  return true;
}

bool ConfigReload::is_possible(Config& wanted, std::vector<VmGpus>& gpus, std::string& error) {
  std::vector<VmOptions> stay = vms_.options();
  std::erase_if(stay, [&](const VmOptions& vm) { return find(wanted.vms, vm.name) == nullptr; });
  if (const auto kept = keep_users(wanted.broker.worker_uids, stay, wanted.vms); !kept)
    return error = kept.error().message, false;
  if (!find_gpus_again(wanted, gpus, error) || !services_.hold_gpus(wanted, gpus, error)) return false;
  note_own_users(wanted.vms);
  return true;
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
bool ConfigReload::find_gpus_again(const Config& wanted, std::vector<VmGpus>& gpus, std::string& error) const {
  Config to_be = wanted;
  std::map<std::string, VmGpus> kept;
  for (VmOptions& options : to_be.vms)
    for (const auto& vm : vms_.all()) {
      if (vm->options().name != options.name) continue;
      options.placement = vm->options().placement;
      if (keeps_gpus(*vm)) kept[options.name] = vm->gpus();
    }
  auto found = find_gpus(to_be);
  if (found) found = place_gpus(to_be, services_.accounts().all(), kept, *std::move(found));
  if (!found) return error = found.error().message, false;
  gpus = *std::move(found);
  return true;
}

void ConfigReload::change_broker(const Config& wanted) {
  const std::string metrics = broker_.metrics;
  for (const std::string& line : take_over(broker_, wanted.broker).lines) report_.info("[broker] " + line);
  for (const std::string& line : services_.take_over_options(wanted.gpu).lines) report_.info("[gpu] " + line);
  services_.apply_options();
  spdlog::set_level(spdlog::level::from_str(broker_.log_level));
  std::string error;
  if (broker_.metrics == metrics || sockets_.open_metrics(broker_, error)) return;
  report_.error(error + "; there are no metrics");
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
    std::string error;
    const VmGpus& its = gpus[static_cast<std::size_t>(now - wanted.data())];
    if (!vm->change(options, services_.program_for(options, its), changes.new_sessions, error))
      report_.error(fmt::format("VM {}: its control group keeps its old bounds: {}", options.name, error));
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
    std::string error;
    if (vms_.add(coming_[i], coming_gpus_[i], broker_, error))
      report_.info(fmt::format("VM {}: added", coming_[i].name));
    else
      report_.error(not_served(coming_[i].name, error));
  }
  coming_.clear();
  coming_gpus_.clear();
}

}  // namespace host::broker
