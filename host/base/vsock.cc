#include "host/base/vsock.h"

#include <fmt/format.h>
#include <sys/socket.h>
// After sys/socket.h, on which it depends.
#include <linux/vm_sockets.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace host::broker {
namespace {

static_assert(vsock_host == VMADDR_CID_HOST && vsock_local == VMADDR_CID_LOCAL);

Fd make_socket() { return Fd(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

std::string in_words(int error) {
  if (error == EAFNOSUPPORT || error == ESOCKTNOSUPPORT)
    return "this machine's kernel has no vsock, or this service may not use it: `modprobe vhost_vsock`, and AF_VSOCK "
           "in "
           "the unit's RestrictAddressFamilies; or leave vsock_cid and vsock_port out, and give the VM ports of "
           "virtio-serial";
  if (error == EADDRINUSE) return "another program listens at this port: end it, or take another";
  return std::strerror(error);
}

// The kernel's buffer for each connection, instead of 256 KiB: doorbells are single bytes.
constexpr std::uint64_t buffer_bytes = 4096;

}  // namespace

// Binds to VMADDR_CID_ANY, because this machine has its host CID only once the first VM has a vsock device.
BoundVsock bind_vsock(std::uint32_t port) {
  Fd made = make_socket();
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_ANY;
  address.svm_port = port;
  if (made) setsockopt(made.get(), AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &buffer_bytes, sizeof buffer_bytes);
  if (made && bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return {.socket = std::move(made)};
  return {.socket = Fd(), .is_taken = made && errno == EADDRINUSE, .error = in_words(errno)};
}

bool is_at_vsock(int socket, std::uint32_t port) {
  sockaddr_vm address{};
  socklen_t length = sizeof address;
  return getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0 && length == sizeof address &&
         address.svm_family == AF_VSOCK && address.svm_port == port;
}

std::string vsock_missing() { return make_socket() ? "" : in_words(errno); }

std::optional<std::uint32_t> cid_of_peer(int socket) {
  sockaddr_vm address{};
  socklen_t length = sizeof address;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return std::nullopt;
  if (length != sizeof address || address.svm_family != AF_VSOCK) return std::nullopt;
  return address.svm_cid;
}

}  // namespace host::broker
