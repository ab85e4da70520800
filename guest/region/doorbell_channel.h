// A doorbell channel to the broker, for regions that are no ivshmem device (ring/layout/doorbell_channel.h). The
// channel is this process's vsock connection, or the first of the VM's virtio-serial ports that no process has open.
// Without a channel, a process rings through the region's header, which the broker polls, and no worker can wake the
// process.
//
// Any thread may ring; one thread at a time listens. Trust: a byte only makes the guest look again.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "guest/region/vsock.h"

namespace guest {

class DoorbellChannel {
 public:
  DoorbellChannel() = default;
  ~DoorbellChannel() { forget(); }
  DoorbellChannel(const DoorbellChannel&) = delete;
  DoorbellChannel& operator=(const DoorbellChannel&) = delete;

  // Opens a virtio-serial port. `ports`: "/sys/class/virtio-ports", `nodes`: "/dev". Returns false if this process can
  // open no port, and sets `why` to one sentence.
  bool open(const std::string& ports, const std::string& nodes, std::string& why);
  // Like open(), with a vsock port of the host.
  bool connect(std::uint32_t port, Dial dial, std::string& why);
  // Returns whether the channel is open at both ends.
  bool works() const { return fd_ >= 0 && !ended_.load(std::memory_order_relaxed); }
  // Makes the interrupts of this slot's worker arrive through this channel from now on.
  void serve(std::uint32_t slot);
  // Makes the broker look at the header's bits.
  void ring();
  // Waits for a byte, and reads all bytes that have arrived. Ended: the broker has closed its end.
  enum class Heard : std::uint8_t { Signalled, TimedOut, Ended };
  Heard listen(std::uint64_t nanoseconds);
  // Called in a forked child. Closes the child's copy, since the broker notices the parent's end only when no process
  // has the channel open.
  void forget();

 private:
  void send_byte(unsigned char byte);

  int fd_ = -1;
  bool socket_ = false;
  std::atomic<bool> ended_{false};
};

}  // namespace guest
