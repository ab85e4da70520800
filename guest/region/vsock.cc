#include "guest/region/vsock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
// linux/vm_sockets.h needs sys/socket.h before it.
#include <linux/vm_sockets.h>

#include <cerrno>
#include <cstring>

#include "ring/abi/descriptor.h"
#include "ring/layout/doorbell_channel.h"

namespace guest {
namespace {

// A running host answers in less than a millisecond. The limit is for a stopped host; the kernel's own limit is 2 s.
constexpr int patience_ms = 1000;

std::string in_words(int error, std::uint32_t port) {
  const std::string at = "vsock port " + std::to_string(port) + " of the host: ";
  switch (error) {
    case EAFNOSUPPORT: return at + "the kernel has no vsock: modprobe vmw_vsock_virtio_transport";
    case ENODEV:
      return at +
             "the VM has no vhost-vsock device (qemu-config/pmem.md), or the kernel no module "
             "vmw_vsock_virtio_transport";
    case ECONNRESET:
    case ECONNREFUSED: return at + "no ivgpud listens there, or too many programs connect at once";
    case EPERM:
    case EACCES: return at + "this program may not connect: its container's seccomp filter is to allow AF_VSOCK";
    default: return at + std::strerror(error);
  }
}

// Waits for the broker's first byte. Returns 0 or an errno.
int first_byte(int socket) {
  pollfd answer{socket, POLLIN, 0};
  if (poll(&answer, 1, patience_ms) != 1) return ETIMEDOUT;
  unsigned char byte = 0;
  const ssize_t n = recv(socket, &byte, 1, MSG_DONTWAIT);
  return n == 1 ? 0 : n == 0 ? EPROTO : errno;
}

}  // namespace

int dial_host(std::uint32_t port) {
  const int fd = cuabi::open_socket(AF_VSOCK, SOCK_STREAM);
  if (fd < 0) return -1;
  const timeval limit{.tv_sec = patience_ms / 1000, .tv_usec = 0};
  setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &limit, sizeof limit);
  sockaddr_vm host{};
  host.svm_family = AF_VSOCK;
  host.svm_cid = VMADDR_CID_HOST;
  host.svm_port = port;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&host), sizeof host) == 0 &&
      fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) == 0)
    return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

int open_vsock(std::uint32_t port, Dial dial, std::string& why) {
  const int fd = dial(port);
  if (fd < 0) {
    why = in_words(errno, port);
    return -1;
  }
  const int error = first_byte(fd);
  if (error == 0) return fd;
  close(fd);
  why = error == EPROTO ? "ivgpud refuses this VM at its vsock port " + std::to_string(port) +
                              ": vsock_cid is not QEMU's guest-cid, or it has as many connections as it takes"
                        : in_words(error, port);
  return -1;
}

}  // namespace guest
