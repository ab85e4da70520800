// The owner of a slot: which process it is, and whether that process is alive. In a VM without the kernel module, the
// next program that wants a slot checks this.
#pragma once

#include "ring/layout/layout.h"

namespace guest {

ring::SlotOwner this_process(std::uint32_t peer);

// A program's name as stored in a slot's entry: shortened, and terminated by NUL.
struct ProgramName {
  char text[sizeof ring::SlotEntry::program];
};
ProgramName this_program();
// Replaces each byte of the name that is not printable ASCII by '?', since another program of the VM wrote the name.
ProgramName printable(ProgramName name);

// Returns true if the owner is certainly dead. Then the owner is from an earlier boot of the same VM, or the owner is
// of this boot and pid namespace, and its pid belongs to no process, a younger process, or a zombie. An owner in
// another pid namespace never counts as dead.
bool certainly_dead(const ring::SlotOwner& owner, const ring::SlotOwner& self);

}  // namespace guest
