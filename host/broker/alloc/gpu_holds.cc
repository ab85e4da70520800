#include "host/broker/alloc/gpu_holds.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace host::broker {
namespace {

struct Name {
  sockaddr_un address{};
  socklen_t length;

  // A leading NUL makes an abstract socket, which is in no folder.
  explicit Name(const std::string& uuid) {
    const std::string text = std::string(1, '\0') + "ivgpud-gpu/" + uuid;
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, text.data(), std::min(text.size(), sizeof address.sun_path));
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::min(text.size(), sizeof address.sun_path));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// "process 4711"
std::string holder_of(const Name& name) {
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred who{};
  socklen_t length = sizeof who;
  const bool answered = connect(probe.get(), name.get(), name.length) == 0 &&
                        getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) == 0;
  return answered ? fmt::format("process {}", who.pid) : "another process";
}

}  // namespace

Result<void> GpuHolds::take(const std::vector<Gpu>& gpus) {
  std::map<std::string, Fd> taken;
  for (const Gpu& gpu : gpus) {
    const bool is_simulated = !gpu.pci.empty() && gpu.node.empty() && !gpu.node_missing;
    if (gpu.uuid.empty() || is_simulated || held_.contains(gpu.uuid) || taken.contains(gpu.uuid)) continue;
    const Name name(gpu.uuid);
    Fd hold(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const bool held = hold && bind(hold.get(), name.get(), name.length) == 0 && listen(hold.get(), 1) == 0;
    if (!held)
      return Error{
          errno == EADDRINUSE
              ? fmt::format(
                    "{}: {} gives it out by leases, quotas or MPS already, and two brokers would not know of each "
                    "other: end that one, name other GPUs by the key gpus, or, without quotas, set policy = "
                    "\"time-slice\" in [gpu]",
                    in_words(gpu), holder_of(name))
              : fmt::format("{}: its name cannot be held: {}", in_words(gpu), std::strerror(errno))};
    taken[gpu.uuid] = std::move(hold);
  }
  held_.merge(taken);
  return {};
}

Result<void> GpuHolds::take_for(const Config& config, const std::vector<VmGpus>& gpus) {
  const bool quotas =
      std::any_of(config.vms.begin(), config.vms.end(), [](const auto& vm) { return vm.gpu_memory != 0; });
  if (!quotas && config.gpu.policy == "time-slice") return {};
  for (const VmGpus& of_vm : gpus)
    if (const auto taken = take(of_vm.list); !taken) return taken.error();
  return {};
}

}  // namespace host::broker
