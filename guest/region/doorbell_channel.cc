#include "guest/region/doorbell_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "guest/base/log.h"
#include "guest/base/timespec.h"
#include "guest/base/uncancelled.h"
#include "guest/region/access.h"
#include "guest/region/sysfs.h"
#include "ring/abi/descriptor.h"
#include "ring/layout/doorbell_channel.h"

namespace guest {
namespace {

// Returns the nodes of the virtio-serial ports that QEMU's options reserve for doorbells.
std::vector<std::string> doorbell_ports(const std::string& ports) {
  std::vector<std::string> found;
  for (const std::string& port : names_in(ports))
    if (read_text(ports + "/" + port + "/name").starts_with(ring::doorbell_port)) found.push_back(port);
  return found;
}

}  // namespace

bool DoorbellChannel::open(const std::string& ports, const std::string& nodes, std::string& why) {
  const auto all = doorbell_ports(ports);
  why = "the VM has no virtio-serial port whose name begins with " + std::string(ring::doorbell_port) +
        " (qemu-config/pmem.md), or the kernel no module virtio_console";
  for (const std::string& port : all) {
    const std::string node = nodes + "/" + port;
    // Without O_NONBLOCK a write spins in the kernel until QEMU has taken the byte.
    fd_ = cuabi::open_file(node.c_str(), O_RDWR | O_NONBLOCK);
    if (fd_ >= 0) {
      log(Level::Info, "%s is the doorbell channel", node.c_str());
      return true;
    }
    why = errno == EBUSY ? "all " + std::to_string(all.size()) + " doorbell channels of the VM are taken"
                         : "cannot open " + node + ": " + std::strerror(errno) + access_in_words(node.c_str());
  }
  return false;
}

bool DoorbellChannel::connect(std::uint32_t port, Dial dial, std::string& why) {
  fd_ = open_vsock(port, dial, why);
  socket_ = fd_ >= 0;
  if (socket_) log(Level::Info, "vsock port %u of the host is the doorbell channel", port);
  return socket_;
}

void DoorbellChannel::serve(std::uint32_t slot) { send_byte(static_cast<unsigned char>(slot)); }
void DoorbellChannel::ring() { send_byte(ring::doorbell_look); }

// A full channel drops the byte, which is harmless because the broker polls the header as well. MSG_NOSIGNAL: if the
// broker has ended, the kernel must not end this program by a signal.
void DoorbellChannel::send_byte(unsigned char byte) {
  const Uncancelled here;
  if (fd_ >= 0) [[maybe_unused]]
    const auto n = socket_ ? send(fd_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) : write(fd_, &byte, 1);
}

DoorbellChannel::Heard DoorbellChannel::listen(std::uint64_t nanoseconds) {
  const Uncancelled here;
  pollfd port{fd_, POLLIN, 0};
  const timespec limit = timespec_of(nanoseconds);
  const int ready = ppoll(&port, 1, &limit, nullptr);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return Heard::TimedOut;
  char bytes[64];
  const ssize_t n = ready > 0 && (port.revents & POLLIN) != 0 ? read(fd_, bytes, sizeof bytes) : 0;
  if (n > 0) return Heard::Signalled;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Heard::TimedOut;
  if (!ended_.exchange(true, std::memory_order_relaxed))
    log(Level::Info, "the doorbell channel has no other end any more: waits use timed sleeps from now on");
  return Heard::Ended;
}

void DoorbellChannel::forget() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace guest
