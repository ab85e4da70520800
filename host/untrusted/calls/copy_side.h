// A side of a copy of rows, as the driver takes it. Its kind is always said. Where it is not (UNIFIED), a driver takes an
// address that it does not know for memory of its own process, which is the worker's
// (docs/design/045-addresses-that-are-gone.md).
#pragma once

#include "host/session/session.h"

namespace host::calls {

struct CopySide {
  CUmemorytype type;
  void* host;
  CUdeviceptr device;
  CUarray array;
};

// `array`: null where the side is plain memory. Preconditions: the session may name the side's memory. The arena stays where
// it is for as long as the worker lives, so the driver may take it as memory of the host. The driver looks up any other
// address as device memory and refuses one that it does not know.
inline CopySide side_of(const Session& session, std::uint64_t address, CUarray array = nullptr) {
  if (array != nullptr) return {CU_MEMORYTYPE_ARRAY, nullptr, 0, array};
  if (!session.in_arena(address)) return {CU_MEMORYTYPE_DEVICE, nullptr, address, nullptr};
  return {CU_MEMORYTYPE_HOST, session.arena(address - session.arena_address(), 1).for_driver(), 0, nullptr};
}

inline void set_sides(CUDA_MEMCPY3D& copy, const CopySide& to, const CopySide& from) {
  copy.dstMemoryType = to.type, copy.dstHost = to.host, copy.dstDevice = to.device, copy.dstArray = to.array;
  copy.srcMemoryType = from.type, copy.srcHost = from.host, copy.srcDevice = from.device, copy.srcArray = from.array;
}

}  // namespace host::calls
