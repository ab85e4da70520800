// The kernel assigns a CID to a descriptor until the descriptor is closed. QEMU inherits the descriptor, so no other
// process can take the CID in between.
#include "tools/ivgpu/vm/vsock.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
// linux/vm_sockets.h requires sys/socket.h.
#include <linux/vm_sockets.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tools/ivgpu/support/error.h"

namespace ivgpu {
namespace {

// VHOST_VSOCK_SET_GUEST_CID of linux/vhost.h, a header that C++ cannot include.
constexpr unsigned long set_guest_cid = _IOW(0xaf, 0x60, std::uint64_t);

// A range far from 3, the first CID of users and libvirt, and far from well-known ports.
constexpr std::uint32_t first_number = 1'000'000;
constexpr std::uint32_t tried = 4096;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(exit_code::missing, what + ", or leave --vsock out for doorbells by virtio-serial");
}

Fd open_device(const char* path) {
  Fd device(open(path, O_RDWR | O_CLOEXEC));
  const std::string name = path;
  if (device) return device;
  if (errno == EACCES || errno == EPERM)
    refuse("this user may not open " + name + ": join the group that it belongs to, which is kvm on Debian");
  if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
    refuse("this machine has no " + name + ": 'modprobe vhost_vsock', as root, makes it where the kernel has vsock");
  refuse(name + " cannot be opened: " + std::strerror(errno) + "; see the kernel's log (dmesg)");
}

bool takes_cid(int device, std::uint32_t number) {
  const std::uint64_t cid = number;
  if (ioctl(device, set_guest_cid, &cid) == 0) return true;
  if (errno == EADDRINUSE) return false;
  refuse(std::string("the kernel gives no CID of vsock: ") + std::strerror(errno) + "; see its log (dmesg)");
}

// Probes whether the broker can bind the port. Afterwards only a foreign program could take the port before the broker
// binds it.
bool port_is_free(std::uint32_t port) {
  const Fd probe(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe) refuse("this machine's kernel has no vsock: 'modprobe vhost_vsock', as root");
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_ANY;
  address.svm_port = port;
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

std::optional<std::uint32_t> first_free(std::uint32_t first, std::uint32_t count,
                                        const std::function<bool(std::uint32_t)>& takes_cid,
                                        const std::function<bool(std::uint32_t)>& port_is_free) {
  for (std::uint32_t number = first; number - first < count; ++number)
    if (takes_cid(number) && port_is_free(number)) return number;
  return std::nullopt;
}

VsockPlace take_vsock(const char* path) {
  VsockPlace place{.device = open_device(path)};
  const auto number = first_free(
      first_number, tried, [&](std::uint32_t n) { return takes_cid(place.device.get(), n); }, port_is_free);
  if (!number) refuse("all CIDs or ports of vsock that this looks at are taken: end the VMs that have them");
  place.both = *number;
  return place;
}

}  // namespace ivgpu
