#include "tools/check/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "guest/base/host_patience.h"
#include "guest/region/map_shared.h"

namespace check {
namespace {

// Each question of the guest library is ten polls, 10 ms apart. This check makes at least ten questions.
unsigned most_looks() { return 10 * std::max(10U, guest::HostPatience().questions().value_or(0)); }

}  // namespace

Mapping::Mapping(const std::string& file, std::size_t bytes) : mapped_(bytes) {
  const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (fd >= 0 && fstat(fd, &status) == 0) size_ = static_cast<std::uint64_t>(status.st_size);
  if (size_ >= mapped_) at_ = guest::map_shared(fd, 0, mapped_, nullptr);
  if (fd >= 0) close(fd);
}

Mapping::Mapping(int node, std::size_t bytes, std::uint64_t size, int protection)
    : mapped_(bytes), size_(size), at_(guest::map_shared(node, 0, bytes, nullptr, protection)) {}

Mapping::~Mapping() {
  if (at_ != nullptr) munmap(at_, mapped_);
}

Finding check_region(const Mapping& mapping, const char* plain) {
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
            h.version > ring::layout_version ? "upgrade ivgpu-guest in this VM" : "upgrade ivgpu-host on the host"};
  if (h.region_bytes != mapping.size())
    return {
        "region", State::Wrong,
        "ivgpud made " + std::to_string(h.region_bytes) + " bytes, the device shows " + std::to_string(mapping.size()),
        "give QEMU's memory-backend-file the size of region_size"};
  return {"region", State::Ok,
          std::to_string(h.region_bytes >> 20) + " MiB in " + std::to_string(h.slot_count) + " slots, " +
              (h.no_doorbell != 0 ? plain : "ivshmem-doorbell"),
          ""};
}

Finding check_broker(const Mapping& mapping, const std::function<void()>& ring) {
  const ring::Shared<std::uint64_t> heartbeat = mapping.header()[&ring::RegionHeader::heartbeat];
  const std::uint64_t before = heartbeat.load(std::memory_order_relaxed);
  const unsigned looks = most_looks();
  for (unsigned look = 0; look < looks; ++look) {
    if (look % 10 == 0) ring();
    if (heartbeat.load(std::memory_order_relaxed) != before) return {"broker", State::Ok, "ivgpud answers", ""};
    const timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
    nanosleep(&pause, nullptr);
  }
  return {
      "broker", State::Wrong, "ivgpud does not answer: it has ended, or was started anew after the VM",
      "see that ivgpud runs on the host; where it does, shut the VM down and start it (a reboot inside is not enough)"};
}

std::string install_rule(const Machine& machine, const std::string& file, const std::string& subsystem) {
  const std::string packaged = "/usr/share/ivgpu/guest/" + file;
  return "as root: cp " + (machine.has(packaged) ? packaged : "/usr/local/share/ivgpu/guest/" + file) +
         " /etc/udev/rules.d/, then udevadm trigger -s " + subsystem + "; or run as root";
}

}  // namespace check
