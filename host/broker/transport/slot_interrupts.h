// The interrupt of each slot of a VM with doorbell channels, and the channel that receives it.
//
// DoorbellServer owns it. A worker signals its slot's eventfd; the loop drains the eventfd and reports the slot's channel.
// Thread: the broker's loop.
//
// Trust: workers can signal without end; each eventfd is read at a limited rate.
// Invariant: a slot has one channel at most, and `named` reports each change of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "host/base/event_loop.h"
#include "host/base/paced_watch.h"
#include "host/base/process/fd_store.h"
#include "host/base/shared_fd.h"

namespace host::broker {

class SlotInterrupts {
 public:
  using ClientId = std::uint64_t;  // a channel; 0: none
  struct Events {
    // A worker has signalled its slot, which this channel has named.
    std::function<void(ClientId client)> interrupted;
    // The slot's channel has changed.
    std::function<void(std::uint32_t slot, ClientId client)> named;
  };
  // `store` keeps the eventfds for the next broker.
  SlotInterrupts(EventLoop& loop, VmStore store, Events events)
      : loop_(loop), store_(std::move(store)), events_(std::move(events)) {}
  SlotInterrupts(const SlotInterrupts&) = delete;
  SlotInterrupts& operator=(const SlotInterrupts&) = delete;

  // Once, before all else. False on failure, and errno has the reason.
  [[nodiscard]] bool make(std::uint32_t slots);
  // The channels as an earlier broker recorded them; nothing is reported.
  void adopt(const std::vector<ClientId>& clients);

  std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_.size()); }
  // The slot's eventfd, which this object owns.
  int fd(std::uint32_t slot) const { return slots_[slot].interrupt.get(); }
  ClientId client(std::uint32_t slot) const { return slots_[slot].client; }
  bool has_slot(ClientId id) const;
  void give(std::uint32_t slot, ClientId id);
  // Leaves the slots of a channel without one.
  void take_all_from(ClientId id);

 private:
  struct Slot {
    SharedFd interrupt;
    ClientId client = 0;  // the channel that named it last
    std::unique_ptr<PacedWatch> watch;
  };

  SharedFd make_interrupt(std::uint32_t slot) const;
  void on_interrupt(std::uint32_t slot);

  EventLoop& loop_;
  const VmStore store_;
  const Events events_;
  std::vector<Slot> slots_;
};

}  // namespace host::broker
