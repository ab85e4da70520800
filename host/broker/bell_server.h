// The bell channels of a VM whose region comes as persistent memory: QEMU connects a virtio-serial port of its to the
// VM's socket, a port for each program that may sleep (ring/bells.h has the bytes). A channel says that there are bits
// in the region's header, and passes a worker's interrupts on to the program that has the worker's slot.
//
// Trust: whoever connects is the VM, and so is whoever writes. A byte of it chooses nothing but which of the VM's own
// slots is woken where; each channel, and each worker, is read so often a second at most.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/broker/event_loop.h"
#include "host/broker/fd.h"
#include "host/broker/listener.h"
#include "host/broker/log_limiter.h"
#include "host/broker/paced_watch.h"

namespace host::broker {

class BellServer {
 public:
  struct Options {
    std::string vm;  // for the log
    ListenerOptions socket;
    std::uint32_t slots = 0;
    std::size_t connections = 0;  // the most that may exist
  };
  // `look` is called for a channel's byte. Null on failure, and `error` is one sentence.
  static std::unique_ptr<BellServer> listen(EventLoop& loop, Options options, std::function<void()> look,
                                            std::string& error);
  ~BellServer();
  BellServer(const BellServer&) = delete;
  BellServer& operator=(const BellServer&) = delete;

  // The eventfd by which the worker of a slot interrupts its guest; it stays this object's.
  int interrupt(std::uint32_t slot) const { return slots_[slot].interrupt.get(); }
  std::size_t connected() const { return clients_.size(); }
  void bound_connections(std::size_t most) { options_.connections = most; }
  void shut_door() { listener_.reset(); }

 private:
  using ClientId = std::uint64_t;  // 0: none
  struct Client {
    Fd socket;
    std::unique_ptr<PacedWatch> watch;
  };
  struct Slot {
    Fd interrupt;
    ClientId client = 0;  // whose channel was the last to name it
    std::unique_ptr<PacedWatch> watch;
  };

  BellServer(EventLoop& loop, Options options, std::function<void()> look)
      : loop_(loop), options_(std::move(options)), look_(std::move(look)) {}
  bool make_interrupts();
  void admit(Fd socket);
  void on_bytes(ClientId id);
  void take(ClientId id, unsigned char byte, bool& looks);
  void on_interrupt(std::uint32_t slot);
  void wake(const Slot& slot) const;

  EventLoop& loop_;
  Options options_;
  const std::function<void()> look_;
  std::unique_ptr<Listener> listener_;
  std::map<ClientId, Client> clients_;
  std::vector<Slot> slots_;
  ClientId next_ = 1;
  LogLimiter full_, nonsense_;
};

}  // namespace host::broker
