// Checks a guest: the device and its access rights, a region of this version, a live broker, a fast mapping, and the
// libraries.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "guest/region/doorbell.h"
#include "guest/region/release.h"
#include "ring/api/known_ids.h"
#include "ring/layout/region_view.h"
#include "ring/view.h"
#include "tools/check/cache.h"
#include "tools/check/devdax.h"
#include "tools/check/machine.h"
#include "tools/check/module.h"
#include "tools/check/region.h"

namespace check {
namespace {

std::string rule(const Machine& m) { return install_rule(m, "60-ivgpu.rules", "pci"); }

Finding device(const std::vector<std::string>& devices) {
  if (devices.empty())
    return {"device", State::Wrong, "this machine has no ivshmem device (PCI 1af4:1110)",
            "give the VM one and start ivgpud before the VM: qemu-config/README.md"};
  return {"device", State::Ok, "ivshmem device " + devices.front().substr(devices.front().rfind('/') + 1), ""};
}

Finding permission(const Machine& m, const std::string& device) {
  for (const char* file : {"/resource0", "/resource2"}) {
    if (!m.has(device + file))
      return {"permission", State::Wrong, device + file + " is missing", "this is no ivshmem device that QEMU made"};
    if (!m.may_use(device + file))
      return {"permission", State::Wrong, "this user may not open " + device + file,
              m.a_group_may_use(device + file) ? join_group : rule(m)};
  }
  if (!m.is_root() && m.number(device + "/enable").value_or(0) == 0)
    return {"permission", State::Wrong, "the device is switched off, and only root can switch it on", rule(m)};
  return {"permission", State::Ok, "the device may be mapped by this user", ""};
}

Finding lockdown(const Machine& m) {
  const std::string mode = m.text("/sys/kernel/security/lockdown").value_or("");
  if (mode.find("[integrity]") == std::string::npos && mode.find("[confidentiality]") == std::string::npos)
    return {"lockdown", State::Ok, "the kernel lets programs map devices", ""};
  return {"lockdown", State::Wrong, "the kernel's lockdown forbids to map the device",
          "switch Secure Boot off in the VM"};
}

// The call ids that a worker knows, read from the first filled slot. Without a filled slot, or if the worker published
// no ids: the ids of workers that publish none.
api::KnownIds known_to_workers(const Mapping& whole) {
  const ring::RegionHeader h = whole.header().copy_out();
  for (std::uint64_t at = h.first_slot; at < whole.size() && h.slot_bytes >= ring::min_slot_bytes; at += h.slot_bytes) {
    if (whole.size() - at < ring::min_slot_bytes) break;
    const ring::SlotHeader slot = ring::SlotView(whole.bytes() + at, ring::min_slot_bytes).header().copy_out();
    if (slot.magic == ring::slot_magic && slot.driver_calls != 0) return {slot.driver_calls, slot.session_calls};
  }
  return api::silent_workers_ids;
}

// Compares the releases of host and guest as the library does (docs/wire-format.md, Versions).
Finding release(const std::string& resource, std::uint64_t bytes) {
  const Mapping whole(resource, bytes);
  if (!whole.there())
    return {"release", State::Warning, "the region cannot be mapped as a whole, so no worker was asked what it knows",
            "run as root"};
  char host[sizeof ring::RegionHeader::release];
  guest::copy_release(whole.header().copy_out().release, host);
  const api::KnownIds known = known_to_workers(whole);
  const std::string both = std::string("host ") + host + ", here " IVGPU_VERSION;
  if (known.driver >= api::known_ids.driver && known.session >= api::known_ids.session)
    return {"release", State::Ok, both, ""};
  return {"release", State::Warning, both + ": the host knows fewer calls, and those are refused",
          "install ivgpu " IVGPU_VERSION " on the host"};
}

// Rings the broker as the library does.
void ring_broker(ring::Shared<ring::RegionHeader> header, const Mapping& registers) {
  if (header[&ring::RegionHeader::no_doorbell].load(std::memory_order_relaxed) != 0)
    guest::ring_by_header(header, ring::peer_broker);
  else
    guest::ring_by_register(reinterpret_cast<volatile std::uint32_t*>(registers.bytes()), ring::peer_broker);
}

Finding broker(const Mapping& mapping, const Mapping& registers) {
  if (!registers.there())
    return {"broker", State::Wrong, "the device's registers cannot be mapped (BAR0)", "run as root"};
  return check_broker(mapping, [&] { ring_broker(mapping.header(), registers); });
}

std::vector<std::string> library_folders(const Machine& m) {
  std::vector<std::string> folders;
  const char* set = m.real() ? std::getenv("LD_LIBRARY_PATH") : nullptr;
  std::istringstream parts(set != nullptr ? set : "");
  for (std::string part; std::getline(parts, part, ':');)
    if (!part.empty()) folders.push_back(part);
  for (const std::string& name : m.names("/etc/ld.so.conf.d")) {
    std::istringstream lines(m.text("/etc/ld.so.conf.d/" + name).value_or(""));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("/")) folders.push_back(line);
  }
  folders.insert(folders.end(), {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib"});
  return folders;
}

// Both guest libraries read the variable IVGPU_REGION, and none of NVIDIA's libraries does.
bool is_ours(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  std::string all(16 << 20, '\0');
  std::size_t length = 0;
  for (ssize_t n = 1; fd >= 0 && n > 0 && length < all.size(); length += static_cast<std::size_t>(n > 0 ? n : 0))
    n = read(fd, all.data() + length, all.size() - length);
  if (fd >= 0) close(fd);
  return std::string_view(all.data(), length).find("IVGPU_REGION") != std::string_view::npos;
}

struct GuestLibrary {
  const char* about;
  const char* name;
  State without;     // if programs do not find the library
  const char* loss;  // the consequence for programs if the library is missing
};

// CUDA programs run without NVML, so its absence is a warning.
constexpr GuestLibrary guest_libraries[] = {
    {"library", "libcuda.so.1", State::Wrong, ""},
    {"nvml", "libnvidia-ml.so.1", State::Warning, ": programs that ask NVML, such as nvidia-smi and NCCL's, fail"}};

Finding find_library(const Machine& m, const std::vector<std::string>& folders, const GuestLibrary& wanted) {
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + wanted.name;
    if (!m.has(path)) continue;
    if (is_ours(m.at(path))) return {wanted.about, State::Ok, path + " is the guest library", ""};
    return {wanted.about, wanted.without, path + " is found first, and is not the guest library" + wanted.loss,
            "remove NVIDIA's driver from the guest, or set LD_LIBRARY_PATH"};
  }
  return {wanted.about, wanted.without, std::string("no ") + wanted.name + " is in the loader's folders" + wanted.loss,
          "install the package ivgpu-guest, or unpack ivgpu-guest.tar.gz and run ldconfig, or set LD_LIBRARY_PATH"};
}

void add_libraries(const Machine& m, Findings& all) {
  const std::vector<std::string> folders = library_folders(m);
  for (const GuestLibrary& wanted : guest_libraries) all.push_back(find_library(m, folders, wanted));
}

// QEMU omits memory barriers (before version 8) and locked operations for a VM that can never have a second processor
// (docs/design/040-kvm-in-emulation.md). /proc/cpuinfo identifies QEMU's emulated processor.
void add_processor(const Machine& m, Findings& all) {
  const bool is_emulated = m.text("/proc/cpuinfo").value_or("").find("QEMU TCG CPU") != std::string::npos;
  if (!is_emulated || m.text("/sys/devices/system/cpu/possible") != "0\n") return;
  all.push_back(
      {"processor", State::Warning,
       "the only one, and emulated (TCG): memory barriers or locked operations are left out, and a call may hang",
       "give the VM -smp 2, or -smp 1,sockets=2,maxcpus=2, with thread=multi, or KVM"});
}

// A disabled device reads as all ones. The library enables it as well.
void enable(const Machine& machine, const std::string& device) {
  if (!machine.real() || machine.number(device + "/enable") != 0) return;
  const int fd = open(machine.at(device + "/enable").c_str(), O_WRONLY | O_CLOEXEC);
  if (fd >= 0) [[maybe_unused]]
    const ssize_t n = write(fd, "1", 1);
  if (fd >= 0) close(fd);
}

// Checks the device through its sysfs files, for a guest without the kernel module.
Findings check_sysfs(const Machine& machine, const std::string& device) {
  Findings all = {{"module", State::Warning,
                   "the kernel module is not there: the processes of this VM can read each other's GPU data, waits use "
                   "timed sleeps "
                   "(20 us to 1 ms), and what a killed program held comes back when the next one starts",
                   "install the package ivgpu-dkms, or load ivgpu.ko (docs/guest-module.md), or live with that"}};
  all.push_back(lockdown(machine));
  all.push_back(permission(machine, device));
  if (all.back().state != State::Ok) return all;
  enable(machine, device);
  const std::string memory = machine.at(device + "/resource2");
  const Mapping mapping(memory, ring::region_header_bytes);
  all.push_back(check_region(mapping));
  if (all.back().state == State::Ok) {
    all.push_back(release(memory, mapping.size()));
    all.push_back(broker(mapping, Mapping(machine.at(device + "/resource0"), guest::registers_bytes)));
  }
  if (mapping.there()) all.push_back(check_cache(machine, mapping.bytes()));
  return all;
}

}  // namespace

Findings check_guest(const Machine& machine) {
  const auto devices = ivshmem_devices(machine);
  if (const auto memories = devdax_devices(machine); devices.empty() && !memories.empty()) {
    Findings all = check_devdax(machine, memories);
    add_processor(machine, all);
    add_libraries(machine, all);
    return all;
  }
  Findings all = {device(devices)};
  if (!devices.empty()) {
    const Findings more =
        module_is_there(machine, devices) ? check_module(machine) : check_sysfs(machine, devices.front());
    all.insert(all.end(), more.begin(), more.end());
  }
  add_processor(machine, all);
  add_libraries(machine, all);
  return all;
}

}  // namespace check
