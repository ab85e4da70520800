// The guest's device, by which it reaches its broker. It has the forms that `transport` of ivgpud's configuration has. Here
// are QEMU's words for each (qemu-config/ explains them), the guest's needs, and a description for the user.
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
  std::filesystem::path socket = {};  // "doorbell", and ports of virtio-serial
  std::uint32_t vectors = 1;          // "doorbell": as many as `vectors` says in ivgpud's configuration
  std::filesystem::path memory = {};  // the others: what QEMU opens, and all that lies there
  std::uint64_t memory_bytes = 0;
  std::uint32_t ports = 0;      // "pmem": bell channels by virtio-serial
  std::uint32_t vsock_cid = 0;  // or the VM's CID, which this descriptor of /dev/vhost-vsock has taken for it
  int vsock = -1;

  // In the place of ports.
  void take_vsock(std::uint32_t cid, int descriptor);
};

// The device behind a broker that serves this one VM, by its status. An Error where it has another transport.
Device device_behind(const std::string& status, const std::string& vm, const std::string& transport);

std::vector<std::string> qemu_words(const Device& device);

// QEMU's -m: persistent memory has its place above the guest's own.
std::string memory_words(const std::string& memory, const Device& device);

// What guest-image knows of it: the names of ways that take modules of the guest's kernel.
std::vector<std::string> ways_of(const std::string& transport, bool vsock);
// The device files that the guest waits for before its command, as patterns of its shell.
std::string awaited_for(const std::string& transport, bool vsock);

// For people: "virtio-pmem of 1026 MiB, bells by 8 ports of virtio-serial".
std::string described(const Device& device);

}  // namespace ivgpu
