// The guest's device, one form per value of `transport` in ivgpud's configuration. Provides QEMU's arguments for each
// form (qemu-config/ explains them), the guest's requirements, and a description for the user.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ivgpu {

inline constexpr const char* by_doorbell = "doorbell";
inline constexpr const char* by_plain = "plain";
inline constexpr const char* by_pmem = "pmem";

struct Device {
  std::string transport = by_doorbell;
  std::filesystem::path socket = {};  // for "doorbell", and for virtio-serial ports
  std::uint32_t vectors = 1;          // for "doorbell": the key `vectors` of ivgpud's configuration
  std::filesystem::path memory = {};  // for other transports: the file that QEMU maps, in full
  std::uint64_t memory_bytes = 0;
  std::uint32_t ports = 0;  // for "pmem": the number of doorbell channels over virtio-serial
  // for "pmem" over vsock: the VM's CID, which this descriptor of /dev/vhost-vsock reserves
  std::uint32_t vsock_cid = 0;
  int vsock = -1;

  // Uses vsock instead of virtio-serial ports.
  void take_vsock(std::uint32_t cid, int descriptor);
};

// The device of a broker that serves only this VM, from the broker's status. Throws an Error if the broker's transport
// differs.
Device device_behind(const std::string& status, const std::string& vm, const std::string& transport);

std::vector<std::string> qemu_words(const Device& device);

// QEMU's -m option. Persistent memory lies above the guest's memory.
std::string memory_words(const std::string& memory, const Device& device);

// The options for tools/guest-image that add the kernel modules of these transports.
std::vector<std::string> ways_of(const std::string& transport, bool vsock);
// Shell patterns of the device files that must exist before the guest's command starts.
std::string awaited_for(const std::string& transport, bool vsock);

// A description for the user, such as "virtio-pmem of 1026 MiB, doorbells by 8 ports of virtio-serial".
std::string described(const Device& device);

}  // namespace ivgpu
