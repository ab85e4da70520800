#include "tools/check/module.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "guest/region/module_info.h"
#include "guest/region/release.h"
#include "tools/check/cache.h"
#include "tools/check/region.h"

namespace check {
namespace {

// The first node in the library's order; "" if there is none.
std::string first_node(const Machine& machine) {
  for (const std::string& name : machine.names("/dev"))
    if (name.starts_with("ivgpu") && name.size() > 5 && name.find_first_not_of("0123456789", 5) == std::string::npos)
      return "/dev/" + name;
  return "";
}

// Only a claimed slot shows which calls the workers know. The library itself logs calls that the workers do not know.
Finding release(const Mapping& header) {
  char host[sizeof ring::RegionHeader::release];
  guest::copy_release(header.header().copy_out().release, host);
  const std::string both = std::string("host ") + host + ", here " IVGPU_VERSION;
  if (std::string(host) == IVGPU_VERSION) return {"release", State::Ok, both, ""};
  return {"release", State::Warning, both + ": the host may know fewer calls, and those are refused",
          "install ivgpu of one release on both"};
}

Findings check_open_node(const Machine& machine, const std::string& node, int fd) {
  IvgpuModuleInfo info{};
  if (ioctl(fd, IVGPU_IOC_INFO, &info) != 0) return {{"module", State::Wrong, guest::not_ours(node, errno), ""}};
  if (const std::string why = guest::misfit(node, info); !why.empty()) return {{"module", State::Wrong, why, ""}};
  const Mapping header(fd, ring::region_header_bytes, info.region_bytes);
  Findings all = {check_region(header)};
  if (all.back().state == State::Ok) {
    const ring::RegionHeader h = header.header().copy_out();
    const Wakers wakers{std::min(h.slot_count, ring::max_slots), h.guest_vectors, h.no_doorbell != 0};
    all.insert(all.begin(), judge_wakes(node, info, wakers));
    all.push_back(release(header));
    all.push_back(check_broker(header, [fd] { ioctl(fd, IVGPU_IOC_RING, IVGPU_RING_BROKER); }));
  }
  if (header.there()) all.push_back(check_cache(machine, header.bytes()));
  return all;
}

}  // namespace

bool module_is_there(const Machine& machine, const std::vector<std::string>& devices) {
  return !first_node(machine).empty() || std::any_of(devices.begin(), devices.end(), [&](const std::string& device) {
    return machine.target(device + "/driver").ends_with("/ivgpu");
  });
}

Finding judge_wakes(const std::string& node, const IvgpuModuleInfo& info, const Wakers& wakers) {
  const std::uint32_t slots = wakers.slots;
  std::uint32_t woken = 0;
  for (std::uint32_t slot = 0; slot < slots; ++slot)
    woken += guest::wakes_slot(info, slot, wakers.guest_vectors) ? 1 : 0;
  const std::string apart = node + " of kernel module " + guest::release_of(info) + ": processes are apart";
  const std::string sleeps = apart + ", but waits use timed sleeps (20 us to 1 ms)";
  if (slots > 0 && woken == slots) return {"module", State::Ok, apart + ", and their waits are woken", ""};
  if (wakers.no_doorbell)
    return {"module", State::Warning,
            sleeps +
                ", and the host hears of a call after idle within 20 ms: an ivshmem-plain device has no interrupts "
                "and no doorbell",
            "give the VM an ivshmem-doorbell device (qemu-config/doorbell.md), or live with that"};
  if (wakers.guest_vectors == 0)
    return {"module", State::Warning, sleeps + ": the broker raises no interrupts for this VM", "update ivgpud"};
  if ((info.flags & IVGPU_MODULE_WAKES) == 0)
    return {"module", State::Warning, sleeps + ": the module has no interrupts of the device",
            "the kernel's log says why (dmesg)"};
  return {"module", State::Warning,
          apart + ", but waits in " + std::to_string(slots - woken) + " of " + std::to_string(slots) +
              " slots use timed sleeps: the broker raises " + std::to_string(wakers.guest_vectors) +
              " interrupts, QEMU's device has " + std::to_string(info.device_vectors),
          "give QEMU's device and the VM's configuration the same vectors"};
}

Findings check_module(const Machine& machine) {
  const std::string node = first_node(machine);
  if (node.empty())
    return {{"module", State::Wrong, "the kernel module has the device, and here is no node /dev/ivgpuN",
             "give this container /dev/ivgpu0, or see that udev makes it"}};
  if (!machine.may_use(node))
    return {{"permission", State::Wrong, "this user may not open " + node,
             machine.a_group_may_use(node) ? join_group : install_rule(machine, "60-ivgpu-module.rules", "ivgpu")}};
  const int fd = open(machine.at(node).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return {{"module", State::Wrong, node + ": " + std::strerror(errno), "see the kernel's log (dmesg)"}};
  const Findings all = check_open_node(machine, node, fd);
  close(fd);
  return all;
}

}  // namespace check
