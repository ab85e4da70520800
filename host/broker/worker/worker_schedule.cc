#include "host/broker/worker/worker_schedule.h"

#include <vector>

#include "host/broker/alloc/gpu_accounts.h"

namespace host::broker {

scheduler::Scheduler::Options scheduler_options(const GpuOptions& gpu) {
  return {.on = gpu.policy == "shared", .longest_off = std::chrono::milliseconds(gpu.longest_lease_ms)};
}

scheduler::Scheduler::Share share_of(const VmOptions& vm) {
  return {.weight = static_cast<double>(vm.weight),
          .latency = vm.latency,
          .reserve = static_cast<double>(vm.reserve) / 100};
}

Result<std::unique_ptr<WorkerSchedule>> WorkerSchedule::create(Scheduler& scheduler, Scheduler::Vm vm,
                                                               const std::string& name, bool kept) {
  auto pages = scheduler::WorkerPages::create(name, kept);
  if (!pages) return pages.error();
  return join(scheduler, vm, *std::move(pages));
}

std::unique_ptr<WorkerSchedule> WorkerSchedule::join(Scheduler& scheduler, Scheduler::Vm vm,
                                                     std::shared_ptr<scheduler::WorkerPages> pages) {
  std::unique_ptr<WorkerSchedule> place(new WorkerSchedule(scheduler, pages));
  place->client_ = scheduler.add(vm, std::move(pages));
  return place;
}

void WorkerSchedule::ready(pid_t process, const worker::ReadyMessage& reported, const std::vector<Gpu>& gpus) {
  std::vector<std::string> names;
  for (const Gpu& gpu : gpus) names.push_back(name_of(gpu));
  scheduler_.ready(client_, process, reported.rm_client, std::move(names));
}

}  // namespace host::broker
