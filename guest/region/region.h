// How this process reaches the VM's region: through the ivshmem device in a VM, or through the broker's socket on the
// host itself (loopback). Callers need not know which of the two it is. Any thread may call a Region.
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
  // Maps [offset, offset + bytes) of the region, shared and writable. At `address` if that is not null, but never over
  // another mapping; else anywhere. Null on failure. The caller unmaps it.
  virtual std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) = 0;
  // Rings a host peer (ring::peer_broker, ring::peer_of_slot).
  virtual void ring(std::uint32_t peer) = 0;
  virtual std::uint64_t size() const = 0;
  // This guest's ivshmem id.
  virtual std::uint32_t peer() const = 0;
  // Whether the broker lives. A connection shows it at once; Unknown: only the heartbeat can show it.
  enum class Broker : std::uint8_t { Lives, Gone, Unknown };
  virtual Broker broker() { return Broker::Unknown; }
  // Whether the worker runs on the same kernel, so that futexes reach it.
  virtual bool same_kernel() const = 0;
  // Whether worker and guest are one process with one mapping, as in tests. The arena then has the same address in both
  // already.
  virtual bool same_address_space() const { return false; }
  // Call it in a forked child. Closes the child's copy of the parent's connection.
  virtual void forget() = 0;
};

// The region of IVGPU_REGION (a broker's socket) if that is set, else of the first ivshmem device that carries our
// magic. Null if there is none; the log then warns once and says why. At level info the log says what is looked for.
std::unique_ptr<Region> find_region();

// The region behind a broker's socket.
std::unique_ptr<Region> connect_region(const char* socket_path);
// The region of an ivshmem device. `pci_devices`: "/sys/bus/pci/devices". On failure `why` is one sentence with the
// remedy.
std::unique_ptr<Region> open_ivshmem(const char* pci_devices, std::string& why);

// A region's first pages (region_header_bytes), mapped, and the checked values of its header. Other programs of the VM can write over the
// header at any moment, so sizes are never read from it again.
struct CheckedRegion {
  ring::RegionView view;
  std::uint32_t slot_count;              // 1..ring::max_slots
  std::uint64_t first_slot, slot_bytes;  // all slots lie within the region
  bool no_doorbell;
  char release[sizeof ring::RegionHeader::release];  // of the broker, printable; "unknown": an old broker

  // Preconditions: slot < slot_count.
  std::uint64_t start_of(std::uint32_t slot) const { return first_slot + slot * slot_bytes; }
  // Nobody may look at `view` from now on.
  void unmap() const;
};

// Maps the header and checks it. Nothing and a log line with both values if the region does not fit this library.
std::optional<CheckedRegion> check_region(Region& region);

}  // namespace guest
