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

}  // namespace

bool find_worker(const Config& config, const fs::path& own_folder, WorkerProgram& program, std::string& error) {
  program.path = config.broker.worker.empty() ? (own_folder / "ivgpu-worker").string() : config.broker.worker;
  if (access(program.path.c_str(), X_OK) != 0) {
    error = fmt::format("[broker] worker: {}: {}", program.path, std::strerror(errno));
    return false;
  }
  if (!find_mps_control(config.gpu, program.mps_control, error)) return false;
  program.mps_supervisor = own_folder / "ivgpu-mps";
  program.gputime = own_folder / "ivgpu-gputime";
  program.library = find_gpu_library(config.gpu.library, own_folder, error);
  program.environment = worker_environment();
  program.priority = getpriority(PRIO_PROCESS, 0);
  return !program.library.empty();
}

bool find_gpus(const Config& config, std::vector<VmGpus>& all, std::string& error) {
  const std::vector<Gpu> host =
      config.gpu.library == "sim" ? simulated_gpus(std::getenv("IVGPU_SIM_DEVICES")) : gpus_of_machine();
  for (const VmOptions& vm : config.vms) {
    VmGpus& gpus = all.emplace_back();
    if (vm.placement == fixed_placement ? choose_gpus(vm.gpus, host, gpus, error)
                                        : find_candidates(vm.gpus, host, gpus.list, error))
      continue;
    error = fmt::format("[vm.{}] gpus: {}", vm.name, error);
    return false;
  }
  return true;
}

}  // namespace host::broker
