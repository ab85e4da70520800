#include "host/broker/start_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "host/base/fd.h"
#include "host/base/process/listener.h"
#include "host/base/vsock.h"
#include "host/broker/config/worker_users.h"
#include "host/broker/mps/mps_setting.h"
#include "host/broker/ops/status.h"
#include "host/broker/ops/trace_server.h"
#include "host/broker/region/plain_file_space.h"
#include "host/broker/region/plain_memory.h"
#include "host/broker/region/region.h"
#include "host/broker/transport/transport.h"
#include "host/broker/worker/cgroup.h"

namespace host::broker {
namespace {

namespace fs = std::filesystem;

bool may_write(const fs::path& folder) {
  return fs::is_directory(folder) && faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

// True if a broker already serves this folder: the memory that it uses would be free for its successor.
bool is_served(const std::string& runtime_dir) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = status_path(runtime_dir);
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, path.size());
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EACCES;
}

// Runs all checks and collects their findings.
class Look {
 public:
  Look(const Config& config, std::string huge_pages) : config_(config), pools_(std::move(huge_pages)) {}

  StartCheck all() {
    users();
    control_groups();
    runtime_dir();
    for (const VmOptions& vm : config_.vms) look_at(vm);
    trace_socket();
    metrics_socket();
    sum_of_regions();
    if (config_.gpu.policy == "mps") found_.notes.push_back(mps_in_words());
    if (is_served(config_.broker.runtime_dir))
      found_.notes.push_back(fmt::format(
          "an ivgpud serves {} already, so what is free of memory in huge pages and in file systems was not "
          "looked at",
          config_.broker.runtime_dir));
    else
      room();
    return std::move(found_);
  }

 private:
  void wrong(std::string sentence) { found_.wrong.push_back(std::move(sentence)); }

  void users() {
    if (const auto may = may_give_users(config_.broker); !may) wrong(may.error().message);
  }

  void control_groups() {
    if (config_.broker.cgroups == "off") return;
    const std::string missing = groups_missing_here();
    if (!missing.empty() && config_.broker.cgroups == "required") return wrong("VMs get no control groups: " + missing);
    if (!missing.empty())
      found_.notes.push_back("VMs get no control groups: " + missing + "; memory_max and cpu_max would bind no worker");
    else if (config_.broker.cgroups == "required")
      found_.notes.push_back("whether ivgpud's own control group is delegated to it (Delegate=yes) shows at its start");
  }

  void runtime_dir() {
    const std::string& path = config_.broker.runtime_dir;
    fs::path there = fs::path(path).lexically_normal();
    std::error_code failed;
    while (!fs::exists(there, failed) && there.has_relative_path()) there = there.parent_path();
    if (!may_write(there))
      wrong(fmt::format("[broker] runtime_dir = \"{}\" cannot be made or written to by this user", path));
    for (const std::string& socket : {status_path(path), trace_path(path)})
      if (const auto fits = socket_path_fits(socket); !fits) wrong(fits.error().message);
  }

  void metrics_socket() {
    const std::string& path = config_.broker.metrics;
    if (!path.starts_with('/')) return;
    if (const auto fits = socket_path_fits(path); !fits) wrong(fits.error().message);
    const fs::path folder = fs::path(path).parent_path();
    if (folder != fs::path(config_.broker.runtime_dir) && !may_write(folder))
      wrong(fmt::format("[broker] metrics = \"{}\" cannot be made by this user", path));
  }

  void trace_socket() {
    const BrokerOptions& broker = config_.broker;
    if (const auto may = may_give({0, broker.trace_owner, broker.trace_group}); !may)
      wrong("[broker] trace_" + may.error().message);
    if (const auto may = may_give({0, broker.socket_owner, broker.socket_group}); !may)
      wrong("[broker] socket_" + may.error().message);
  }

  void look_at(const VmOptions& vm) {
    if (const auto fits = region_fits_machine(vm); !fits) wrong(fits.error().message);
    if (opened_by_path(vm)) {
      if (!vm.plain_file.empty())
        if (const auto may = may_make_plain_file(vm.plain_file, access_of(vm)); !may)
          wrong(fmt::format("VM {}: plain_file = \"{}\" cannot be made: {}", vm.name, vm.plain_file,
                            may.error().message));
      if (vm.transport == "plain") return;
      if (std::string missing; vm.vsock_port != 0 && !(missing = vsock_missing()).empty())
        wrong(fmt::format("VM {}: vsock_port = {}: {}", vm.name, vm.vsock_port, missing));
    }
    if (const auto fits = socket_path_fits(socket_path(config_.broker.runtime_dir, vm.name)); !fits)
      wrong(fits.error().message);
    if (vm.socket_owner == config_.broker.socket_owner && vm.socket_group == config_.broker.socket_group) return;
    if (const auto may = may_give(access_of(vm)); !may)
      wrong(fmt::format("[vm.{}] socket_{}", vm.name, may.error().message));
  }

  void sum_of_regions() {
    std::uint64_t sum = 0;
    for (const VmOptions& vm : config_.vms) sum += static_cast<std::uint64_t>(vm.region_size);
    if (sum <= memory_of_machine()) return;
    found_.notes.push_back(fmt::format(
        "the regions of all VMs have {} MiB together, and this machine has {} MiB of memory: they cannot all "
        "be filled at the same time",
        sum >> 20, memory_of_machine() >> 20));
  }

  void room() {
    if (const auto fit = plain_files_fit(config_.vms); !fit) wrong(fit.error().message);
    std::map<std::uint64_t, std::uint64_t> needed;  // by page size
    for (const VmOptions& vm : config_.vms)
      if (const std::uint64_t page = huge_page_of(vm); page != 0) needed[page] += (memory_bytes(vm) + page - 1) / page;
    for (const auto& [page, pages] : needed) {
      const std::uint64_t free = free_pages(page);
      if (pages <= free) continue;
      wrong(fmt::format(
          "the VMs with huge pages need {} pages of {} KiB, and {} are free; more go into /proc/sys/vm/nr_hugepages",
          pages, page >> 10, free));
    }
  }

  // 0: the VM's region uses no huge pages.
  static std::uint64_t huge_page_of(const VmOptions& vm) {
    if (vm.huge_pages) return ring::huge_page;
    struct statfs system {};
    const fs::path folder = fs::path(vm.plain_file).parent_path();
    if (vm.plain_file.empty() || statfs(folder.c_str(), &system) != 0 || system.f_type != HUGETLBFS_MAGIC) return 0;
    return static_cast<std::uint64_t>(system.f_bsize);
  }

  // Pages neither used nor reserved, plus those that the kernel may still make.
  std::uint64_t free_pages(std::uint64_t page) const {
    const auto number = [&](const char* name) {
      std::uint64_t value = 0;
      std::ifstream(fmt::format("{}/hugepages-{}kB/{}_hugepages", pools_, page >> 10, name)) >> value;
      return value;
    };
    const std::uint64_t there = number("free") + number("nr_overcommit"), taken = number("resv") + number("surplus");
    return there - std::min(there, taken);
  }

  const Config& config_;
  const std::string pools_;
  StartCheck found_;
};

}  // namespace

StartCheck check_start(const Config& config, const std::string& huge_pages) { return Look(config, huge_pages).all(); }

}  // namespace host::broker
