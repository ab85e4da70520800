// The sides of a copy of rows or texels, as the driver accepts them. The kind of each side is explicit. With
// CU_MEMORYTYPE_UNIFIED, a driver would treat an unknown address as memory of its own process, the worker
// (docs/design/045-addresses-that-are-gone.md).
#pragma once

#include <cstring>

#include "host/session/session.h"
#include "host/untrusted/marshal/decoded_request.h"

namespace host::calls {

struct CopySide {
  CUmemorytype type;
  void* host;
  CUdeviceptr device;
  CUarray array;
};

// Describes a side. `array`: null for plain memory. Precondition: the session may use the side's memory. The arena
// stays mapped as long as the worker lives, so the driver gets it as host memory. The driver gets any other address as
// device memory, and refuses an address that it does not know.
inline CopySide side_of(const Session& session, std::uint64_t address, CUarray array = nullptr) {
  if (array != nullptr) return {CU_MEMORYTYPE_ARRAY, nullptr, 0, array};
  if (!session.arena.holds(address)) return {CU_MEMORYTYPE_DEVICE, nullptr, address, nullptr};
  return {CU_MEMORYTYPE_HOST, session.arena.bytes_at(address - session.arena.address(), 1).for_driver(), 0, nullptr};
}

inline void set_sides(CUDA_MEMCPY3D& copy, const CopySide& to, const CopySide& from) {
  copy.dstMemoryType = to.type, copy.dstHost = to.host, copy.dstDevice = to.device, copy.dstArray = to.array;
  copy.srcMemoryType = from.type, copy.srcHost = from.host, copy.srcDevice = from.device, copy.srcArray = from.array;
}

// Describes the copy, without the stream.
template <class R>
CUDA_MEMCPY3D copy_of(const DecodedRequest<R>& t) {
  using Record = api::CopyTexelsRecord;
  using api::TexelsSide;
  const Record& record = t.record;
  const auto array = [&](TexelsSide Record::*side) {
    return t.template handle<CUarray>(api::field::of(side, &TexelsSide::array));
  };
  CUDA_MEMCPY3D copy;
  std::memset(&copy, 0, sizeof copy);
  set_sides(copy, side_of(t.session(), record.to.address, array(&Record::to)),
            side_of(t.session(), record.from.address, array(&Record::from)));
  copy.dstPitch = record.to.pitch, copy.dstHeight = record.to.rows;
  copy.srcPitch = record.from.pitch, copy.srcHeight = record.from.rows;
  copy.dstXInBytes = record.to.x, copy.dstY = record.to.y, copy.dstZ = record.to.z;
  copy.srcXInBytes = record.from.x, copy.srcY = record.from.y, copy.srcZ = record.from.z;
  copy.WidthInBytes = record.width, copy.Height = record.height, copy.Depth = record.depth;
  return copy;
}

// Counts the bytes of a copy of rows. The host's side is in the arena. A copy within the device counts in neither
// direction.
template <class R>
void count_rows(const DecodedRequest<R>& t) {
  const api::CopyRowsRecord& copy = t.record;
  const bool from_host = t.session().arena.holds(copy.from.address), to_host = t.session().arena.holds(copy.to.address);
  const std::uint64_t bytes = copy.width * copy.height * copy.depth;
  if (from_host && !to_host) t.request.to_device = bytes;
  if (to_host && !from_host) t.request.from_device = bytes;
}

template <class R>
CUDA_MEMCPY3D rows_of(const DecodedRequest<R>& t) {
  const api::CopyRowsRecord& record = t.record;
  CUDA_MEMCPY3D copy;
  std::memset(&copy, 0, sizeof copy);
  set_sides(copy, side_of(t.session(), record.to.address), side_of(t.session(), record.from.address));
  copy.dstPitch = record.to.pitch, copy.dstHeight = record.to.rows;
  copy.srcPitch = record.from.pitch, copy.srcHeight = record.from.rows;
  copy.WidthInBytes = record.width, copy.Height = record.height, copy.Depth = record.depth;
  return copy;
}

}  // namespace host::calls
