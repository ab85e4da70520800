// The guest's device, one form per value of `transport` in ivgpud's configuration. Gives QEMU's arguments for each form
// (qemu-config/ explains them), the guest's requirements, and a description for the user.
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
  std::filesystem::path socket = {};  // "doorbell", and virtio-serial ports
  std::uint32_t vectors = 1;          // "doorbell": `vectors` of ivgpud's configuration
  std::filesystem::path memory = {};  // other transports: the file that QEMU maps, in full
  std::uint64_t memory_bytes = 0;
  std::uint32_t ports = 0;      // "pmem": doorbell channels over virtio-serial
  std::uint32_t vsock_cid = 0;  // "pmem" over vsock: the VM's CID, held by this descriptor of /dev/vhost-vsock
  int vsock = -1;

  // Uses vsock instead of virtio-serial ports.
  void take_vsock(std::uint32_t cid, int descriptor);
};

// The device of a broker that serves only this VM, from its status. Throws an Error if its transport differs.
Device device_behind(const std::string& status, const std::string& vm, const std::string& transport);

std::vector<std::string> qemu_words(const Device& device);

// QEMU's -m option. Persistent memory lies above the guest's memory.
std::string memory_words(const std::string& memory, const Device& device);

// The names for tools/guest-image of transports that need modules of the guest's kernel.
std::vector<std::string> ways_of(const std::string& transport, bool vsock);
// Device files that the guest waits for before its command, as shell patterns.
std::string awaited_for(const std::string& transport, bool vsock);

// For the user, such as "virtio-pmem of 1026 MiB, doorbells by 8 ports of virtio-serial".
std::string described(const Device& device);

}  // namespace ivgpu
