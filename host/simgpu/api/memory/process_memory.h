// Properties of memory of this process, as /proc reports them.
#pragma once

#include <cstddef>

#include "host/simgpu/engine.h"

namespace simgpu {

struct ProcessMemory {
  bool there = true;         // the whole range is mapped
  bool readable = true;      // the whole range is readable
  bool writable = true;      // the whole range is writable
  bool shared_file = false;  // at least a part of the range is a shared file mapping
};

ProcessMemory process_memory(Address start, std::size_t size);

}  // namespace simgpu
