#include "tools/ivgpu/vm/device.h"

#include <algorithm>

#include "tools/ivgpu/support/size.h"
#include "tools/ivgpu/support/status_document.h"

namespace ivgpu {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

// The maximum number of ports of a virtio-serial device, without the console's port.
constexpr std::uint32_t most_ports = 31;

void append(std::vector<std::string>& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more.begin(), more.end());
}

std::vector<std::string> shared_memory(const Device& device, const std::string& more) {
  return {"-object", "memory-backend-file,id=ivgpu,mem-path=" + device.memory.string() +
                         ",size=" + std::to_string(device.memory_bytes) + more + ",share=on"};
}

void add_ports(std::vector<std::string>& words, const Device& device) {
  if (device.ports > 0) append(words, {"-device", "virtio-serial-pci"});
  for (std::uint32_t k = 0; k < device.ports; ++k) {
    const std::string number = std::to_string(k);
    append(words, {"-chardev", "socket,id=ivgpu" + number + ",path=" + device.socket.string() + ",reconnect=1"});
    append(words, {"-device", "virtserialport,chardev=ivgpu" + number + ",name=org.ivgpu.bell." + number});
  }
}

}  // namespace

Device device_behind(const std::string& status, const std::string& vm, const std::string& transport) {
  const json document = parse_status(status);
  for (const json& one : document.at("vms")) {
    if (one.at("name") != vm) continue;
    Device device{.transport = transport, .socket = word_of(one.at("socket")), .memory = word_of(one.at("memory"))};
    if (device.memory.empty() != (transport == by_doorbell))
      throw Error(exit_code::usage, "the VM's transport is not " + transport +
                                        ": --extra-config tells the broker alone, --transport QEMU and the guest, too");
    if (device.memory.empty()) return device;
    device.memory_bytes = std::filesystem::file_size(device.memory);
    if (transport == by_pmem) device.ports = std::min(most_ports, static_cast<std::uint32_t>(one.at("slots").size()));
    return device;
  }
  status_incomplete("VM " + vm + " is missing");
}

void Device::take_vsock(std::uint32_t cid, int descriptor) {
  ports = 0;
  vsock_cid = cid;
  vsock = descriptor;
}

std::vector<std::string> qemu_words(const Device& device) {
  if (device.transport == by_doorbell)
    return {"-chardev", "socket,id=ivgpu,path=" + device.socket.string(), "-device",
            "ivshmem-doorbell,chardev=ivgpu,vectors=" + std::to_string(device.vectors)};
  std::vector<std::string> words = shared_memory(device, device.transport == by_pmem ? ",align=2M" : "");
  append(words, {"-device",
                 (device.transport == by_pmem ? "virtio-pmem-pci" : "ivshmem-plain") + std::string(",memdev=ivgpu")});
  add_ports(words, device);
  if (device.vsock >= 0)
    append(words, {"-device", "vhost-vsock-pci,guest-cid=" + std::to_string(device.vsock_cid) +
                                  ",vhostfd=" + std::to_string(device.vsock)});
  return words;
}

// Guest memory plus persistent memory, each rounded up to whole GiB, as QEMU aligns them. QEMU reports an invalid
// `memory`.
std::string memory_words(const std::string& memory, const Device& device) {
  const std::string size = size_for_qemu(memory);
  if (device.transport != by_pmem) return size;
  const auto whole = [](std::uint64_t bytes) { return bytes / gib + 1; };
  return size +
         ",slots=1,maxmem=" + std::to_string(whole(size_in_bytes(memory).value_or(0)) + whole(device.memory_bytes)) +
         "G";
}

std::vector<std::string> ways_of(const std::string& transport, bool vsock) {
  if (transport != by_pmem) return {};
  if (vsock) return {"pmem", "vsock"};
  return {"pmem"};
}

std::string awaited_for(const std::string& transport, bool vsock) {
  if (transport != by_pmem) return "";
  return vsock ? "/dev/dax0.0" : "/dev/dax0.0 /dev/vport*p1";
}

std::string described(const Device& device) {
  const std::string size = std::to_string(device.memory_bytes >> 20) + " MiB";
  if (device.transport == by_doorbell) return "ivshmem-doorbell with " + std::to_string(device.vectors) + " interrupts";
  if (device.transport == by_plain) return "ivshmem-plain of " + size + ", doorbells by bits in memory";
  return "virtio-pmem of " + size + ", doorbells by " +
         (device.vsock >= 0 ? "vsock, CID " + std::to_string(device.vsock_cid)
                            : std::to_string(device.ports) + " ports of virtio-serial");
}

}  // namespace ivgpu
