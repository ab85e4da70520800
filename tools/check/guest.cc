// The needs of a guest: the device, the right to map it, a region of this version behind it and a broker that lives,
// mapped in a way that is fast, and the library.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <sstream>

#include "guest/region/bell.h"
#include "guest/region/release.h"
#include "ring/api/known_ids.h"
#include "ring/region_view.h"
#include "ring/view.h"
#include "tools/check/cache.h"
#include "tools/check/machine.h"

namespace check {
namespace {

constexpr const char* rule =
    "as root: cp /usr/local/share/ivgpu/guest/60-ivgpu.rules /etc/udev/rules.d/, then udevadm trigger -s pci; or run "
    "as root";
constexpr const char* group = "as root: adduser the user to the group video, and log in anew; or run as root";

// The first bytes of one of the device's BARs, mapped as the library maps them; null where that is refused.
class Mapping {
 public:
  Mapping(const std::string& file, std::size_t bytes) : mapped_(bytes) {
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0) size_ = static_cast<std::uint64_t>(status.st_size);
    if (size_ >= mapped_) at_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
  }
  ~Mapping() {
    if (at_ != MAP_FAILED) munmap(at_, mapped_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool there() const { return at_ != MAP_FAILED; }
  std::uint64_t size() const { return size_; }  // of all of it
  std::byte* bytes() const { return static_cast<std::byte*>(at_); }
  ring::Shared<ring::RegionHeader> header() const { return ring::RegionView(bytes()).header(); }

 private:
  std::size_t mapped_;
  std::uint64_t size_ = 0;
  void* at_ = MAP_FAILED;
};

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
              m.a_group_may_use(device + file) ? group : rule};
  }
  if (!m.is_root() && m.number(device + "/enable").value_or(0) == 0)
    return {"permission", State::Wrong, "the device is switched off, and only root can switch it on", rule};
  return {"permission", State::Ok, "the device may be mapped by this user", ""};
}

Finding lockdown(const Machine& m) {
  const std::string mode = m.text("/sys/kernel/security/lockdown").value_or("");
  if (mode.find("[integrity]") == std::string::npos && mode.find("[confidentiality]") == std::string::npos)
    return {"lockdown", State::Ok, "the kernel lets programs map devices", ""};
  return {"lockdown", State::Wrong, "the kernel's lockdown forbids to map the device",
          "switch Secure Boot off in the VM"};
}

Finding region(const Mapping& mapping) {
  if (!mapping.there())
    return {"region", State::Wrong,
            "the device's memory cannot be mapped (BAR2 of " + std::to_string(mapping.size()) + " bytes)",
            "run as root; with lockdown, or a BAR that the firmware found no room for, see qemu-config/README.md"};
  const std::uint64_t magic = mapping.header()[&ring::RegionHeader::magic].load(std::memory_order_acquire);
  const ring::RegionHeader h = mapping.header().copy_out();
  if (magic != ring::region_magic)
    return {"region", State::Wrong, "the device's memory was not made by ivgpud",
            "name ivgpud's socket or memory to QEMU, and start ivgpud before the VM"};
  if (h.version != ring::layout_version)
    return {"region", State::Wrong,
            "the host's layout has version " + std::to_string(h.version) + ", this guest's " +
                std::to_string(ring::layout_version),
            "install broker and guest library of one version"};
  if (h.region_bytes != mapping.size())
    return {
        "region", State::Wrong,
        "ivgpud made " + std::to_string(h.region_bytes) + " bytes, the device shows " + std::to_string(mapping.size()),
        "give QEMU's memory-backend-file the size of region_size"};
  return {"region", State::Ok,
          std::to_string(h.region_bytes >> 20) + " MiB in " + std::to_string(h.slot_count) + " slots, " +
              (h.no_doorbell != 0 ? "ivshmem-plain" : "ivshmem-doorbell"),
          ""};
}

// The ids that a worker knows, from the first slot that is filled. Without one, or with a silent worker: the ids of
// workers that do not name theirs.
api::KnownIds known_to_workers(const Mapping& whole) {
  const ring::RegionHeader h = whole.header().copy_out();
  for (std::uint64_t at = h.first_slot; at < whole.size() && h.slot_bytes >= ring::min_slot_bytes; at += h.slot_bytes) {
    if (whole.size() - at < ring::min_slot_bytes) break;
    const ring::SlotHeader slot = ring::SlotView(whole.bytes() + at, ring::min_slot_bytes).header().copy_out();
    if (slot.magic == ring::slot_magic && slot.driver_calls != 0) return {slot.driver_calls, slot.session_calls};
  }
  return api::silent_workers_ids;
}

// The host's release and this one's, as the library compares them (docs/wire-format.md, Versions).
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

void ring_broker(ring::Shared<ring::RegionHeader> header, const Mapping& registers) {
  if (header[&ring::RegionHeader::no_doorbell].load(std::memory_order_relaxed) != 0)
    guest::ring_by_header(header, ring::peer_broker);
  else
    guest::ring_by_register(reinterpret_cast<volatile std::uint32_t*>(registers.bytes()), ring::peer_broker);
}

// As the library asks: the broker's heartbeat answers a guest that rings it.
Finding broker(const Mapping& mapping, const Mapping& registers) {
  if (!registers.there())
    return {"broker", State::Wrong, "the device's registers cannot be mapped (BAR0)", "run as root"};
  const ring::Shared<ring::RegionHeader> header = mapping.header();
  const ring::Shared<std::uint64_t> heartbeat = header[&ring::RegionHeader::heartbeat];
  const std::uint64_t before = heartbeat.load(std::memory_order_relaxed);
  for (int look = 0; look < 100; ++look) {
    if (look % 10 == 0) ring_broker(header, registers);
    if (heartbeat.load(std::memory_order_relaxed) != before) return {"broker", State::Ok, "ivgpud answers", ""};
    const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
    nanosleep(&pause, nullptr);
  }
  return {"broker", State::Wrong, "ivgpud does not answer: it has ended, or was started anew after the VM",
          "see that ivgpud runs on the host, then shut the VM down and start it (a reboot inside is not enough)"};
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

bool is_ours(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  std::string all(16 << 20, '\0');
  std::size_t length = 0;
  for (ssize_t n = 1; fd >= 0 && n > 0 && length < all.size(); length += static_cast<std::size_t>(n > 0 ? n : 0))
    n = read(fd, all.data() + length, all.size() - length);
  if (fd >= 0) close(fd);
  return std::string_view(all.data(), length).find("IVGPU_REGION") != std::string_view::npos;
}

Finding library(const Machine& m) {
  for (const std::string& folder : library_folders(m)) {
    const std::string path = folder + "/libcuda.so.1";
    if (!m.has(path)) continue;
    if (is_ours(m.at(path))) return {"library", State::Ok, path + " is the guest library", ""};
    return {"library", State::Wrong, path + " is found first, and is not the guest library",
            "remove NVIDIA's driver from the guest, or set LD_LIBRARY_PATH"};
  }
  return {"library", State::Wrong, "no libcuda.so.1 is in the loader's folders",
          "unpack ivgpu-guest.tar.gz and run ldconfig, or set LD_LIBRARY_PATH"};
}

}  // namespace

Findings check_guest(const Machine& machine) {
  const auto devices = ivshmem_devices(machine);
  Findings all = {device(devices)};
  if (!devices.empty()) {
    all.push_back(lockdown(machine));
    all.push_back(permission(machine, devices.front()));
    if (all.back().state == State::Ok) {
      if (machine.real() && machine.number(devices.front() + "/enable") == 0) {
        // Switched off, a device answers all ones: the library switches it on, too.
        const int fd = open(machine.at(devices.front() + "/enable").c_str(), O_WRONLY | O_CLOEXEC);
        if (fd >= 0) [[maybe_unused]]
          const ssize_t n = write(fd, "1", 1);
        if (fd >= 0) close(fd);
      }
      const Mapping mapping(machine.at(devices.front() + "/resource2"), ring::first_slot_offset);
      all.push_back(region(mapping));
      const bool sound = all.back().state == State::Ok;
      if (sound) all.push_back(release(machine.at(devices.front() + "/resource2"), mapping.size()));
      if (sound)
        all.push_back(broker(mapping, Mapping(machine.at(devices.front() + "/resource0"), guest::registers_bytes)));
      if (mapping.there()) all.push_back(check_cache(machine, mapping.bytes()));
    }
  }
  all.push_back(library(machine));
  return all;
}

}  // namespace check
