#include "host/broker/transport/slot_interrupts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "host/broker/transport/transport.h"

namespace host::broker {

bool SlotInterrupts::make(std::uint32_t slots) {
  slots_.resize(slots);
  for (std::uint32_t k = 0; k < slots; ++k) {
    Slot& slot = slots_[k];
    slot.interrupt = make_interrupt(k);
    if (!slot.interrupt) return false;
    slot.watch = std::make_unique<PacedWatch>(loop_, slot.interrupt.get(), [this, k] { on_interrupt(k); });
  }
  return true;
}

// The eventfd of an earlier broker, which its worker has, or a new one.
SharedFd SlotInterrupts::make_interrupt(std::uint32_t slot) const {
  const std::string name = name_of_interrupt(slot);
  if (Fd left = store_.take(name); left) return SharedFd(std::move(left));
  SharedFd made = SharedFd::make_doorbell();
  if (made) store_.keep(name, made.get());
  return made;
}

void SlotInterrupts::adopt(const std::vector<ClientId>& clients) {
  for (std::uint32_t k = 0; k < clients.size() && k < slots_.size(); ++k) slots_[k].client = clients[k];
}

bool SlotInterrupts::has_slot(ClientId id) const {
  return id != 0 && std::any_of(slots_.begin(), slots_.end(), [id](const Slot& slot) { return slot.client == id; });
}

void SlotInterrupts::give(std::uint32_t slot, ClientId id) {
  if (slots_[slot].client == id) return;
  slots_[slot].client = id;
  events_.named(slot, id);
}

void SlotInterrupts::take_all_from(ClientId id) {
  for (std::uint32_t k = 0; k < slots_.size(); ++k)
    if (slots_[k].client == id) give(k, 0);
}

// Reads the interrupt even without a channel: a worker does not signal again before its last interrupt was read.
void SlotInterrupts::on_interrupt(std::uint32_t slot) {
  slots_[slot].interrupt.drain();
  events_.interrupted(slots_[slot].client);
}

}  // namespace host::broker
