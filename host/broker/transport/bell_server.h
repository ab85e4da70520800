// The doorbell channels of a VM whose region is persistent memory. QEMU connects a virtio-serial port to the VM's
// socket for each program that may sleep, or programs connect by vsock (ring/layout/bells.h has the bytes). A channel
// reports that bits are set in the region's header, and passes a worker's interrupts to the program that has its slot.
// A vsock connection closes when its process ends, and the broker then frees the slot.
//
// With a store, channels outlive the broker under the same numbers. A virtio-serial port cannot ask its program to name
// its slot again, and QEMU may not reconnect. vsock connections that have named a slot are kept if there is room. A
// program whose channel is not kept uses timed sleeps from then on, and its session goes on.
//
// Trust: a peer that connects to the socket, or from the VM's CID, is the VM. Its bytes only choose which of its own slots
// is woken where, and which slot is freed when the connection closes. The VM can do as much in the directory. Reads of
// each channel and worker, and new and kept vsock connections, are limited in rate. A connection that names no slot is
// ended after a time. A vsock connection from an earlier broker is used if a slot names it and the kernel says that its
// peer is the VM. Otherwise the connection and the session of its slot are ended.
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

// The vsock port to which the VM's programs connect.
struct VsockDoor {
  BoundSocket socket;  // empty while another program has the port, which is retried
  std::uint32_t port = 0, cid = 0;
  BoundVsock (*bind)(std::uint32_t port) = bind_vsock;
  std::optional<std::uint32_t> (*cid_of)(int socket) = cid_of_peer;
  // A program waits for a slot for 20 s at most (guest/session/slot/claim.h), and then names it.
  Clock::duration patience = std::chrono::seconds(60);
  // As many as the largest starts_per_second.
  double per_second = 1000, burst = 200;
  // Rate at which the service manager keeps connections. Others are kept when they next name their slot, or after
  // `patience`.
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
    std::size_t connections = 0;  // limit
    std::optional<VsockDoor> vsock;
    VmStore store;  // keeps channels for the next broker, as "port/N" and "program/N"
    std::vector<ClientId>
        channels;  // the channel of each slot, as an earlier broker recorded from `named`; empty: none
  };
  struct Events {
    std::function<void()> look;                     // a channel's byte requests it
    std::function<void(std::uint32_t slot)> ended;  // the process that holds the slot
    std::function<void(std::uint32_t slot, ClientId client)>
        named;  // the channel that receives the slot's interrupts; 0: none
  };
  // Null on failure, and `error` is one sentence.
  static std::unique_ptr<BellServer> listen(EventLoop& loop, Options options, Events events, std::string& error);
  ~BellServer();
  BellServer(const BellServer&) = delete;
  BellServer& operator=(const BellServer&) = delete;

  // The eventfd by which a slot's worker interrupts its guest; this object owns it.
  int interrupt(std::uint32_t slot) const { return slots_[slot].interrupt.get(); }
  std::size_t connected() const { return clients_.size(); }
  void bound_connections(std::size_t most) { options_.connections = most; }
  void shut_door();
  // Releases the slot: its channel must not receive the next holder's interrupts.
  void forget(std::uint32_t slot) { give(slot, 0); }

 private:
  struct Client {
    Fd socket;
    std::unique_ptr<PacedWatch> watch;
    bool process = false;       // a program's vsock connection
    bool is_kept = false;       // by the store
    EventLoop::Id silence = 0;  // ends the connection if it names no slot
  };
  struct Slot {
    SharedFd interrupt;
    ClientId client = 0;  // the channel that named it last
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
  EventLoop::Id lost_timer_ = 0;  // ends sessions whose connections closed before this broker started
  EventLoop::Id port_timer_ = 0;  // retries a vsock port in use
  LogLimiter full_, nonsense_, strangers_;
};

}  // namespace host::broker
