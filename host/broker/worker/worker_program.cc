#include "host/broker/worker/worker_program.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "host/broker/alloc/placement.h"
#include "host/broker/gpu/gpu_library.h"
#include "host/broker/mps/mps_setting.h"

namespace host::broker {

namespace fs = std::filesystem;

namespace {

// A worker's environment, built from nothing: what it needs, and the variables that an operator sets for it.
std::vector<std::string> worker_environment() {
  std::vector<std::string> environment = {
      "PATH=/usr/bin:/bin", "LANG=C",
      "CUDA_MODULE_LOADING=LAZY",  // loads only code that a guest calls
      "CUDA_CACHE_DISABLE=1",      // a disk cache would be shared between guests, and the jail refuses it
  };
  static constexpr std::string_view kept[] = {"CUDA_MPS_PIPE_DIRECTORY=",
                                              "CUDA_MPS_LOG_DIRECTORY=",
                                              "CUDA_VISIBLE_DEVICES=",
                                              "CUDA_DEVICE_ORDER=",
                                              "IVGPU_SIM_",
                                              "ASAN_OPTIONS=",
                                              "UBSAN_OPTIONS=",
                                              "TSAN_OPTIONS="};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto begins = [&](std::string_view prefix) { return text.starts_with(prefix); };
    if (std::any_of(std::begin(kept), std::end(kept), begins)) environment.emplace_back(text);
  }
  return environment;
}

// The GPUs among which a placement chooses.
Result<VmGpus> all_candidates(const std::vector<std::string>& wanted, const std::vector<Gpu>& host) {
  auto candidates = find_candidates(wanted, host);
  if (!candidates) return candidates.error();
  VmGpus gpus;
  gpus.list = *std::move(candidates);
  return gpus;
}

}  // namespace

Result<WorkerProgram> find_worker(const Config& config, const fs::path& own_folder) {
  WorkerProgram program;
  program.path = config.broker.worker.empty() ? (own_folder / "ivgpu-worker").string() : config.broker.worker;
  if (access(program.path.c_str(), X_OK) != 0)
    return Error{fmt::format("[broker] worker: {}: {}", program.path, std::strerror(errno))};
  auto mps_control = find_mps_control(config.gpu);
  if (!mps_control) return mps_control.error();
  auto library = find_gpu_library(config.gpu.library, own_folder);
  if (!library) return library.error();
  program.mps_control = *std::move(mps_control);
  program.mps_supervisor = own_folder / "ivgpu-mps";
  program.gputime = own_folder / "ivgpu-gputime";
  program.library = *std::move(library);
  program.environment = worker_environment();
  program.priority = getpriority(PRIO_PROCESS, 0);
  return program;
}

Result<std::vector<VmGpus>> find_gpus(const Config& config) {
  std::vector<VmGpus> all;
  const std::vector<Gpu> host =
      config.gpu.library == "sim" ? simulated_gpus(std::getenv("IVGPU_SIM_DEVICES")) : gpus_of_machine();
  for (const VmOptions& vm : config.vms) {
    auto gpus = vm.placement == fixed_placement ? choose_gpus(vm.gpus, host) : all_candidates(vm.gpus, host);
    if (!gpus) return Error{fmt::format("[vm.{}] gpus: {}", vm.name, gpus.error().message)};
    all.push_back(*std::move(gpus));
  }
  return all;
}

}  // namespace host::broker
