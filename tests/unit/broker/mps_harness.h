// A broker with policy = "mps" on the simulated GPU's devices. tests/fake/nvidia-cuda-mps-control replaces NVIDIA's
// control program.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "host/simgpu/image/device_names.h"
#include "tests/unit/broker/harness.h"
#include "tests/unit/process_life.h"

namespace broker_test {

inline constexpr uid_t workers_user = 65534;

inline std::string gpu(int device) { return simgpu::device_uuid_text(device); }

// The fake control program, and the log of its commands.
class Control {
 public:
  Control() { std::filesystem::create_symlink(FAKE_MPS, path()); }
  // Kills daemons that a killed broker has left running.
  ~Control() {
    for (const pid_t left : left_) kill(left, SIGKILL);
  }
  std::string path() const { return folder_ / "nvidia-cuda-mps-control"; }
  void misbehave(const std::string& how) const { folder_.write("mps-" + how, ""); }
  void behave(const std::string& how) const { std::filesystem::remove(folder_ / ("mps-" + how)); }
  std::string told() const { return folder_.read("mps-told"); }
  std::size_t times(const std::string& text) const {
    const std::string all = told();
    std::size_t n = 0;
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++n;
    return n;
  }
  std::string last_line() const {
    const std::string all = told();
    const std::size_t end = all.find_last_not_of('\n');
    return all.substr(all.rfind('\n', end) + 1, end - all.rfind('\n', end));
  }
  void kill_at_the_end(pid_t daemon) { left_.push_back(daemon); }

 private:
  Folder folder_;
  std::vector<pid_t> left_;
};

inline std::string mps_keys(const Control& control) {
  return "policy = \"mps\"\nmps_control = \"" + control.path() + "\"\n";
}

inline pid_t daemon_of(const Broker& broker, int device) {
  return std::atoi(broker.folder.read("mps/" + gpu(device) + "/pipe/nvidia-cuda-mps-control.pid").c_str());
}

// A broker whose VM "t" and the VMs in `vms` share a simulated machine with three devices.
class MpsBroker : public Broker {
 public:
  // `fake`: the workers' behaviour (tests/unit/broker/fake_worker.cc). `shared`: the workers' file in /dev/shm.
  explicit MpsBroker(
      const Control& control, const std::string& vms = "", const std::string& fake = "", const std::string& shared = "",
      const std::function<void()>& before = [] {})
      : Broker(
            "gpus = [0]\n" + vms, fake,
            [&] {
              setenv("IVGPU_SIM_DEVICES", "3", 1);
              setenv("IVGPU_SIM_SHM", shared.c_str(), 1);
              before();
            },
            "sim", "", mps_keys(control)) {}

  // Ends the broker with SIGTERM, since a killed broker would leave its daemons running.
  ~MpsBroker() {
    if (pid > 0 && !ended()) terminate();
  }
  MpsBroker(const MpsBroker&) = delete;
  MpsBroker& operator=(const MpsBroker&) = delete;

  std::string folder_of(int device) const { return folder / ("mps/" + gpu(device)); }
  pid_t daemon_of(int device) const { return broker_test::daemon_of(*this, device); }
};

inline bool is_worker(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  return std::getline(file, name) && name == "broker_fake_wor";
}

inline std::vector<pid_t> workers_of(const Broker& broker) {
  std::vector<pid_t> all = broker.workers();
  std::erase_if(all, [](pid_t child) { return !is_worker(child); });
  return all;
}

}  // namespace broker_test
