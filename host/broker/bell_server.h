// The bell channels of a VM whose region comes as persistent memory: QEMU connects a virtio-serial port of its to the
// VM's socket, a port for each program that may sleep, or the VM's programs connect by themselves, by vsock (ring/bells.h
// has the bytes). A channel says that there are bits in the region's header, and passes a worker's interrupts on to the
// program that has the worker's slot. With a connection by vsock the process ends that had it, so its slot is free then.
//
// Channels outlive the broker where there is a store, under the same numbers: a port does not tell its program to say its
// slot once more, and QEMU may not connect again. A program's own connection ends with the broker, and the program naps.
//
// Trust: whoever connects to the socket is the VM, and so is who comes from its CID; and so is whoever writes. A byte of
// it chooses nothing but which of the VM's own slots is woken where, and which is free when its writer ends: no more than
// the VM can do in the directory. Each channel, and each worker, is read so often a second at most; so many connections by
// vsock are taken a second, and one that has no slot is ended after a time.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/broker/event_loop.h"
#include "host/broker/fd.h"
#include "host/broker/listener.h"
#include "host/broker/log_limiter.h"
#include "host/broker/paced_watch.h"
#include "host/broker/vsock.h"

namespace host::broker {

// Programs of the VM connect here by themselves.
struct VsockDoor {
  Fd socket;  // bound
  std::uint32_t cid = 0;
  std::optional<std::uint32_t> (*cid_of)(int socket) = cid_of_peer;
  // A program waits for a slot for 20 s at most (guest/session/claim.h), and names it then.
  Clock::duration patience = std::chrono::seconds(60);
  // As many as starts_per_second lets begin at most.
  double per_second = 1000, burst = 200;
};

class BellServer {
 public:
  using ClientId = std::uint64_t;  // 0: none
  struct Options {
    std::string vm;  // for the log
    ListenerOptions socket;
    std::uint32_t slots = 0;
    std::size_t connections = 0;  // the most that may exist
    std::optional<VsockDoor> vsock;
    VmStore store;                   // where ports' channels are kept for the next broker, as "port/N"
    std::vector<ClientId> channels;  // of each slot, as `named` was told by an earlier broker; empty: none
  };
  struct Events {
    std::function<void()> look;                                      // a channel's byte asks for it
    std::function<void(std::uint32_t slot)> ended;                   // the process that has the slot
    std::function<void(std::uint32_t slot, ClientId client)> named;  // whose channel has a slot's interrupts
  };
  // Null on failure, and `error` is one sentence.
  static std::unique_ptr<BellServer> listen(EventLoop& loop, Options options, Events events, std::string& error);
  ~BellServer();
  BellServer(const BellServer&) = delete;
  BellServer& operator=(const BellServer&) = delete;

  // The eventfd by which the worker of a slot interrupts its guest; it stays this object's.
  int interrupt(std::uint32_t slot) const { return slots_[slot].interrupt.get(); }
  std::size_t connected() const { return clients_.size(); }
  void bound_connections(std::size_t most) { options_.connections = most; }
  void shut_door() { listener_.reset(), vsock_.reset(); }
  // Nobody has the slot any more: who named it has nothing to do with its next holder.
  void forget(std::uint32_t slot) { slots_[slot].client = 0; }

 private:
  struct Client {
    Fd socket;
    std::unique_ptr<PacedWatch> watch;
    bool process = false;       // a process's own connection, by vsock
    EventLoop::Id silence = 0;  // its timer
  };
  struct Slot {
    Fd interrupt;
    ClientId client = 0;  // whose channel was the last to name it
    std::unique_ptr<PacedWatch> watch;
  };

  BellServer(EventLoop& loop, Options options, Events events)
      : loop_(loop), options_(std::move(options)), events_(std::move(events)) {}
  bool make_interrupts();
  bool open_doors(std::string& error);
  Fd make_interrupt(std::uint32_t slot) const;
  void adopt_channels();
  bool has_room();
  void admit_port(Fd socket);
  void admit_program(Fd socket);
  void admit_own(Fd socket);
  void enter(ClientId id, Fd socket, bool process);
  void drop(ClientId id);
  void on_silence(ClientId id);
  void on_bytes(ClientId id);
  void on_end(ClientId id);
  struct Heard {
    bool look = false, slot = false;
  };
  void take(ClientId id, unsigned char byte, Heard& heard);
  void on_interrupt(std::uint32_t slot);
  void wake(ClientId id) const;

  EventLoop& loop_;
  Options options_;
  const Events events_;
  std::unique_ptr<Listener> listener_, vsock_;
  std::map<ClientId, Client> clients_;
  std::vector<Slot> slots_;
  ClientId next_ = 1;
  LogLimiter full_, nonsense_, strangers_;
};

}  // namespace host::broker
