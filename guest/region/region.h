// How this process reaches the VM's region. In a VM: through the kernel module, the ivshmem device's files in sysfs, or
// a devdax device (persistent memory). On the host itself (loopback): through the broker's socket. Any thread may call
// a Region.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ring/layout/region_view.h"

namespace guest {

class DoorbellChannel;
class Module;

class Region {
 public:
  virtual ~Region() = default;
  // Maps [offset, offset + bytes) of the region, shared and writable; null on failure. Maps at `address` unless null,
  // never over another mapping. The caller unmaps. A module maps only the header area, read-only (ring::header_area_bytes; an
  // older one ring::region_header_bytes), and the claimed slot.
  virtual std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) = 0;
  // Rings a host peer: ring::peer_broker, or ring::peer_of_slot of the claimed slot.
  virtual void ring(std::uint32_t peer) = 0;
  // Asks the broker about the VM's GPUs (ring::VmPage): counts the question in the header `view`, and rings the broker.
  // False: the guest's kernel module is too old, or the device has gone.
  virtual bool ask_about_gpus(const ring::RegionView& view);
  virtual std::uint64_t size() const = 0;
  // This guest's ivshmem id.
  virtual std::uint32_t peer() const = 0;
  // Whether the broker lives. Only a connection shows this at once; Unknown: ask by heartbeat.
  enum class Broker : std::uint8_t { Lives, Gone, Unknown };
  virtual Broker broker() { return Broker::Unknown; }
  // How the broker ended, for the log.
  virtual const char* gone_in_words() const { return "the broker has ended"; }
  // Whether the worker runs on the same kernel, so that futexes reach it.
  virtual bool same_kernel() const = 0;
  // The guest's kernel module, which claims and frees slots. Null: there is none, and this process changes the
  // directory itself.
  virtual Module* module() { return nullptr; }
  // The doorbell channel, if the region has neither module nor doorbell but the VM has vsock or a port for it. Null:
  // there is none, or it has ended.
  virtual DoorbellChannel* doorbells() { return nullptr; }
  // The mapped memory's kind, for the log.
  virtual const char* memory_in_words() const { return "BAR2 of the ivshmem device"; }
  // Whether worker and guest are one process with one mapping, as in tests. The arena then already has the same address
  // in both.
  virtual bool same_address_space() const { return false; }
  // Called in a forked child. Closes the child's copy of the parent's connection.
  virtual void forget() = 0;
};

// Finds the region: of IVGPU_REGION (a broker's socket) if set, else the kernel module's, the first ivshmem device's
// with our magic, or a devdax device's. Null: none is found; the log then warns once and says why. At level info the
// log names each place searched. Doorbells::None: the caller never sleeps until woken, and leaves the doorbell channels to
// other processes.
enum class Doorbells : std::uint8_t { Own, None };
std::unique_ptr<Region> find_region(Doorbells doorbells = Doorbells::Own);

// The region behind a broker's socket.
std::unique_ptr<Region> connect_region(const char* socket_path);
// The region of an ivshmem device. `pci_devices`: "/sys/bus/pci/devices". On failure `why` is one sentence with the
// remedy.
std::unique_ptr<Region> open_ivshmem(const char* pci_devices, std::string& why);

// The sentence about a device whose memory check_region() refuses.
std::string no_usable_region(const std::string& device);

// A region's first pages (ring::region_header_bytes), mapped, and the checked values of its header. The host, and
// without a module other programs of the VM, can overwrite the header at any moment, so sizes are never read again.
struct CheckedRegion {
  ring::RegionView view;
  std::uint32_t slot_count;              // 1..ring::max_slots
  std::uint64_t first_slot, slot_bytes;  // all slots lie within the region
  bool no_doorbell;
  std::uint32_t doorbell_port;                       // the host's vsock port; 0: none
  std::uint32_t guest_vectors;                       // the worker of slot k raises interrupt k % guest_vectors; 0: none
  char release[sizeof ring::RegionHeader::release];  // the broker's, printable; "unknown": an old broker

  // Preconditions: slot < slot_count.
  std::uint64_t start_of(std::uint32_t slot) const { return first_slot + slot * slot_bytes; }
  // Nothing may read `view` from now on.
  void unmap() const;
};

// Maps the header and checks it. Nothing, and a log line with both values, if the region does not fit this library.
std::optional<CheckedRegion> check_region(Region& region);

}  // namespace guest
