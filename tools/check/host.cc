// Checks a host: NVIDIA's driver, KVM, memory, the kernel features for a worker's jail, control groups and the broker.
#include <linux/landlock.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <sstream>

#include "host/broker/gpu/gpus.h"
#include "host/jail/ioctls.h"
#include "tools/check/machine.h"

namespace check {
namespace {

using host::broker::Gpu;

constexpr int least_driver = 580;  // the driver version of CUDA 13.0

std::string first_match(const std::string& text, const char* pattern) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(pattern)) ? found[1].str() : "";
}

std::string kernel_driver(const Machine& m) {
  return first_match(m.text("/proc/driver/nvidia/version").value_or(""), R"(Kernel Module.*?\s(\d+\.\d+(\.\d+)?)\s)");
}

Finding driver(const Machine& m) {
  const std::string version = kernel_driver(m);
  if (version.empty())
    return {"driver", State::Warning, "NVIDIA's kernel driver is not loaded: only the simulated GPU can be served",
            "install NVIDIA's driver 580 or newer, or set library = \"sim\" in [gpu]"};
  if (std::atoi(version.c_str()) < least_driver)
    return {"driver", State::Wrong, "NVIDIA's kernel driver " + version + " is older than CUDA 13.0 needs",
            "install NVIDIA's driver 580 or newer"};
  return {"driver", State::Ok, "NVIDIA's kernel driver " + version + " is loaded", ""};
}

Finding driver_library(const Machine& m) {
  const std::string kernel = kernel_driver(m);
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib"}) {
    const std::string path = std::string(folder) + "/libcuda.so.1";
    if (!m.has(path)) continue;
    const std::string version = first_match(m.target(path), R"(libcuda\.so\.(\d+\.\d+(\.\d+)?)$)");
    if (!kernel.empty() && !version.empty() && version != kernel)
      return {"library", State::Wrong, path + " is of driver " + version + ", the kernel's is " + kernel,
              "reboot after an update of the driver, or install both from one package"};
    return {"library", State::Ok, path + (version.empty() ? " is there" : " is of driver " + version), ""};
  }
  if (kernel.empty()) return {"library", State::Ok, "there is no libcuda.so.1, and no driver that would need it", ""};
  return {"library", State::Wrong, "the driver is loaded, but libcuda.so.1 is in none of the system's folders",
          "install libcuda1 (Debian), or name its path as library in [gpu]"};
}

// Lists the GPUs that the configuration key `gpus` accepts.
Finding gpus(const std::vector<Gpu>& all) {
  if (all.empty())
    return {"gpus", State::Ok, "/proc/driver/nvidia/gpus lists no GPU: gpus = \"all\" alone makes sense", ""};
  std::string list;
  bool unknown = false;
  for (const Gpu& gpu : all) {
    list += (list.empty() ? "" : ", ") + in_words(gpu);
    unknown = unknown || gpu.uuid.empty();
  }
  if (unknown)
    return {"gpus", State::Warning, list + ": the key gpus cannot name one whose UUID is not known",
            "run nvidia-persistenced before ivgpud, or nvidia-smi once"};
  return {"gpus", State::Ok, list, ""};
}

Finding device_files(const Machine& m, const std::vector<Gpu>& gpus) {
  if (kernel_driver(m).empty()) return {"devices", State::Ok, "no GPU, no device files", ""};
  std::vector<std::string> paths = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
  for (const Gpu& gpu : gpus) paths.push_back(gpu.node);
  if (gpus.empty()) paths.emplace_back("/dev/nvidia0");
  std::string list;
  for (const std::string& path : paths) {
    if (!m.has(path))
      return {"devices", State::Wrong, path + " is missing", "run nvidia-modprobe -u -c 0, or load nvidia-uvm at boot"};
    if (!m.anybody_may_use(path))
      return {"devices", State::Wrong, "workers run as another user and may not open " + path,
              "set NVreg_DeviceFileMode=0666 for the nvidia module, or worker_gid to the files' group"};
    list += (list.empty() ? "" : ", ") + path;
  }
  return {"devices", State::Ok, list + " may be opened by workers", ""};
}

// Reports whether the module disables HMM, and whether the kernel supports it. Only libcuda knows whether kernels reach
// all memory of a worker.
Finding pageable_memory(const Machine& m) {
  if (kernel_driver(m).empty()) return {"hmm", State::Ok, "no driver, so no GPU that reaches a worker's memory", ""};
  const auto parameter = [&](const char* name) {
    return m.text(std::string("/sys/module/nvidia_uvm/parameters/") + name).value_or("").substr(0, 1);
  };
  const std::string hmm = parameter("uvm_disable_hmm"), ats = parameter("uvm_ats_mode");
  if (hmm.empty())
    return {"hmm", State::Warning, "nvidia_uvm does not say whether it lets kernels reach all memory of a worker (HMM)",
            "load nvidia_uvm; a worker looks for itself, and its log says"};
  // Only the open modules support HMM, from Linux 6.1.24 on. ATS depends on the hardware.
  const bool open_module =
      m.text("/proc/driver/nvidia/version").value_or("").find("Open Kernel Module") != std::string::npos;
  if (hmm == "Y" || !open_module)
    return {"hmm", State::Ok,
            std::string("kernels do not reach a worker's memory by HMM: ") +
                (hmm == "Y" ? "uvm_disable_hmm is set" : "the driver's modules are not the open ones") +
                (ats == "1" ? "; on hardware with ATS they would (uvm_ats_mode is 1)" : ""),
            ""};
  return {
      "hmm", State::Warning,
      "with the open modules and uvm_disable_hmm=N a kernel may reach all memory of a worker; where it does, no worker "
      "starts with jail = \"required\"",
      "echo options nvidia_uvm uvm_disable_hmm=1 > /etc/modprobe.d/ivgpu.conf, and load the module anew"};
}

// The jail's list of ioctls was recorded with one version of the driver.
Finding listed_ioctls(const Machine& m) {
  const std::string version = kernel_driver(m);
  if (version.empty() || version == host::jail::recorded_driver)
    return {"ioctls", State::Ok,
            "the jail's list of ioctls is driver " + std::string(host::jail::recorded_driver) + "'s", ""};
  return {"ioctls", State::Warning,
          "the jail's list of ioctls is driver " + std::string(host::jail::recorded_driver) + "'s and this is " +
              version + ": workers may make any, and with jail = \"required\" none starts",
          "set jail_ioctls = \"any\", or record the list anew: tools/dev/record-ioctls"};
}

Finding kvm(const Machine& m) {
  const std::string cpu = m.text("/proc/cpuinfo").value_or("");
  if (!std::regex_search(cpu, std::regex(R"(\b(vmx|svm)\b)")))
    return {"kvm", State::Warning, "the processor shows neither vmx nor svm: QEMU would emulate, which is slow",
            "switch virtualisation on in the firmware, or in the hypervisor that this machine is a guest of"};
  if (!m.has("/dev/kvm"))
    return {"kvm", State::Warning, "/dev/kvm is missing: QEMU would emulate, which is slow",
            "load kvm_intel or kvm_amd"};
  if (!m.may_use("/dev/kvm"))
    return {"kvm", State::Warning, "this user may not open /dev/kvm: its QEMU would emulate, which is slow",
            "add the user to the group kvm"};
  return {"kvm", State::Ok, "/dev/kvm may be used", ""};
}

Finding memlock(const Machine& m) {
  const std::string soft = first_match(m.text("/proc/self/limits").value_or(""), R"(Max locked memory\s+(\S+))");
  if (soft.empty()) return {"memlock", State::Warning, "the limit of locked memory is not reported", "mount /proc"};
  if (soft != "unlimited" && std::strtoull(soft.c_str(), nullptr, 10) < 8ULL << 20)
    return {"memlock", State::Warning,
            "only " + soft + " bytes may be locked: QEMU with mlock, or an old io_uring, fail",
            "ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit"};
  return {"memlock", State::Ok, "locked memory: " + soft + (soft == "unlimited" ? "" : " bytes"), ""};
}

Finding huge_pages(const Machine& m) {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  const std::string chosen = first_match(m.text(folder).value_or(""), R"(\[(\w+)\])");
  const std::string pool = first_match(m.text("/proc/meminfo").value_or(""), R"(HugePages_Free:\s+(\d+))");
  const std::string free = ", " + (pool.empty() ? "0" : pool) + " free in the pool";
  if (chosen.empty() || chosen == "never" || chosen == "deny")
    return {"huge pages", State::Warning,
            "regions get small pages (shmem_enabled: " + (chosen.empty() ? "not there" : chosen) + free + ")",
            "echo advise > " + folder};
  return {"huge pages", State::Ok, "regions may get huge pages (shmem_enabled: " + chosen + free + ")", ""};
}

Finding numa(const Machine& m) {
  int nodes = 0;
  for (const std::string& name : m.names("/sys/devices/system/node"))
    nodes += std::regex_match(name, std::regex(R"(node\d+)")) ? 1 : 0;
  if (nodes <= 1) return {"numa", State::Ok, "one memory node", ""};
  std::string where;
  for (const std::string& name : m.names("/sys/bus/pci/devices")) {
    const std::string device = "/sys/bus/pci/devices/" + name;
    if (m.number(device + "/vendor") != 0x10de || m.number(device + "/class").value_or(0) >> 16 != 3) continue;
    where +=
        (where.empty() ? "" : ", ") + name + " on node " + std::to_string(m.number(device + "/numa_node").value_or(-1));
  }
  if (where.empty()) return {"numa", State::Ok, std::to_string(nodes) + " memory nodes and no GPU", ""};
  return {"numa", State::Warning, std::to_string(nodes) + " memory nodes; GPU " + where,
          "run ivgpud and QEMU on the GPU's node: numactl --cpunodebind=N --preferred=N"};
}

// Reports an MPS daemon of the broker in `runtime_dir` (policy = "mps") or of an operator.
Finding mps(const Machine& m, const std::string& runtime_dir) {
  for (const std::string& gpu : m.names(runtime_dir + "/mps"))
    if (m.has(runtime_dir + "/mps/" + gpu + "/pipe/control"))
      return {"mps", State::Warning,
              "ivgpud runs MPS for " + gpu +
                  ": a fault of one VM's kernel ends all VMs on this GPU, and one process "
                  "stands alone between their memories",
              "policy = \"shared\" or \"time-slice\" in [gpu], unless the VMs trust each other"};
  const char* set = m.real() ? std::getenv("CUDA_MPS_PIPE_DIRECTORY") : nullptr;
  const std::string pipes = set != nullptr && *set != '\0' ? set : "/tmp/nvidia-mps";
  if (!m.has(pipes + "/control")) return {"mps", State::Ok, "no MPS daemon: VMs have the GPU in time slices", ""};
  return {"mps", State::Warning, "an MPS daemon serves " + pipes + ": a fault of one VM's kernel ends all of them",
          "echo quit | nvidia-cuda-mps-control, unless the VMs trust each other"};
}

bool has_landlock(const Machine& m) {
  if (const auto modules = m.text("/sys/kernel/security/lsm")) return modules->find("landlock") != std::string::npos;
  return m.real() && syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

Findings jail(const Machine& m) {
  Findings all;
  const std::string loose = "; with jail = \"required\" no worker starts";
  if (has_landlock(m))
    all.push_back({"landlock", State::Ok, "the kernel has Landlock: a worker's files are fenced", ""});
  else
    all.push_back({"landlock", State::Warning, "the kernel has no Landlock, a layer of the workers' jail" + loose,
                   "add landlock to the kernel's lsm= list (Linux 5.13 or newer)"});
  if (m.has("/proc/sys/kernel/seccomp/actions_avail"))
    all.push_back({"seccomp", State::Ok, "the kernel has seccomp: a worker's system calls are fenced", ""});
  else
    all.push_back({"seccomp", State::Warning, "the kernel has no seccomp, a layer of the workers' jail" + loose,
                   "take a kernel with CONFIG_SECCOMP_FILTER"});
  const bool none = m.number("/proc/sys/user/max_user_namespaces").value_or(0) == 0;
  const bool root_only = m.number("/proc/sys/kernel/unprivileged_userns_clone").value_or(1) == 0 ||
                         m.number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").value_or(0) == 1;
  if (m.is_root() || (!none && !root_only))
    all.push_back({"namespaces", State::Ok, "workers get namespaces of their own", ""});
  else
    all.push_back({"namespaces", State::Warning,
                   "this user may not make namespaces, a layer of the workers' jail" + loose,
                   "run ivgpud as root, or sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000"});
  return all;
}

// The mount point of a cgroup v2 hierarchy that is mounted from its root; "" if there is none.
std::string group_tree(const Machine& m) {
  std::istringstream lines(m.text("/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, parent, device, root, folder;
    if (line.find(" - cgroup2 ") != std::string::npos && words >> number >> parent >> device >> root >> folder)
      return folder;
  }
  return "";
}

// The reason why a running broker has no control groups, from its status `reported`. Returns "" if no broker runs or if
// the broker has control groups.
std::string groups_that_broker_lacks(const std::string& reported) {
  const std::string key = "\"group_missing\":\"";
  const std::size_t at = reported.find(key);
  return at == std::string::npos
             ? ""
             : reported.substr(at + key.size(), reported.find('"', at + key.size()) - at - key.size());
}

Finding groups(const Machine& m, const std::string& reported) {
  const std::string alone = ": a VM's workers are bounded by their sessions' budgets alone";
  const std::string tree = group_tree(m), there = " " + m.text(tree + "/cgroup.controllers").value_or("") + " ";
  for (const char* controller : {"memory", "pids", "cpu"})
    if (tree.empty() || !std::regex_search(there, std::regex("\\s" + std::string(controller) + "\\s")))
      return {"groups", State::Warning,
              "the kernel shows no control groups of version 2 with " + std::string(controller) + alone,
              "boot with systemd.unified_cgroup_hierarchy=1, or mount -t cgroup2 none /sys/fs/cgroup"};
  if (const std::string missing = groups_that_broker_lacks(reported); !missing.empty())
    return {"groups", State::Warning, "ivgpud makes no control groups" + alone + "; " + missing,
            "Delegate=yes in the [Service] of its unit, or systemd-run -p Delegate=yes ivgpud --config FILE"};
  return {"groups", State::Ok, "control groups of version 2 are at " + tree + "; ivgpud's unit needs Delegate=yes", ""};
}

// The status of the broker. Sets `why` to the error number if the broker does not answer.
std::string ask_broker(const std::string& path, int& why) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  why = ENAMETOOLONG;
  if (path.size() >= sizeof address.sun_path) return "";
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  why = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  std::string all;
  char part[4096];
  for (pollfd wait{fd, POLLIN, 0}; why == 0 && all.size() < 1 << 20 && poll(&wait, 1, 2000) == 1;) {
    const ssize_t n = read(fd, part, sizeof part);
    if (n <= 0) break;
    all.append(part, static_cast<std::size_t>(n));
  }
  close(fd);
  return all;
}

Finding broker(const std::string& path, const std::string& reported, int why) {
  if (why == EACCES || why == EPERM)
    return {"broker", State::Wrong, "this user may not talk to the broker at " + path,
            "add the user to the socket_group of ivgpud's configuration, or run as root"};
  if (why != 0)
    return {"broker", State::Warning, "no ivgpud answers at " + path + ": " + std::strerror(why),
            "start it: ivgpud --config FILE; --runtime-dir names another folder"};
  const std::string version = first_match(reported.substr(0, 4096), R"re("version":"([^"\\]{1,40})")re");
  if (version.empty())
    return {"broker", State::Wrong, "what answers at " + path + " is no ivgpud", "end it, then start ivgpud"};
  if (version != IVGPU_VERSION)
    return {"broker", State::Warning, "ivgpud has release " + version + ", this is " IVGPU_VERSION,
            "what only the newer one knows is refused; install broker, workers and guest libraries of one release"};
  return {"broker", State::Ok, "ivgpud " + version + " answers at " + path, ""};
}

}  // namespace

Findings check_host(const Machine& machine, const HostOptions& options) {
  const std::vector<Gpu> found = host::broker::gpus_of_machine(machine.at(""));
  Findings all = {driver(machine),
                  driver_library(machine),
                  device_files(machine, found),
                  gpus(found),
                  pageable_memory(machine),
                  listed_ioctls(machine),
                  kvm(machine),
                  memlock(machine),
                  huge_pages(machine),
                  numa(machine),
                  mps(machine, options.runtime_dir)};
  const Findings layers = jail(machine);
  all.insert(all.end(), layers.begin(), layers.end());
  int why = 0;
  const std::string path = options.runtime_dir + "/ivgpud.status", reported = ask_broker(machine.at(path), why);
  all.push_back(groups(machine, reported));
  all.push_back(broker(path, reported, why));
  return all;
}

}  // namespace check
