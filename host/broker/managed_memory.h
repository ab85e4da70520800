// How much managed memory a process has: the kernel module nvidia-uvm gives it on whichever GPU touches it, and NVIDIA's
// management library names it to nobody.
//
// Source: tests/probes/managed.cc on an H100, driver 580.159.04: a process maps the module's device file for managed memory,
// to the byte in pieces of 2 MiB, and 2 MiB for each context; for no other way of taking memory. It cannot have the one
// without the other: with the mapping the memory goes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <istream>
#include <optional>
#include <string>

namespace host::broker {

// What a process has mapped of that file, in bytes: at least as much as it holds. `maps`: a text as /proc/PID/maps. Nothing
// where the text is longer than an honest process's is (16 MiB), as one may make it that wants to hide something behind.
std::optional<std::uint64_t> managed_in(std::istream& maps);

struct ManagedMemory {
  std::uint64_t bytes = 0;
  std::string unread;  // why it is not known; "": it is
};
// Of a process of this machine; none of one that has ended. `at_most`: what it has where its list is too long. Takes as long
// as the kernel needs for the list, a millisecond for some thousand mappings. Thread-safe.
ManagedMemory managed_memory_of(pid_t process, std::uint64_t at_most);

}  // namespace host::broker
