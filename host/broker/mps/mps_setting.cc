#include "host/broker/mps/mps_setting.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "host/broker/mps/mps_daemon.h"

namespace host::broker {
namespace {

constexpr const char* control = "nvidia-cuda-mps-control";

std::string in_path() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string file = folder + "/" + control; folder.starts_with('/') && access(file.c_str(), X_OK) == 0)
      return file;
  return "";
}

Result<void> has_one_gpu(const VmOptions& vm, const VmGpus& gpus) {
  const auto wrong = [](const std::string& why) { return Error{fmt::format("[gpu] policy = \"mps\": {}", why)}; };
  if (gpus.list.empty()) return wrong("this host has no GPU that the kernel names");
  if (gpus.list.size() > 1)
    return wrong(
        fmt::format("a VM has one GPU, since each has an MPS daemon of its own: [vm.{}] has {}; name one by gpus, or "
                    "let placement choose one",
                    vm.name, gpus.list.size()));
  if (!gpus.list.front().uuid.empty()) return {};
  return wrong(in_words(gpus.list.front()) +
               " has no UUID before the driver has read it: run nvidia-persistenced, or nvidia-smi once");
}

}  // namespace

Result<std::string> find_mps_control(const GpuOptions& gpu) {
  if (gpu.policy != "mps") return std::string();
  const std::string path = gpu.mps_control.empty() ? in_path() : gpu.mps_control;
  if (path.empty())
    return Error{fmt::format(
        "[gpu] policy = \"mps\" needs {}, which is not in the PATH: install it (it comes with NVIDIA's driver), or "
        "name "
        "its path as mps_control",
        control)};
  if (access(path.c_str(), X_OK) != 0)
    return Error{fmt::format("[gpu] mps_control: {}: {}", path, std::strerror(errno))};
  return path;
}

Result<void> mps_fits(const Config& config, const std::vector<VmGpus>& gpus) {
  if (config.gpu.policy != "mps") return {};
  std::map<std::string, const VmOptions*> first;  // by GPU
  for (std::size_t i = 0; i < config.vms.size(); ++i) {
    const VmOptions& vm = config.vms[i];
    if (const auto one = has_one_gpu(vm, gpus[i]); !one) return one.error();
    const VmOptions& other = *first.emplace(gpus[i].list.front().uuid, &vm).first->second;
    if (geteuid() != 0 || other.worker_uid == vm.worker_uid) continue;
    return Error{fmt::format(
        "[gpu] policy = \"mps\": an MPS server has the clients of one user: [vm.{}] has worker_uid {} and [vm.{}] {} "
        "on "
        "{}; give them one, and leave [broker] worker_uids out",
        other.name, other.worker_uid, vm.name, vm.worker_uid, gpus[i].list.front().uuid)};
  }
  return {};
}

std::string mps_in_words() {
  return "policy = \"mps\": the VMs of a GPU are one trust domain: a fault in one VM's kernel ends the sessions of all "
         "of "
         "them, their workers run as one user, and one process of NVIDIA's, the MPS server, stands alone between the "
         "memory of one VM and that of another";
}

void share_by_mps(const std::string& runtime_dir, const VmGpus& gpus, std::int64_t active_threads,
                  std::vector<std::string>& environment) {
  const std::string& gpu = gpus.list.front().uuid;
  const MpsFolders folders = mps_folders(runtime_dir, gpu);
  // Daemon and client both use the UUID: the daemon shows its clients one GPU as index 0.
  const std::array<std::pair<std::string_view, std::string>, 4> wanted = {
      {{"CUDA_VISIBLE_DEVICES=", gpu},
       {"CUDA_MPS_PIPE_DIRECTORY=", folders.pipe},
       {"CUDA_MPS_LOG_DIRECTORY=", folders.log},
       {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=", std::to_string(active_threads)}}};
  for (const auto& [variable_name, value] : wanted) {
    const std::string_view name = variable_name;  // clang cannot capture a structured binding
    std::erase_if(environment, [&](const std::string& variable) { return variable.starts_with(name); });
    environment.push_back(std::string(name) + value);
  }
}

}  // namespace host::broker
