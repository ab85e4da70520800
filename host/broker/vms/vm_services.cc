#include "host/broker/vms/vm_services.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdlib>
#include <utility>

#include "host/broker/mps/mps_setting.h"
#include "host/broker/worker/worker_schedule.h"

namespace host::broker {

void VmServices::report_facts_by(std::unique_ptr<GpuUsage> usage) {
  facts_ = std::make_unique<GpuFactCache>(loop_, std::move(usage));
}

Result<void> VmServices::start(const Config& config, const WorkerProgram& program, const std::vector<VmGpus>& gpus,
                               bool may_follow) {
  runtime_dir_ = config.broker.runtime_dir;
  gpu_ = config.gpu;
  program_ = program;
  program_.accounts = &accounts_;
  program_.facts = facts_.get();
  accounts_.allow_overcommit(gpu_.overcommit);
  if (const auto made = make_groups(config.broker); !made) return made.error();
  if (const auto held = hold_gpus(config, gpus); !held) return held.error();
  auto started = scheduler::Scheduler::start(scheduler_options(gpu_));
  if (!started) return started.error();
  scheduler_ = *std::move(started);
  if (gpu_.policy == "mps") start_mps(may_follow);
  return {};
}

Result<void> VmServices::make_groups(const BrokerOptions& broker) {
  if (broker.cgroups == "off") return {};
  groups_ = std::make_unique<Groups>();
  if (groups_->missing().empty() || broker.cgroups != "required") return {};
  return Error{"VMs get no control groups: " + groups_->missing()};
}

void VmServices::start_mps(bool may_follow) {
  mps_ = std::make_unique<Mps>(
      loop_, Mps::Setting{program_.mps_control, runtime_dir_, program_.priority, program_.store,
                          program_.mps_supervisor, program_.life_fd, program_.outlive_ms, may_follow});
  spdlog::warn("{}", mps_in_words());
}

std::unique_ptr<GpuTimeHelper> VmServices::start_gpu_time() {
  if (mps_ != nullptr) return nullptr;
  const bool is_sim = gpu_.library == "sim";
  const char* count = std::getenv("IVGPU_SIM_DEVICES");
  return std::make_unique<GpuTimeHelper>(
      loop_, *scheduler_,
      GpuTimeHelper::Options{program_.gputime, gpu_.library, is_sim ? simulated_gpus(count) : gpus_of_machine(),
                             std::chrono::milliseconds(gpu_.longest_lease_ms)});
}

void VmServices::report_groups() const {
  if (groups_ == nullptr) return;
  if (groups_->missing().empty()) return spdlog::info("VMs have control groups below {}", groups_->path());
  spdlog::warn(
      "VMs get no control groups: {}; memory_max and cpu_max bind no worker, nor does pids_max where worker_uid is "
      "shared",
      groups_->missing());
}

void VmServices::apply_options() {
  accounts_.allow_overcommit(gpu_.overcommit);
  scheduler_->change(scheduler_options(gpu_));
}

WorkerProgram VmServices::program_for(const VmOptions& options, const VmGpus& gpus) const {
  WorkerProgram own = program_;
  own.groups = groups_.get();
  own.scheduler = scheduler_.get();
  own.gpus = gpus;
  own.mps = mps_.get();
  show_only(own.gpus, own.environment);
  if (mps_ != nullptr && !gpus.list.empty()) share_by_mps(runtime_dir_, gpus, options.active_threads, own.environment);
  return own;
}

void VmServices::leave() {
  if (mps_ != nullptr) mps_->leave();
}

void VmServices::end(const std::function<void()>& done) {
  if (mps_ == nullptr) return done();
  mps_->end(done);
}

}  // namespace host::broker
