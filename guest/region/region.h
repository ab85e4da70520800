// How this process reaches the VM's region. In a VM, the process uses the kernel module, the ivshmem device's files in
// sysfs, or a devdax device (persistent memory). On the host itself (loopback), it uses the broker's socket. Any thread
// may call a Region.
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
  // Maps [offset, offset + bytes) of the region, shared and writable; returns null on failure. Maps at `address` if
  // that is not null, but never over another mapping. The caller unmaps the range. A module maps only the claimed slot
  // and, read-only, the header area (ring::header_area_bytes; an older module: ring::region_header_bytes).
  virtual std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) = 0;
  // Rings the doorbell of a host peer: ring::peer_broker, or ring::peer_of_slot of the claimed slot.
  virtual void ring(std::uint32_t peer) = 0;
  // Asks the broker about the VM's GPUs (ring::VmPage): counts the question in the header `view`, and rings the broker.
  // Returns false if the guest's kernel module is too old, or if the device has gone.
  virtual bool ask_about_gpus(const ring::RegionView& view);
  virtual std::uint64_t size() const = 0;
  // Returns this guest's ivshmem id.
  virtual std::uint32_t peer() const = 0;
  // Returns whether the broker is alive. Only a connection shows this at once. Unknown: the caller must check the
  // heartbeat.
  enum class Broker : std::uint8_t { Lives, Gone, Unknown };
  virtual Broker broker() { return Broker::Unknown; }
  // Returns how the broker ended, for the log.
  virtual const char* gone_in_words() const { return "the broker has ended"; }
  // Returns whether the worker runs on the same kernel, so that futexes work between the two.
  virtual bool same_kernel() const = 0;
  // Returns the guest's kernel module, which claims and frees slots. Null: there is no module, and this process changes
  // the directory itself.
  virtual Module* module() { return nullptr; }
  // Returns the doorbell channel. A region has one if it has neither module nor doorbell register, but the VM has vsock
  // or a virtio-serial port for doorbells. Null: there is no channel, or it has ended.
  virtual DoorbellChannel* doorbells() { return nullptr; }
  // Returns the kind of the mapped memory, for the log.
  virtual const char* memory_in_words() const { return "BAR2 of the ivshmem device"; }
  // Returns whether worker and guest are one process with one mapping, as in tests. The arena then has the same address
  // in both from the start.
  virtual bool same_address_space() const { return false; }
  // Called in a forked child. Closes the child's copy of the parent's connection.
  virtual void forget() = 0;
};

// Finds the region: behind the socket IVGPU_REGION if that is set, else of the kernel module, of the first ivshmem
// device with our magic, or of a devdax device. Returns null if none is found; the log then warns once and says why. At
// level info the log names each place searched. Doorbells::None: the caller never sleeps until woken, and leaves the
// doorbell channels to other processes.
enum class Doorbells : std::uint8_t { Own, None };
std::unique_ptr<Region> find_region(Doorbells doorbells = Doorbells::Own);

// Connects to the region behind a broker's socket.
std::unique_ptr<Region> connect_region(const char* socket_path);
// Opens the region of an ivshmem device. `pci_devices`: "/sys/bus/pci/devices". On failure `why` is one sentence with
// the remedy.
std::unique_ptr<Region> open_ivshmem(const char* pci_devices, std::string& why);

// Returns the sentence about a device whose memory check_region() refuses.
std::string no_usable_region(const std::string& device);

// The mapped first pages of a region (ring::region_header_bytes), and the checked values of its header. The host can
// overwrite the header at any moment, as can other programs of the VM without the module. The sizes are therefore never
// read again.
struct CheckedRegion {
  ring::RegionView view;
  std::uint32_t slot_count;              // 1..ring::max_slots
  std::uint64_t first_slot, slot_bytes;  // all slots lie within the region
  bool no_doorbell;
  std::uint32_t doorbell_port;                       // the host's vsock port; 0: no port
  std::uint32_t guest_vectors;                       // the worker of slot k raises interrupt k % guest_vectors; 0: none
  char release[sizeof ring::RegionHeader::release];  // the broker's release, printable; "unknown": an old broker

  // Preconditions: slot < slot_count.
  std::uint64_t start_of(std::uint32_t slot) const { return first_slot + slot * slot_bytes; }
  // Unmaps the header. Nothing may read `view` afterwards.
  void unmap() const;
};

// Maps and checks the header. Returns nothing and writes a log line with both values if the region does not fit this
// library.
std::optional<CheckedRegion> check_region(Region& region);

}  // namespace guest
