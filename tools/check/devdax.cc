#include "tools/check/devdax.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "guest/region/doorbell.h"
#include "guest/region/vsock.h"
#include "ring/layout/doorbell_channel.h"
#include "tools/check/region.h"

namespace check {
namespace {

constexpr const char* folder = "/sys/bus/dax/devices";

// Tests vsock as the guest library uses it.
Finding vsock(const Machine& machine, std::uint32_t port) {
  constexpr const char* remedy = "programs take a port of virtio-serial instead; qemu-config/pmem.md sets vsock up";
  if (!machine.has("/dev/vsock"))
    return {"vsock", State::Warning, "ivgpud listens at vsock port " + std::to_string(port) + ", and there is no vsock",
            "modprobe vmw_vsock_virtio_transport, and give the VM a vhost-vsock device (qemu-config/pmem.md)"};
  std::string why;
  const int fd = guest::open_vsock(port, guest::dial_host, why);
  if (fd < 0) return {"vsock", State::Warning, why, remedy};
  close(fd);
  return {
      "vsock", State::Ok,
      "port " + std::to_string(port) + " of the host: each program is woken, and what it held comes back when it ends",
      ""};
}

Finding doorbells(const Machine& machine) {
  if (const unsigned count = doorbell_channels(machine); count > 0)
    return {"doorbells", State::Ok, std::to_string(count) + " doorbell channels: as many programs are woken at a time",
            ""};
  return {"doorbells", State::Warning,
          "no doorbell channel: waits use timed sleeps (20 us to 1 ms), and the host hears of a call after idle within "
          "20 ms",
          "give the VM ports of virtio-serial (qemu-config/pmem.md), and load virtio_console, or live with that"};
}

Findings look_behind(const Machine& machine, const std::string& node, int fd, std::uint64_t size) {
  const Mapping mapping(fd, ring::region_header_bytes, size, PROT_READ | PROT_WRITE);
  Findings all = {check_region(mapping, "devdax")};
  if (all.back().state == State::Ok) {
    const std::uint32_t port = mapping.header()[&ring::RegionHeader::doorbell_port].load(std::memory_order_relaxed);
    if (port != 0) all.push_back(vsock(machine, port));
    const bool connected = port != 0 && all.back().state == State::Ok;
    if (!connected) all.push_back(doorbells(machine));
    all.push_back(check_broker(mapping, [&] { guest::ring_by_header(mapping.header(), ring::peer_broker); }));
    all.push_back({"module", State::Warning,
                   node + " is whole to each program: the processes of this VM can read each other's GPU data" +
                       (connected ? "" : ", and what a killed program held comes back when the next one starts"),
                   "the kernel module needs an ivshmem device: give the VM one, or live with that"});
  }
  return all;
}

Findings check_one(const Machine& machine, const std::string& name) {
  const std::string node = "/dev/" + name, device = std::string(folder) + "/" + name;
  if (!machine.may_use(node))
    return {
        {"permission", State::Wrong, "this user may not open " + node, "run as root, or let a group have the node"}};
  if (const auto align = machine.number(device + "/align").value_or(0); align > 4096)
    return {{"region", State::Wrong, node + " maps pieces of " + std::to_string(align) + " bytes only",
             "let ivgpud describe the memory, or: ndctl create-namespace -f -e namespaceN.M -m devdax -M mem -a 4k"}};
  const int fd = open(machine.at(node).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return {{"region", State::Wrong, node + ": " + std::strerror(errno), "see the kernel's log (dmesg)"}};
  const Findings all =
      look_behind(machine, node, fd, static_cast<std::uint64_t>(machine.number(device + "/size").value_or(0)));
  close(fd);
  return all;
}

}  // namespace

unsigned doorbell_channels(const Machine& machine) {
  const std::string ports = "/sys/class/virtio-ports";
  unsigned count = 0;
  for (const std::string& port : machine.names(ports))
    count += machine.text(ports + "/" + port + "/name").value_or("").starts_with(ring::doorbell_port) ? 1 : 0;
  return count;
}

std::vector<std::string> devdax_devices(const Machine& machine) { return machine.names(folder); }

Findings check_devdax(const Machine& machine, const std::vector<std::string>& devices) {
  Findings first;
  for (const std::string& name : devices) {
    Findings all = {{"device", State::Ok, "devdax device " + name, ""}};
    for (Finding& finding : check_one(machine, name)) all.push_back(std::move(finding));
    if (all[1].state == State::Ok) return all;
    if (first.empty()) first = std::move(all);
  }
  return first;
}

}  // namespace check
