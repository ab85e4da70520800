// A bell channel to the broker, for regions that are no ivshmem device (ring/layout/bells.h): a connection by vsock, which is
// this process's own, or a virtio-serial port of the VM's. A process takes the first port that nobody has open, and keeps
// it. Without either it rings by the region's header alone, where the broker looks now and then, and nobody wakes it.
//
// Any thread may ring; one at a time listens. Trust: what is heard is only a reason to look again.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "guest/region/vsock.h"

namespace guest {

class BellChannel {
 public:
  BellChannel() = default;
  ~BellChannel() { forget(); }
  BellChannel(const BellChannel&) = delete;
  BellChannel& operator=(const BellChannel&) = delete;

  // `ports`: "/sys/class/virtio-ports", `nodes`: "/dev". False: there is no port that this process may have, and `why`
  // is one sentence.
  bool open(const std::string& ports, const std::string& nodes, std::string& why);
  // The same by the host's port of vsock.
  bool connect(std::uint32_t port, Dial dial, std::string& why);
  // Whether somebody may be heard.
  bool works() const { return fd_ >= 0 && !ended_.load(std::memory_order_relaxed); }
  // The interrupts of this slot's worker come here from now on.
  void serve(std::uint32_t slot);
  // Has the broker look at the header's bits.
  void ring();
  // Waits for a byte, and takes all there are. Ended: there is nobody at the other end any more.
  enum class Heard : std::uint8_t { Rung, TimedOut, Ended };
  Heard listen(std::uint64_t nanoseconds);
  // Call it in a forked child: the channel is the parent's, whose end the broker hears of when no process has it open.
  void forget();

 private:
  void say(unsigned char byte);

  int fd_ = -1;
  bool socket_ = false;
  std::atomic<bool> ended_{false};
};

}  // namespace guest
