#include "guest/region/region.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "guest/base/log.h"
#include "guest/region/cache_probe.h"
#include "guest/region/devdax.h"
#include "guest/region/module.h"
#include "guest/region/release.h"
#include "ring/verify/mutants.h"

namespace guest {

std::string no_usable_region(const std::string& device) {
  return device +
         " holds no region that this library can use: start ivgpud, of the same version, with this VM in its "
         "configuration, then start the VM again";
}

namespace {

void report_cache(Region& region) {
  std::byte* at = region.map(0, ring::page, nullptr);
  if (at == nullptr) return;
  double ns = nanoseconds_per_line(at, ring::page, monotonic_nanoseconds);
  // Measures again, since an interruption lengthens a measurement.
  if (uncached(ns)) ns = std::min(ns, nanoseconds_per_line(at, ring::page, monotonic_nanoseconds));
  munmap(at, ring::page);
  if (uncached(ns))
    log(Level::Warn,
        "%s seems to be mapped uncached (%.0f ns a line), and everything will be slow then; "
        "ivgpu-check says more",
        region.memory_in_words(), ns);
  else
    log(Level::Info, "%s is mapped write-back (%.1f ns a line)", region.memory_in_words(), ns);
}

}  // namespace

std::unique_ptr<Region> find_region(Doorbells doorbells) {
  if (const char* path = std::getenv("IVGPU_REGION"); path != nullptr && *path != '\0') {
    log(Level::Info, "IVGPU_REGION names the broker's socket %s", path);
    return connect_region(path);
  }
  log(Level::Info, "IVGPU_REGION is not set: looking for /dev/ivgpuN, then for an ivshmem device (PCI 1af4:1110)");
  std::string why;
  auto region = open_module("/dev", why);
  // If the module is loaded, only the module maps the device. If the module refuses a program, the log has the module's
  // reason.
  if (region == nullptr && why.empty()) region = open_ivshmem("/sys/bus/pci/devices", why);
  if (std::string dax; region == nullptr) {
    region = open_devdax({}, dax, doorbells);
    if (!dax.empty()) why = dax;
  }
  if (region != nullptr) report_cache(*region);
  // Logged once, because programs that only look for a GPU may call this function often.
  static std::atomic<bool> reported{false};
  if (region == nullptr && !reported.exchange(true)) log(Level::Warn, "%s", why.c_str());
  return region;
}

namespace {

// Returns whether all slots of this header lie within a region of `bytes`. Checks the numbers one by one first, so that
// no sum overflows.
bool slots_fit(const ring::RegionHeader& header, std::uint64_t bytes) {
  if (header.slot_count == 0 || header.slot_count > ring::max_slots) return false;
  if (header.slot_bytes < ring::min_slot_bytes || header.slot_bytes > bytes) return false;
  if (header.first_slot < ring::first_slot_offset || header.first_slot > bytes) return false;
  return header.slot_bytes * header.slot_count <= bytes - header.first_slot;
}

// Returns whether this library can use a region of `bytes` with this header. If not, the log says why. The caller must
// have loaded `magic` with acquire before it copied the header.
bool is_sound(std::uint64_t magic, const ring::RegionHeader& header, std::uint64_t bytes) {
  if (magic != ring::region_magic) {
    log(Level::Info, "region has magic %llx, not %llx: not made by ivgpud", static_cast<unsigned long long>(magic),
        static_cast<unsigned long long>(ring::region_magic));
    return false;
  }
  if (header.version != ring::layout_version) {
    log(Level::Error, "the broker is of another version: its region has layout %u, this library layout %u; %s",
        header.version, ring::layout_version,
        header.version > ring::layout_version ? "upgrade ivgpu-guest in this VM" : "upgrade ivgpu-host on the host");
    return false;
  }
  if (header.region_bytes != bytes) {
    log(Level::Error, "region says it has %llu bytes, the device has %llu",
        static_cast<unsigned long long>(header.region_bytes), static_cast<unsigned long long>(bytes));
    return false;
  }
  if (!slots_fit(header, bytes)) {
    log(Level::Error, "region of %llu bytes cannot hold its %u slots of %llu bytes",
        static_cast<unsigned long long>(bytes), header.slot_count, static_cast<unsigned long long>(header.slot_bytes));
    return false;
  }
  return true;
}

}  // namespace

bool Region::ask_about_gpus(const ring::RegionView& view) {
  // Pairs with the broker's acquire: a broker that sees the count also answers the question.
  view.header()[&ring::RegionHeader::gpu_questions].fetch_add(1, std::memory_order_release);
  ring(ring::peer_broker);
  return true;
}

void CheckedRegion::unmap() const { munmap(view.base(), ring::region_header_bytes); }

std::optional<CheckedRegion> check_region(Region& region) {
  if (constexpr auto least = ring::first_slot_offset + ring::min_slot_bytes; region.size() < least) {
    log(Level::Info, "region of %llu bytes is too small for a slot: that takes %llu",
        static_cast<unsigned long long>(region.size()), static_cast<unsigned long long>(least));
    return std::nullopt;
  }
  std::byte* at = region.map(0, ring::region_header_bytes, nullptr);
  if (at == nullptr) return std::nullopt;
  const ring::RegionView view(at);
  const std::uint64_t magic = view.header()[&ring::RegionHeader::magic].load(std::memory_order_acquire);
  ring::RegionHeader header = view.header().copy_out();
  if (is_sound(magic, header, region.size())) {
    if (ring::wrong(ring::Mutant::region_twice)) header = view.header().copy_out();
    CheckedRegion checked{view,
                          header.slot_count,
                          header.first_slot,
                          header.slot_bytes,
                          header.no_doorbell != 0,
                          header.doorbell_port,
                          header.guest_vectors,
                          {}};
    copy_release(header.release, checked.release);
    return checked;
  }
  munmap(at, ring::region_header_bytes);
  return std::nullopt;
}

}  // namespace guest
