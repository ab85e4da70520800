// Loopback: this process is an ivshmem peer of the broker, as QEMU is for a VM. The socket delivers the region's
// descriptor and an eventfd for each host peer. While the socket is open, the broker knows that the process is alive.
//
// Protocol of an ivshmem server: 64-bit little-endian numbers, some with a descriptor. The server sends version 0, the
// client's own id, and -1 with the memory. Then follow a (peer, eventfd) pair for each peer, and a pair with the own id
// for each interrupt of a guest.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "guest/base/log.h"
#include "guest/base/uncancelled.h"
#include "guest/region/access.h"
#include "guest/region/map_shared.h"
#include "guest/region/region.h"
#include "ring/abi/descriptor.h"

namespace guest {
namespace {

struct Message {
  bool ok = false;
  std::int64_t value = 0;
  int fd = -1;
};

Message receive(int socket) {
  Message m;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{&m.value, sizeof m.value};
  msghdr header{};
  header.msg_iov = &part, header.msg_iovlen = 1;
  header.msg_control = control, header.msg_controllen = sizeof control;
  ssize_t n;
  do n = recvmsg(socket, &header, MSG_WAITALL | MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  m.ok = n == static_cast<ssize_t>(sizeof m.value);
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c))
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) std::memcpy(&m.fd, CMSG_DATA(c), sizeof m.fd);
  m.fd = cuabi::above_standard(m.fd);
  return m;
}

class Loopback final : public Region {
 public:
  explicit Loopback(int socket) : socket_(socket) {}
  ~Loopback() override { forget(); }

  // Reads the server's greeting. Returns false if the server does not speak the ivshmem protocol.
  bool greet() {
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const Message version = receive(socket_);
    if (!version.ok || version.value != 0) return false;
    const Message id = receive(socket_);
    if (!id.ok || id.value < 0) return false;
    const Message memory = receive(socket_);
    memory_ = memory.fd;
    if (!memory.ok || memory.value != -1 || memory_ < 0) return false;
    peer_ = static_cast<std::uint32_t>(id.value);
    struct stat status {};
    if (fstat(memory_, &status) != 0) return false;
    size_ = static_cast<std::uint64_t>(status.st_size);
    for (;;) {
      const Message m = receive(socket_);
      if (!m.ok || m.fd < 0) return false;
      if (m.value == id.value) return close(m.fd) == 0 && skip_interrupts();
      doorbells_[static_cast<std::uint32_t>(m.value)] = m.fd;
    }
  }

  std::byte* map(std::uint64_t offset, std::size_t bytes, void* address) override {
    return map_shared(memory_, offset, bytes, address);
  }
  void ring(std::uint32_t peer) override {
    const Uncancelled here;
    const std::uint64_t one = 1;
    if (const auto at = doorbells_.find(peer); at != doorbells_.end()) [[maybe_unused]]
      const auto n = write(at->second, &one, sizeof one);
  }
  std::uint64_t size() const override { return size_; }
  std::uint32_t peer() const override { return peer_; }
  // The broker sends nothing after the greeting, so any event on the socket means that the connection has ended.
  Broker broker() override {
    const Uncancelled here;
    pollfd socket{socket_, POLLIN | POLLRDHUP, 0};
    return poll(&socket, 1, 0) <= 0 ? Broker::Lives : Broker::Gone;
  }
  bool same_kernel() const override { return true; }
  void forget() override {
    for (const auto& [peer, fd] : doorbells_) close(fd);
    doorbells_.clear();
    if (memory_ >= 0) close(memory_);
    if (socket_ >= 0) close(socket_);
    memory_ = socket_ = -1;
  }

 private:
  // Skips this process's own interrupts after the first, because futexes wake this process instead. The header contains
  // the number of interrupts. An older broker, whose header contains 0, sends one interrupt.
  bool skip_interrupts() {
    void* at = size_ >= ring::page ? mmap(nullptr, ring::page, PROT_READ, MAP_SHARED, memory_, 0) : MAP_FAILED;
    if (at == MAP_FAILED) return false;
    const ring::RegionView region(static_cast<std::byte*>(at));
    std::uint32_t more = region.header()[&ring::RegionHeader::guest_vectors].load(std::memory_order_relaxed);
    munmap(at, ring::page);
    for (more = std::min(more, ring::max_slots); more > 1; --more) {
      const Message m = receive(socket_);
      if (!m.ok || m.fd < 0 || close(m.fd) != 0) return false;
    }
    return true;
  }

  int socket_;
  int memory_ = -1;
  std::uint64_t size_ = 0;
  std::uint32_t peer_ = 0;
  std::map<std::uint32_t, int> doorbells_;
};

}  // namespace

std::unique_ptr<Region> connect_region(const char* socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(socket_path);
  if (length >= sizeof address.sun_path) {
    log(Level::Error, "IVGPU_REGION is too long for a socket's path: %s", socket_path);
    return nullptr;
  }
  std::memcpy(address.sun_path, socket_path, length);  // the rest of the path is zero
  const int fd = cuabi::open_socket(AF_UNIX, SOCK_STREAM);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    const bool refused = why == EACCES || why == EPERM;
    log(Level::Error, "cannot connect to the broker at %s: %s%s; %s", socket_path, std::strerror(why),
        refused ? access_in_words(socket_path).c_str() : "",
        refused ? "join that group, or set socket_group in ivgpud's configuration"
                : "start ivgpud, or correct IVGPU_REGION");
    if (fd >= 0) close(fd);
    return nullptr;
  }
  auto region = std::make_unique<Loopback>(fd);
  errno = 0;
  if (region->greet()) return region;
  // While one broker replaces another, the socket listens, but no broker accepts (docs/design/034-restart.md).
  if (errno == EAGAIN)
    log(Level::Error, "nothing at %s has greeted within 5 s: see whether ivgpud is started again, then try again",
        socket_path);
  else
    log(Level::Error, "what listens at %s is no ivgpud: it does not greet as an ivshmem server", socket_path);
  return nullptr;
}

}  // namespace guest
