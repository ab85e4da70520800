// Connects a VM's guests to the host, with a subclass for each form of the device (`transport` in the configuration).
// It delivers doorbells to the broker and the workers, and detects guests. doorbell_transport.cc uses the ivshmem
// server and its eventfds. plain_transport.cc, for a device that is memory only, uses bits in the region's header, the
// file's openings, and doorbell channels if the VM has them (doorbell_server.h).
//
// Trust: a guest may send doorbells without end, so the broker's doorbell is handled once a millisecond at most.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/process/fd_store.h"
#include "host/base/result.h"
#include "host/broker/config/config.h"
#include "host/broker/region/region.h"

namespace host::broker {

class Transport {
 public:
  struct Events {
    std::function<void()> signalled;                      // the broker was signalled
    std::function<void(std::uint32_t peer)> peer_gone;    // a connection has ended
    std::function<void()> vm_gone;                        // a VM without connections has ended
    std::function<void(std::uint32_t slot)> holder_gone;  // the process that has the slot has ended
    // This doorbell channel now gets the interrupts of the slot's worker.
    std::function<void(std::uint32_t slot, std::uint64_t channel)> channel_named;
  };
  virtual ~Transport() = default;

  // The descriptor on which a slot's worker waits; the transport owns it.
  virtual int doorbell(std::uint32_t slot) const = 0;
  // The descriptor by which a slot's worker interrupts its guest, owned by the transport. Slots may share one. -1:
  // guests cannot be interrupted.
  virtual int interrupt(std::uint32_t slot) const = 0;
  // Discards unread doorbells and the last holder of the slot, before its next worker starts.
  virtual void forget_rings(std::uint32_t slot) = 0;

  virtual bool anybody() const = 0;
  // True if connections identify the guests. False for a device that is memory only.
  virtual bool knows_peers() const = 0;
  virtual bool has(std::uint32_t peer) const = 0;
  virtual std::size_t connections() const = 0;
  virtual std::string socket() const = 0;  // its path, or ""
  virtual std::string memory() const = 0;  // the path that QEMU opens; "": the region is passed through the socket

  // Limits the connections; existing ones stay.
  virtual void bound_connections(std::size_t most) = 0;
  // Accepts no new guest; connected guests stay.
  virtual void stop_admitting() = 0;
  // Accepts no new guest and makes no more callbacks. Doorbells stay open.
  virtual void close() = 0;
};

// The path of a VM's socket, and of the link to its memory if that is a memfd.
std::string socket_path(const std::string& runtime_dir, const std::string& vm);
std::string memory_path(const std::string& runtime_dir, const std::string& vm);

// Doorbells and connections that a transport keeps for the next broker, and takes over from an earlier one.
struct KeptTransport {
  VmStore store;
  std::uint32_t first_peer = ring::first_guest_peer;  // lower bound for the next connection's number
  std::vector<std::uint64_t> channels;  // the channel of each slot, as Events::channel_named reported; empty: none
  bool guests = false;                  // guests of an earlier broker had slots
};
inline constexpr const char* name_of_broker_doorbell = "broker";
std::string name_of_doorbell(std::uint32_t slot);
std::string name_of_interrupt(std::uint32_t number);
// The names of the descriptors without which an earlier broker's transport cannot be adopted.
std::vector<std::string> kept_doorbells(const VmOptions& options);

// Makes the transport that `options` names. The error is one sentence. `region` outlives it. `keep`: state for the next
// broker.
Result<std::unique_ptr<Transport>> make_transport(EventLoop& loop, const Region& region, const VmOptions& options,
                                                  const BrokerOptions& broker, const KeptTransport& keep,
                                                  Transport::Events events);

Result<std::unique_ptr<Transport>> make_doorbell_transport(EventLoop& loop, const Region& region,
                                                           const VmOptions& options, const BrokerOptions& broker,
                                                           const KeptTransport& keep, Transport::Events events);
Result<std::unique_ptr<Transport>> make_plain_transport(EventLoop& loop, const Region& region, const VmOptions& options,
                                                        const BrokerOptions& broker, const KeptTransport& keep,
                                                        Transport::Events events);

// Doorbells sooner than this after the last are merged into one, and handled later.
inline constexpr auto between_rings = std::chrono::milliseconds(1);

}  // namespace host::broker
