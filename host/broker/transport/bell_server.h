// The bell channels of a VM whose region comes as persistent memory: QEMU connects a virtio-serial port of its to the
// VM's socket, a port for each program that may sleep, or the VM's programs connect by themselves, by vsock (ring/layout/bells.h
// has the bytes). A channel says that there are bits in the region's header, and passes a worker's interrupts on to the
// program that has the worker's slot. With a connection by vsock the process ends that had it, so its slot is free then.
//
// Channels outlive the broker where there is a store, under the same numbers: a port does not tell its program to say its
// slot once more, and QEMU may not connect again. So do connections by vsock that have named a slot, as far as there is
// room. One that is not kept ends with the broker: its program naps from then on, and its session goes on.
//
// Trust: whoever connects to the socket is the VM, and so is who comes from its CID; and so is whoever writes. A byte of
// it chooses nothing but which of the VM's own slots is woken where, and which is free when its writer ends: no more than
// the VM can do in the directory. Each channel, and each worker, is read so often a second at most; so many connections by
// vsock are taken and kept a second, and one that has no slot is ended after a time. What an earlier broker has left as a
// connection by vsock is one if a slot names it and the kernel says that its other end is the VM; else it is ended, and so is
// the session of a slot that names it.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/fd.h"
#include "host/base/log_limiter.h"
#include "host/base/paced_watch.h"
#include "host/base/process/listener.h"
#include "host/base/shared_fd.h"
#include "host/base/vsock.h"

namespace host::broker {

// Programs of the VM connect here by themselves.
struct VsockDoor {
  BoundSocket socket;  // without a descriptor where another has the port: it is tried again
  std::uint32_t port = 0, cid = 0;
  BoundVsock (*bind)(std::uint32_t port) = bind_vsock;
  std::optional<std::uint32_t> (*cid_of)(int socket) = cid_of_peer;
  // A program waits for a slot for 20 s at most (guest/session/slot/claim.h), and names it then.
  Clock::duration patience = std::chrono::seconds(60);
  // As many as starts_per_second lets begin at most.
  double per_second = 1000, burst = 200;
  // The service manager keeps this many a second at most. It keeps the others once they say their slot again, or after `patience`.
  double kept_per_second = 200, kept_burst = 200;

  std::string in_words(const std::string& vm, const std::string& error) const;  // one sentence
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
    VmStore store;                   // where channels are kept for the next broker, as "port/N" and "program/N"
    std::vector<ClientId> channels;  // of each slot, as `named` was told by an earlier broker; empty: none
  };
  struct Events {
    std::function<void()> look;                     // a channel's byte asks for it
    std::function<void(std::uint32_t slot)> ended;  // the process that has the slot
    std::function<void(std::uint32_t slot, ClientId client)>
        named;  // whose channel has a slot's interrupts; 0: nobody's
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
  void shut_door();
  // Nobody has the slot any more: who named it has nothing to do with its next holder.
  void forget(std::uint32_t slot) { give(slot, 0); }

 private:
  struct Client {
    Fd socket;
    std::unique_ptr<PacedWatch> watch;
    bool process = false;       // a process's own connection, by vsock
    bool is_kept = false;       // by the store
    EventLoop::Id silence = 0;  // its timer
  };
  struct Slot {
    SharedFd interrupt;
    ClientId client = 0;  // whose channel was the last to name it
    std::unique_ptr<PacedWatch> watch;
  };

  BellServer(EventLoop& loop, Options options, Events events);
  bool make_interrupts();
  bool open_doors(std::string& error);
  bool open_vsock(std::string& error);
  void await_port(Clock::time_point since);
  void try_port(Clock::time_point since, bool is_late);
  SharedFd make_interrupt(std::uint32_t slot) const;
  void adopt_channels();
  void adopt_port(const std::string& name, ClientId id);
  bool adopt_program(const std::string& name, ClientId id);
  void give(std::uint32_t slot, ClientId id);
  bool has_slot(ClientId id) const;
  void keep_program(ClientId id);
  bool has_room();
  void admit_port(Fd socket);
  void admit_program(Fd socket);
  void admit_own(Fd socket);
  void enter(ClientId id, Fd socket, bool process, bool is_kept);
  void drop(ClientId id);
  void on_silence(ClientId id);
  void on_bytes(ClientId id);
  void on_end(ClientId id);
  void end_sessions_of(ClientId id);
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
  TokenBucket keeping_;
  EventLoop::Id lost_timer_ = 0;  // sessions of connections that ended before this broker end
  EventLoop::Id port_timer_ = 0;  // until another lets go of vsock's port
  LogLimiter full_, nonsense_, strangers_;
};

}  // namespace host::broker
