// What the process's own memory is: the system's list of its mappings.
#pragma once

#include <cstddef>

#include "host/simgpu/engine.h"

namespace simgpu {

struct ProcessMemory {
  bool there = true;         // all of it, without a hole
  bool readable = true;      // all of it
  bool writable = true;      // all of it
  bool shared_file = false;  // some of it is a file's, and what is written reaches the file
};

ProcessMemory process_memory(Address start, std::size_t size);

}  // namespace simgpu
