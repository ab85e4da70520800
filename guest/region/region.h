// The VM's region as this process reaches it: through the ivshmem device in a VM, through the broker's socket on the
// host's own machine (loopback). What is behind it is nobody's business above this page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ring/region_view.h"

namespace guest {

class Region {
 public:
  virtual ~Region() = default;
  // Maps [offset, offset + bytes) of the region, shared and writable: at `address` if that is not null and the place is
  // free (never over something), else anywhere. Null when it cannot.
  virtual std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) = 0;
  // Wakes what sleeps behind a host peer (ring::peer_broker, ring::peer_of_slot).
  virtual void ring(std::uint32_t peer) = 0;
  virtual std::uint64_t size() const = 0;
  // This guest's ivshmem id.
  virtual std::uint32_t peer() const = 0;
  // Whether the broker lives: known at once where there is a connection to it, otherwise a matter of its heartbeat.
  enum class Broker : std::uint8_t { Lives, Gone, Unknown };
  virtual Broker broker() { return Broker::Unknown; }
  // Whether the worker runs under the same kernel, so that futexes reach it.
  virtual bool same_kernel() const = 0;
  // Whether worker and guest are one process on one mapping (tests): then the arena has one address already.
  virtual bool same_address_space() const { return false; }
  // In a forked child: lets go of what the parent's connection hangs on.
  virtual void forget() = 0;
};

// The region of IVGPU_REGION (a broker's socket) if that is set, else of the first ivshmem device that carries our
// magic. Null when there is none; the log warns once and says why, and tells at level info what was looked for.
std::unique_ptr<Region> find_region();

// Each kind by itself.
std::unique_ptr<Region> connect_region(const char* socket_path);
// `pci_devices`: "/sys/bus/pci/devices". On failure `why` is one sentence with the remedy.
std::unique_ptr<Region> open_ivshmem(const char* pci_devices, std::string& why);

// A region's first pages, mapped, and what its header said when it was checked. Other programs of the VM can write over
// the header at any moment: what it says of sizes is never read from there again.
struct CheckedRegion {
  ring::RegionView view;
  std::uint32_t slot_count;              // 1..ring::max_slots
  std::uint64_t first_slot, slot_bytes;  // all slots lie within the region
  bool no_doorbell;
  char release[sizeof ring::RegionHeader::release];  // the broker's, printable; "unknown": from before it said so

  // Preconditions: slot < slot_count.
  std::uint64_t start_of(std::uint32_t slot) const { return first_slot + slot * slot_bytes; }
};

// Maps the header and checks it; nothing and one log line with both values when the region is not of our making.
std::optional<CheckedRegion> check_region(Region& region);

}  // namespace guest
