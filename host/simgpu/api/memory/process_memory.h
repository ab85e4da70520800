// Properties of the process's own memory, from /proc.
#pragma once

#include <cstddef>

#include "host/simgpu/engine.h"

namespace simgpu {

struct ProcessMemory {
  bool there = true;         // the whole range is mapped
  bool readable = true;      // the whole range
  bool writable = true;      // the whole range
  bool shared_file = false;  // part of it is a shared file mapping
};

ProcessMemory process_memory(Address start, std::size_t size);

}  // namespace simgpu
