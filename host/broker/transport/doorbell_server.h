// The doorbell channels of a VM whose region is persistent memory. QEMU connects a virtio-serial port to the VM's
// socket for each program that may sleep, or programs connect by vsock (ring/layout/doorbell_channel.h has the bytes). A channel
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
#include "host/base/result.h"
#include "host/broker/transport/slot_interrupts.h"
#include "host/broker/transport/vsock_port.h"

namespace host::broker {

class DoorbellServer {
 public:
  using ClientId = SlotInterrupts::ClientId;
  struct Options {
    std::string vm;  // for the log
    ListenerOptions socket;
    std::uint32_t slots = 0;
    std::size_t connections = 0;  // limit
    std::optional<VsockEndpoint> vsock;
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
  // The error is one sentence.
  static Result<std::unique_ptr<DoorbellServer>> listen(EventLoop& loop, Options options, Events events);
  ~DoorbellServer();
  DoorbellServer(const DoorbellServer&) = delete;
  DoorbellServer& operator=(const DoorbellServer&) = delete;

  // The eventfd by which a slot's worker interrupts its guest; this object owns it.
  int interrupt(std::uint32_t slot) const { return interrupts_.fd(slot); }
  std::size_t connected() const { return clients_.size(); }
  void bound_connections(std::size_t most) { options_.connections = most; }
  void stop_admitting();
  // Releases the slot: its channel must not receive the next holder's interrupts.
  void forget(std::uint32_t slot) { interrupts_.give(slot, 0); }

 private:
  struct Client {
    Fd socket;
    std::unique_ptr<PacedWatch> watch;
    bool process = false;       // a program's vsock connection
    bool is_kept = false;       // by the store
    EventLoop::Id silence = 0;  // ends the connection if it names no slot
  };

  DoorbellServer(EventLoop& loop, Options options, Events events);
  Result<void> open_sockets();
  void adopt_channels();
  void adopt_port(const std::string& name, ClientId id);
  bool adopt_program(const std::string& name, ClientId id);
  void keep_program(ClientId id);
  bool has_room();
  void admit_port(Fd socket);
  void admit_program(Fd socket);
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
  void wake(ClientId id) const;

  EventLoop& loop_;
  Options options_;
  const Events events_;
  SlotInterrupts interrupts_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<VsockPort> vsock_;  // null: programs do not connect by themselves
  std::map<ClientId, Client> clients_;
  ClientId next_ = 1;
  EventLoop::Id lost_timer_ = 0;  // ends sessions whose connections closed before this broker started
  LogLimiter full_, nonsense_;
};

}  // namespace host::broker
