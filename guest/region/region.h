// How this process reaches the VM's region: in a VM through the kernel module or, without one, the ivshmem device's
// files in sysfs, or a devdax device where the VM has persistent memory instead; on the host itself through the
// broker's socket (loopback). Callers need not know which it is. Any thread may call a Region.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ring/layout/region_view.h"

namespace guest {

class BellChannel;
class Module;

class Region {
 public:
  virtual ~Region() = default;
  // Maps [offset, offset + bytes) of the region, shared and writable; by a module the front (ring::front_bytes; of an
  // older one ring::region_header_bytes) is read-only, and nothing else is there but the slot that was claimed. At
  // `address` if that is not null, but never over another mapping; else anywhere. Null on failure. The caller unmaps it.
  virtual std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) = 0;
  // Rings a host peer: ring::peer_broker, or ring::peer_of_slot of the slot that was claimed.
  virtual void ring(std::uint32_t peer) = 0;
  // Asks the broker of the VM's GPUs (ring::VmPage): counts the question in the header `view`, and rings the broker.
  // False: the guest's kernel module is an older one, or the device has gone.
  virtual bool ask_about_gpus(const ring::RegionView& view);
  virtual std::uint64_t size() const = 0;
  // This guest's ivshmem id.
  virtual std::uint32_t peer() const = 0;
  // Whether the broker lives. A connection shows it at once; Unknown: only the heartbeat can show it.
  enum class Broker : std::uint8_t { Lives, Gone, Unknown };
  virtual Broker broker() { return Broker::Unknown; }
  // What Gone means, for the log.
  virtual const char* gone_in_words() const { return "the broker has ended"; }
  // Whether the worker runs on the same kernel, so that futexes reach it.
  virtual bool same_kernel() const = 0;
  // The guest's kernel module, if the region is reached by it: it claims and frees slots. Null: this process changes
  // the directory itself.
  virtual Module* module() { return nullptr; }
  // The bell channel, where the region has neither module nor doorbell and the VM has vsock or a port for it. Null:
  // none, or it has ended.
  virtual BellChannel* bells() { return nullptr; }
  // What the region is mapped from, for the log.
  virtual const char* memory_in_words() const { return "BAR2 of the ivshmem device"; }
  // Whether worker and guest are one process with one mapping, as in tests. The arena then has the same address in both
  // already.
  virtual bool same_address_space() const { return false; }
  // Call it in a forked child. Closes the child's copy of the parent's connection.
  virtual void forget() = 0;
};

// The region of IVGPU_REGION (a broker's socket) if that is set, else of the kernel module (guest/region/module.h),
// else of the first ivshmem device that carries our magic, else of a devdax device (guest/region/devdax.h). Null if
// there is none; the log then warns once and says why. At level info the log says what is looked for.
// `bells`: whether this process sleeps until it is woken. Without, it leaves the channels to those that do.
enum class Bells : std::uint8_t { Own, None };
std::unique_ptr<Region> find_region(Bells bells = Bells::Own);

// The region behind a broker's socket.
std::unique_ptr<Region> connect_region(const char* socket_path);
// The region of an ivshmem device. `pci_devices`: "/sys/bus/pci/devices". On failure `why` is one sentence with the
// remedy.
std::unique_ptr<Region> open_ivshmem(const char* pci_devices, std::string& why);

// The sentence for a device whose memory check_region() refuses.
std::string no_usable_region(const std::string& device);

// A region's first pages (ring::region_header_bytes), mapped, and the checked values of its header. The host, and
// without a module other programs of the VM, can write over the header at any moment, so sizes are never read again.
struct CheckedRegion {
  ring::RegionView view;
  std::uint32_t slot_count;              // 1..ring::max_slots
  std::uint64_t first_slot, slot_bytes;  // all slots lie within the region
  bool no_doorbell;
  std::uint32_t bell_port;                           // of vsock, at the host; 0: none
  std::uint32_t guest_vectors;                       // the worker of slot k raises interrupt k % guest_vectors; 0: none
  char release[sizeof ring::RegionHeader::release];  // of the broker, printable; "unknown": an old broker

  // Preconditions: slot < slot_count.
  std::uint64_t start_of(std::uint32_t slot) const { return first_slot + slot * slot_bytes; }
  // Nobody may look at `view` from now on.
  void unmap() const;
};

// Maps the header and checks it. Nothing and a log line with both values if the region does not fit this library.
std::optional<CheckedRegion> check_region(Region& region);

}  // namespace guest
