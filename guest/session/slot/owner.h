// The owner of a slot: which process it is, and whether it still lives. In a VM without the kernel module the next
// program that wants a slot asks this.
#pragma once

#include "ring/layout/layout.h"

namespace guest {

ring::SlotOwner this_process(std::uint32_t peer);

// A program's name as a slot's entry holds it: cut, NUL-terminated.
struct ProgramName {
  char text[sizeof ring::SlotEntry::program];
};
ProgramName this_program();
// The name with '?' for each byte that is not printable ASCII, since another program of the VM has written it.
ProgramName printable(ProgramName name);

// True if the owner is certainly dead. It is of this start of the machine and of this pid namespace, and there is no
// such process, or one with another start time, or a zombie. Or it is of an earlier start of the same VM. An owner in
// another pid namespace never counts as dead.
bool certainly_dead(const ring::SlotOwner& owner, const ring::SlotOwner& self);

}  // namespace guest
