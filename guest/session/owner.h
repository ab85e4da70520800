// Who holds a slot, and whether it still lives: asked by the next program that wants one, in a VM without the kernel
// module.
#pragma once

#include "ring/layout.h"

namespace guest {

ring::SlotOwner this_process(std::uint32_t peer);

// This program's name as a slot's entry holds it: cut, NUL-terminated.
struct ProgramName {
  char text[sizeof ring::SlotEntry::program];
};
ProgramName this_program();
// Printable ASCII as it is, '?' for each other byte: another program of the VM has written it.
ProgramName printable(ProgramName name);

// Whether the owner is certainly dead: the same machine start and pid namespace, and no such process, or another one by
// its start time, or one that has ended and whose parent has not asked after it; or an earlier start of the same VM. An
// owner of another namespace is never judged.
bool certainly_dead(const ring::SlotOwner& owner, const ring::SlotOwner& self);

}  // namespace guest
