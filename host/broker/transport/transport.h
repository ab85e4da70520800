// The way of a VM's guests to the host, a kind for each form of its device (`transport` in the configuration): rings
// for the broker and for its workers, and the presence of guests. doorbell_transport.cc has the ivshmem server and its
// eventfds; plain_transport.cc, for a device that is memory and nothing else, has bits in the region's header and the
// file's openings, and bell channels where the VM has them (bell_server.h).
//
// Trust: a guest may ring without end, so a ring of the broker's is passed on once a millisecond.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/process/fd_store.h"
#include "host/broker/config/config.h"
#include "host/broker/region/region.h"

namespace host::broker {

class Transport {
 public:
  struct Events {
    std::function<void()> rung;                           // the broker is
    std::function<void(std::uint32_t peer)> peer_gone;    // a connection has ended
    std::function<void()> vm_gone;                        // the VM has, where it has no connection
    std::function<void(std::uint32_t slot)> holder_gone;  // the process that has the slot has ended
    // The interrupts of a slot's worker go to this bell channel from now on.
    std::function<void(std::uint32_t slot, std::uint64_t channel)> channel_named;
  };
  virtual ~Transport() = default;

  // The descriptor that the worker of a slot waits on; it stays the transport's.
  virtual int doorbell(std::uint32_t slot) const = 0;
  // The descriptor by which the worker of a slot interrupts its guest; it stays the transport's. Slots may share one.
  // -1: nothing interrupts a guest.
  virtual int interrupt(std::uint32_t slot) const = 0;
  // Rings that the slot's last worker has not taken, and who has held it: it is about to be another's.
  virtual void forget_rings(std::uint32_t slot) = 0;

  virtual bool anybody() const = 0;
  // Guests that are known one by one, by their connections. Not so where they have the memory and nothing else.
  virtual bool tells_peers() const = 0;
  virtual bool has(std::uint32_t peer) const = 0;
  virtual std::size_t connections() const = 0;
  virtual std::string socket() const = 0;  // its path, or ""
  virtual std::string memory() const = 0;  // the path that QEMU opens; "": the region comes through the socket

  // The most connections that may exist; those that exist stay.
  virtual void bound_connections(std::size_t most) = 0;
  // Lets no new guest in; those that are connected stay.
  virtual void shut_door() = 0;
  // Lets no new guest in and calls nothing back any more. Doorbells stay.
  virtual void close() = 0;
};

// The path of a VM's socket, for QEMU, and of its memory where this is no file.
std::string socket_path(const std::string& runtime_dir, const std::string& vm);
std::string memory_path(const std::string& runtime_dir, const std::string& vm);

// Where a transport keeps its doorbells and connections for the next broker, and takes those of the one before.
struct KeptTransport {
  VmStore store;
  std::uint32_t first_peer = ring::first_guest_peer;  // the number of the next connection at the least
  std::vector<std::uint64_t> channels;                // of each slot, as Events::channel_named was told; empty: none
  bool guests = false;                                // slots that an earlier broker's guests had
};
inline constexpr const char* name_of_broker_bell = "broker";
std::string name_of_doorbell(std::uint32_t slot);
std::string name_of_interrupt(std::uint32_t number);
// The names of the descriptors without which the transport of an earlier broker cannot be gone on with.
std::vector<std::string> kept_doorbells(const VmOptions& options);

// The one that `options` names. Null on failure, and `error` is one sentence. `region` outlives it.
// `keep`: what the next broker goes on with.
std::unique_ptr<Transport> make_transport(EventLoop& loop, const Region& region, const VmOptions& options,
                                          const BrokerOptions& broker, const KeptTransport& keep,
                                          Transport::Events events, std::string& error);

// Each kind by itself.
std::unique_ptr<Transport> make_doorbell_transport(EventLoop& loop, const Region& region, const VmOptions& options,
                                                   const BrokerOptions& broker, const KeptTransport& keep,
                                                   Transport::Events events, std::string& error);
std::unique_ptr<Transport> make_plain_transport(EventLoop& loop, const Region& region, const VmOptions& options,
                                                const BrokerOptions& broker, const KeptTransport& keep,
                                                Transport::Events events, std::string& error);

// A ring that comes too soon after the last is passed on later, once for all that came meanwhile.
inline constexpr auto between_rings = std::chrono::milliseconds(1);

}  // namespace host::broker
