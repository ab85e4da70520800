// The owner of a slot: which process it is, and whether it still lives. In a VM without the kernel module, the next
// program that wants a slot checks this.
#pragma once

#include "ring/layout/layout.h"

namespace guest {

ring::SlotOwner this_process(std::uint32_t peer);

// A program's name as stored in a slot's entry: cut, NUL-terminated.
struct ProgramName {
  char text[sizeof ring::SlotEntry::program];
};
ProgramName this_program();
// The name with '?' for each byte that is not printable ASCII, since another program of the VM wrote it.
ProgramName printable(ProgramName name);

// True if the owner is certainly dead. It is from an earlier boot of the same VM. Or it is of this boot and pid
// namespace, and its pid has no process, a younger process, or a zombie. An owner in another pid namespace never counts
// as dead.
bool certainly_dead(const ring::SlotOwner& owner, const ring::SlotOwner& self);

}  // namespace guest
