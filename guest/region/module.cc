// The region in a VM with the kernel module: an open descriptor of /dev/ivgpuN. This process maps the header area
// read-only, and the slot that it has claimed (ring/layout/module_c.h).
#include "guest/region/module.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "guest/base/log.h"
#include "guest/region/access.h"
#include "guest/region/map_shared.h"
#include "guest/region/module_info.h"
#include "guest/region/region.h"
#include "guest/region/sysfs.h"
#include "ring/abi/descriptor.h"
#include "ring/layout/module_c.h"
#include "ring/layout/release.h"

namespace guest {
namespace {

class ByModule final : public Region, public Module {
 public:
  ByModule(int fd, Ioctl ioctl, const IvgpuModuleInfo& info) : fd_(fd), ioctl_(std::move(ioctl)), info_(info) {}
  ~ByModule() override { forget(); }

  std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) override {
    const bool front = offset < ring::header_area_bytes;
    return map_shared(fd_, offset, bytes, address, front ? PROT_READ : PROT_READ | PROT_WRITE);
  }
  // The module rings only the broker and the worker of this process's slot.
  void ring(std::uint32_t peer) override {
    ask(IVGPU_IOC_RING, peer == ring::peer_broker ? IVGPU_RING_BROKER : IVGPU_RING_WORKER);
  }
  // The module counts the question in the header, since this process cannot write the header.
  bool ask_about_gpus(const ring::RegionView&) override { return ask(IVGPU_IOC_RING, IVGPU_RING_GPUS) == 0; }
  std::uint64_t size() const override { return info_.region_bytes; }
  std::uint32_t peer() const override { return info_.peer; }
  Broker broker() override {
    IvgpuModuleInfo now{};
    return ask(IVGPU_IOC_INFO, &now) != 0 && errno == ENODEV ? Broker::Gone : Broker::Unknown;
  }
  const char* gone_in_words() const override { return "the ivshmem device was taken away"; }
  bool same_kernel() const override { return false; }
  Module* module() override { return this; }
  void forget() override {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  std::optional<Claim> claim(const char* program) override {
    IvgpuModuleClaim claim{};
    std::strncpy(claim.name, program, sizeof claim.name - 1);
    if (ask(IVGPU_IOC_CLAIM, &claim) == 0 && claim.slot < ring::max_slots)
      return Claim{claim.slot, ring::SlotWord::of(claim.word)};
    if (errno != ETIMEDOUT && errno != EINTR)
      log(Level::Info, "the kernel module gives no slot: %s", std::strerror(errno));
    return std::nullopt;
  }
  void release() override { ask(IVGPU_IOC_RELEASE, nullptr); }

  bool wakes(std::uint32_t slot, std::uint32_t guest_vectors) const override {
    return wakes_slot(info_, slot, guest_vectors);
  }
  Slept sleep(std::uint64_t offset, std::uint32_t expected, std::uint64_t nanoseconds) override {
    IvgpuModuleWait wait{.offset = offset, .timeout_ns = nanoseconds, .expected = expected, .reserved = 0};
    if (ask(IVGPU_IOC_WAIT, &wait) == 0 || errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR) return Slept::Ended;
    return errno == ENODEV ? Slept::Gone : Slept::Refused;
  }

 private:
  int ask(unsigned long request, std::uintptr_t argument) const { return ioctl_(fd_, request, argument); }
  int ask(unsigned long request, void* argument) const {
    return ask(request, reinterpret_cast<std::uintptr_t>(argument));
  }

  int fd_;
  const Ioctl ioctl_;
  const IvgpuModuleInfo info_;
};

// Returns the numbers of the nodes ivgpuN, in ascending order.
std::vector<unsigned> nodes_in(const char* folder) {
  std::vector<unsigned> numbers;
  for (const std::string& name : names_in(folder)) {
    unsigned number = 0;
    int end = 0;
    if (std::sscanf(name.c_str(), "ivgpu%3u%n", &number, &end) == 1 && name[static_cast<std::size_t>(end)] == '\0')
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string cannot_open(const std::string& node, int error) {
  const bool refused = error == EACCES || error == EPERM;
  return "cannot open " + node + ": " + std::strerror(error) + access_in_words(node.c_str()) + "; " +
         (refused ? "add the user to the group video (as root: adduser USER video) and log in anew, with "
                    "60-ivgpu-module.rules "
                    "in place (docs/guest.md, As another user), or run the program as root"
                  : "`ivgpu-check` says what is wrong with this guest");
}

// Opens the node's region. Leaves `why` unchanged if there is no device behind the node.
std::unique_ptr<Region> open_node(const std::string& node, std::string& why, const Ioctl& ioctl) {
  const int fd = cuabi::open_file(node.c_str(), O_RDWR);
  if (fd < 0) {
    if (errno != ENOENT && errno != ENXIO && errno != ENODEV) why = cannot_open(node, errno);
    return nullptr;
  }
  IvgpuModuleInfo info{};
  std::string refusal;
  if (const bool answered = ioctl(fd, IVGPU_IOC_INFO, reinterpret_cast<std::uintptr_t>(&info)) == 0;
      !answered && errno == ENODEV) {
    close(fd);
    return nullptr;
  } else if (!answered)
    refusal = not_ours(node, errno);
  else
    refusal = misfit(node, info);
  if (!refusal.empty()) {
    close(fd);
    why = refusal;
    return nullptr;
  }
  auto region = std::make_unique<ByModule>(fd, ioctl, info);
  const auto checked = check_region(*region);
  if (!checked) {
    why = no_usable_region(node);
    return nullptr;
  }
  checked->unmap();
  log(Level::Info, "%s has the region: kernel module %s, %u of the device's %u interrupts", node.c_str(),
      release_of(info).c_str(), info.vectors, info.device_vectors);
  return region;
}

}  // namespace

int ioctl_of_kernel(int fd, unsigned long request, std::uintptr_t argument) { return ::ioctl(fd, request, argument); }

std::unique_ptr<Region> open_module(const char* nodes, std::string& why, Ioctl ioctl) {
  why.clear();
  for (const unsigned number : nodes_in(nodes)) {
    std::string refusal;
    const std::string node = std::string(nodes) + "/ivgpu" + std::to_string(number);
    if (auto region = open_node(node, refusal, ioctl)) return region;
    if (!refusal.empty()) log(Level::Info, "%s", refusal.c_str());
    if (why.empty()) why = refusal;
  }
  return nullptr;
}

}  // namespace guest
