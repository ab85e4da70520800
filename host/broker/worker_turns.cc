#include "host/broker/worker_turns.h"

#include "host/broker/gpu_accounts.h"

namespace host::broker {

turns::Scheduler::Options options_for_turns(const GpuOptions& gpu) {
  return {.on = gpu.policy == "turns",
          .limits = {.quantum = std::chrono::microseconds(gpu.quantum_us),
                     .longest = std::chrono::milliseconds(gpu.longest_turn_ms)}};
}

std::unique_ptr<WorkerTurns> WorkerTurns::create(turns::Scheduler& scheduler, turns::Scheduler::Vm vm,
                                                 const VmGpus& gpus, const std::string& name, bool kept,
                                                 std::string& error) {
  auto line = turns::Line::create(name, kept, error);
  return line ? join(scheduler, vm, gpus, std::move(line)) : nullptr;
}

std::unique_ptr<WorkerTurns> WorkerTurns::join(turns::Scheduler& scheduler, turns::Scheduler::Vm vm, const VmGpus& gpus,
                                               std::shared_ptr<turns::Line> line) {
  std::vector<std::string> names;
  for (const Gpu& gpu : gpus.list) names.push_back(name_of(gpu));
  std::unique_ptr<WorkerTurns> place(new WorkerTurns(scheduler, line, names));
  place->client_ = scheduler.add(vm, std::move(line), std::move(names));
  return place;
}

void WorkerTurns::saw(const worker::ReadyMessage& said) {
  sure_.clear();
  const std::size_t count = std::min<std::size_t>({said.gpus, gpus_.size(), ring::max_devices});
  for (std::size_t d = 0; d < count; ++d)
    if (key_of(uuid_in_words(said.gpu[d].uuid)) == key_of(gpus_[d])) sure_.push_back(gpus_[d]);
}

}  // namespace host::broker
