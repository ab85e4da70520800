#include "guest/region/region.h"

#include <sys/mman.h>

#include <cstdlib>

#include "guest/log.h"

namespace guest {

std::unique_ptr<Region> find_region() {
  if (const char* path = std::getenv("IVGPU_REGION"); path != nullptr && *path != '\0') {
    log(Level::Info, "IVGPU_REGION names the broker's socket %s", path);
    return connect_region(path);
  }
  log(Level::Info, "IVGPU_REGION is not set: looking for an ivshmem device (PCI 1af4:1110)");
  return open_ivshmem("/sys/bus/pci/devices");
}

const ring::RegionHeader* check_region(Region& region) {
  if (constexpr auto least = ring::first_slot_offset + ring::min_slot_bytes; region.size() < least) {
    log(Level::Info, "region of %llu bytes is too small for a slot: that takes %llu",
        static_cast<unsigned long long>(region.size()), static_cast<unsigned long long>(least));
    return nullptr;
  }
  std::byte* at = region.map(0, ring::first_slot_offset, nullptr);
  if (at == nullptr) return nullptr;
  const auto* header = reinterpret_cast<const ring::RegionHeader*>(at);
  const std::uint64_t magic = header->magic.load(std::memory_order_acquire);
  const std::uint64_t slots_end = header->first_slot + header->slot_bytes * header->slot_count;
  if (magic != ring::region_magic) {
    log(Level::Info, "region has magic %llx, not %llx: not made by ivgpud", static_cast<unsigned long long>(magic),
        static_cast<unsigned long long>(ring::region_magic));
  } else if (header->version != ring::layout_version) {
    log(Level::Error, "the broker is of another version: its region has layout %u, this library layout %u",
        header->version, ring::layout_version);
  } else if (header->region_bytes != region.size()) {
    log(Level::Error, "region says it has %llu bytes, the device has %llu",
        static_cast<unsigned long long>(header->region_bytes), static_cast<unsigned long long>(region.size()));
  } else if (header->slot_count == 0 || header->slot_count > ring::max_slots ||
             header->slot_bytes < ring::min_slot_bytes || header->slot_bytes > region.size() ||
             header->first_slot < ring::first_slot_offset || header->first_slot > region.size() ||
             slots_end > region.size()) {
    log(Level::Error, "region of %llu bytes cannot hold its %u slots of %llu bytes",
        static_cast<unsigned long long>(region.size()), header->slot_count,
        static_cast<unsigned long long>(header->slot_bytes));
  } else {
    return header;
  }
  munmap(at, ring::first_slot_offset);
  return nullptr;
}

}  // namespace guest
