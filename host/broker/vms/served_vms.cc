#include "host/broker/vms/served_vms.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "host/broker/region/guarded_memory.h"
#include "host/broker/region/plain_file_space.h"
#include "host/broker/worker/worker_schedule.h"

namespace host::broker {
namespace {

// Logs the choice of GPUs, which the operator may not expect.
void report_gpus(const std::string& vm, const VmGpus& gpus) {
  if (gpus.all) return;
  std::string list;
  for (const Gpu& gpu : gpus.list) list += (list.empty() ? "" : ", ") + in_words(gpu);
  spdlog::info("{}: its guests see {}{}", vm, list,
               gpus.placement.empty() ? "" : fmt::format(", by placement = \"{}\"", gpus.placement));
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr)
    spdlog::info("{}: the key gpus goes before CUDA_VISIBLE_DEVICES of the environment", vm);
  if (gpus.devices.empty())
    spdlog::warn("{}: the kernel does not say which device files a MIG device needs: its workers may open all", vm);
}

std::string lost_in_words(const VmOptions& vm) {
  return fmt::format("VM {} is not served any more: its memory {}: end the VM; `ivgpu reload` then serves it again",
                     vm.name,
                     vm.plain_file.empty() ? "is gone: a process that shares it has given its pages away"
                                           : vm.plain_file + " was shrunk, or its file system is full");
}

}  // namespace

std::string not_served(const std::string& vm, const std::string& why) {
  const std::string own = "VM " + vm + ": ";
  return fmt::format("VM {} is not served: {}", vm, why.starts_with(own) ? why.substr(own.size()) : why);
}

ServedVms::~ServedVms() {
  loop_.forget(forget_timer_);
  loop_.forget(lost_watch_);
}

Result<void> ServedVms::add(const VmOptions& options, const VmGpus& gpus, const BrokerOptions& broker) {
  std::vector<VmOptions> together = this->options();
  together.push_back(options);
  // A VM that still runs may have the user that the reloaded file gives to another VM.
  const auto same_user = [&](const auto& vm) { return vm->options().worker_uid == options.worker_uid; };
  together.back().own_uid = options.own_uid && std::none_of(vms_.begin(), vms_.end(), same_user);
  if (const auto fit = plain_files_fit(together); !fit) return fit.error();
  auto vm = Vm::create(loop_, together.back(), broker, services_.program_for(options, gpus), services_.traces(),
                       services_.scrub_queue());
  if (!vm) return vm.error();
  report_gpus(options.name, gpus);
  vms_.push_back(*std::move(vm));
  return {};
}

void ServedVms::remove_if(const std::function<bool(const Vm&)>& goes) {
  for (std::size_t i = 0; i < vms_.size();) {
    if (!goes(*vms_[i])) {
      ++i;
      continue;
    }
    std::unique_ptr<Vm> vm = std::move(vms_[i]);
    vms_.erase(vms_.begin() + static_cast<std::ptrdiff_t>(i));
    remove(std::move(vm));
  }
}

void ServedVms::remove(std::unique_ptr<Vm> vm) {
  const std::string& name = vm->options().name;
  const std::size_t sessions = vm->sessions();
  const std::string end = sessions == 0 ? "" : fmt::format(", its {} session(s) end", sessions);
  report_.info(fmt::format("VM {}: removed{}", name, end));
  services_.traces().remove_vm(name);
  leaving_.push_back(std::move(vm));
  leaving_.back()->remove(end_patience, [this, leaving = leaving_.back().get()] {
    gone_.push_back(leaving);
    if (forget_timer_ == 0) forget_timer_ = loop_.after(Clock::duration::zero(), [this] { forget_removed(); });
  });
}

void ServedVms::forget_removed() {
  forget_timer_ = 0;
  for (const Vm* vm : std::exchange(gone_, {})) {
    report_.info(fmt::format("VM {}: its workers and its memory have gone", vm->options().name));
    std::erase_if(leaving_, [vm](const std::unique_ptr<Vm>& other) { return other.get() == vm; });
  }
  if (!stopping_ && leaving_.empty()) all_gone_();
}

void ServedVms::watch_losses() {
  lost_watch_ = loop_.watch(GuardedMemory::lost_fd(), POLLIN, [this](short) { remove_lost(); });
}

void ServedVms::remove_lost() {
  std::uint64_t losses = 0;
  [[maybe_unused]] const auto taken = read(GuardedMemory::lost_fd(), &losses, sizeof losses);
  if (stopping_) return;
  remove_if([this](const Vm& vm) {
    if (vm.is_lost()) report_.error(lost_in_words(vm.options()));
    return vm.is_lost();
  });
}

Vm* ServedVms::find(const std::string& name) const {
  const auto found = std::find_if(vms_.begin(), vms_.end(), [&](const auto& vm) { return vm->options().name == name; });
  return found == vms_.end() ? nullptr : found->get();
}

std::vector<VmOptions> ServedVms::options() const {
  std::vector<VmOptions> all;
  for (const auto& vm : vms_) all.push_back(vm->options());
  return all;
}

std::size_t ServedVms::sessions() const {
  std::size_t sessions = 0;
  for (const auto& vm : vms_) sessions += vm->sessions();
  return sessions;
}

std::string ServedVms::in_words() const {
  return fmt::format("serving {} VM(s) with {}", vms_.size(), services_.library());
}

void ServedVms::add_to(BrokerStatus& status) const {
  for (const auto& vm : vms_) status.vms.push_back(vm->status());
  const scheduler::Scheduler::Report& report = services_.scheduler().report();
  for (const auto& [gpu, sharing] : report.sharing) status.gpus.push_back({gpu, sharing});
  for (std::size_t i = 0; i < vms_.size(); ++i)
    if (const auto account = report.vms.find(vms_[i]->scheduled_as()); account != report.vms.end())
      status.vms[i].gpu_time = GpuTimeStatus{share_of(vms_[i]->options()), account->second};
}

std::vector<std::string> ServedVms::removed_names() const {
  std::vector<std::string> names;
  for (const auto& vm : leaving_) names.push_back(vm->options().name);
  return names;
}

void ServedVms::when_warm(const std::function<void()>& ready) {
  cold_ = vms_.size();
  if (cold_ == 0) ready();
  for (const auto& vm : vms_)
    vm->when_warm([this, ready] {
      if (--cold_ == 0) ready();
    });
}

void ServedVms::stop(std::function<void()> done) {
  stopping_ = true;
  stopped_ = std::move(done);
  for (auto& vm : leaving_) vms_.push_back(std::move(vm));
  leaving_.clear();
  running_ = vms_.size() + 1;
  for (const auto& vm : vms_) vm->stop(end_patience, [this] { on_stopped(); });
  on_stopped();
}

void ServedVms::on_stopped() {
  if (--running_ == 0) stopped_();
}

void ServedVms::leave() {
  stopping_ = true;
  leaving_.clear();
  std::erase_if(vms_, [](const auto& vm) { return !vm->outlives_broker(); });
}

}  // namespace host::broker
