// Copies between host and device. The guest's half is handwritten because the host's side of a copy is guest memory. A
// record gives the position of pinned memory in the arena. Small pageable copies travel in the record or the reply,
// large ones through staging chunks (staged_copy.h).
//
// The caller sees CUDA's semantics. A synchronous copy is complete when it returns. An asynchronous copy from pageable
// memory has read the bytes when it returns; an asynchronous copy to pageable memory is complete.
#include <cstring>

#include "guest/calls/calls.h"
#include "guest/calls/captured.h"
#include "guest/calls/copy/judge_copy.h"
#include "guest/calls/copy/pageable_copy.h"
#include "guest/calls/copy/staged_copy.h"
#include "guest/calls/stub.h"
#include "guest/marshal/custom.h"
#include "ring/api/records.h"

namespace guest::calls {
namespace {

// The most bytes that travel in a record, and in a reply. Up to this size, one more copy in the cache is cheaper than
// the bookkeeping for a chunk. The bytes of a reply cross from the worker's processor to the guest's, while the GPU
// writes a chunk to memory.
constexpr std::size_t record_limit = 32 << 10, reply_limit = 1 << 10;

Crossing crossing(const Copy& c) { return {.call = c.call(), .context = *c.context, .stream = &c.ref}; }

// Pinned memory: the driver copies directly from or to these pages.
CUresult copy_pinned(const Copy& c) {
  Session& s = *session();
  const auto there = s.memory.addresses.device_view(reinterpret_cast<std::uint64_t>(c.host), c.bytes);
  if (!there) return CUDA_ERROR_INVALID_VALUE;  // another thread has just freed the memory
  const Sent sent = cross(crossing(c), c.record(*there - s.device_address(0), 0, c.bytes));
  s.memory.staged_bytes.fetch_add(c.bytes, std::memory_order_relaxed);
  return sent.result;
}

CUresult copy_inline(const Copy& c) {
  const api::CopyRecord record = c.record(ring::absent, 0, c.bytes);
  const Part part{c.host, c.bytes};
  if (c.direction == Direction::ToDevice) return cross(crossing(c), record, {&part, 1}, read_nothing).result;
  const auto read = [&](CUresult result, ring::SharedReader& r) {
    if (result == CUDA_SUCCESS) r.copy(c.host, c.bytes);
  };
  return cross(crossing(c), record, {}, read).result;
}

// Copies between two addresses of the GPU: the host's side is device memory, or a managed variable, whose bytes the
// driver holds. CUDA decides by the addresses and not by the name of the call.
CUresult copy_on_device(const Copy& c) {
  const auto host = reinterpret_cast<CUdeviceptr>(c.host);
  const CUdeviceptr to = c.direction == Direction::ToDevice ? c.device_at : host;
  const CUdeviceptr from = c.direction == Direction::ToDevice ? host : c.device_at;
  return c.async ? Stub<api::id_of::cuMemcpyDtoDAsync_v2>::call(to, from, c.bytes, c.stream)
                 : Stub<api::id_of::cuMemcpyDtoD_v2>::call(to, from, c.bytes);
}

// Describes the copy in the driver's most general form.
CUDA_MEMCPY3D in_rows(const Copy& c) {
  CUDA_MEMCPY3D all;
  std::memset(&all, 0, sizeof all);
  const bool to_device = c.direction == Direction::ToDevice;
  all.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  all.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  if (to_device)
    all.srcHost = c.host, all.dstDevice = c.device_at;
  else
    all.dstHost = c.host, all.srcDevice = c.device_at;
  all.WidthInBytes = c.bytes, all.Height = all.Depth = 1;
  return all;
}

CUresult copy(Copy c) {
  if (const CUresult r = enter(c.context, {c.stream}); r != CUDA_SUCCESS) return r;
  c.ref = resolve_stream(c.stream, *c.context);
  if (c.ref.object == nullptr) return no_such(c.stream);
  if (c.bytes == 0) return CUDA_SUCCESS;
  if (c.host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Session& s = *session();
  const auto device_at = s.memory.addresses.device_view(c.device_at, c.bytes);
  if (!device_at) return CUDA_ERROR_INVALID_VALUE;
  c.device_at = *device_at;
  const Place::Kind host = s.memory.addresses.kind_of(reinterpret_cast<std::uint64_t>(c.host), c.bytes);
  const bool in_arena = s.memory.in_arena(reinterpret_cast<std::uint64_t>(c.host));
  if (host == Place::Kind::Device || (host == Place::Kind::Managed && !in_arena)) return copy_on_device(c);
  if (host == Place::Kind::Pinned || host == Place::Kind::Managed) return copy_pinned(c);
  // CUDA knows some of these bytes, but not all of them as one range.
  if (s.memory.addresses.touch(reinterpret_cast<std::uint64_t>(c.host), c.bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (c.async && is_captured(c.stream)) return capture_pageable(in_rows(c), c.stream);
  // The reply would arrive before the copied bytes.
  const bool deferred_reply = c.async && c.direction == Direction::FromDevice;
  const std::size_t limit = c.direction == Direction::ToDevice ? record_limit : reply_limit;
  if (c.bytes <= limit && !deferred_reply) return copy_inline(c);
  return copy_staged(c);
}

// Managed memory counts as device memory here.
bool is_on_device(CUdeviceptr at) {
  const Place::Kind kind = session()->memory.addresses.find(at).kind;
  return kind == Place::Kind::Device || kind == Place::Kind::Managed;
}

std::byte* writable(const void* host) { return static_cast<std::byte*>(const_cast<void*>(host)); }

// Returns whether all bytes are memory of one kind: CUDA's memory, or the program's own.
bool is_whole(CUdeviceptr at, std::size_t bytes) {
  const Addresses& addresses = session()->memory.addresses;
  return at != 0 && bytes <= UINT64_MAX - at &&
         (addresses.kind_of(at, bytes) != Place::Kind::Unknown || !addresses.touch(at, bytes));
}

}  // namespace

CUresult judge_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return is_whole(to, bytes) && is_whole(from, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool gpu_reads(CUdeviceptr from, std::size_t bytes) {
  return session()->memory.addresses.device_view(from, bytes).has_value();
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy({.direction = Direction::ToDevice,
               .device_at = to,
               .host = writable(from),
               .bytes = bytes,
               .stream = nullptr,
               .async = false,
               .context = nullptr,
               .ref = {}});
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy({.direction = Direction::FromDevice,
               .device_at = from,
               .host = writable(to),
               .bytes = bytes,
               .stream = nullptr,
               .async = false,
               .context = nullptr,
               .ref = {}});
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return copy({.direction = Direction::ToDevice,
               .device_at = to,
               .host = writable(from),
               .bytes = bytes,
               .stream = stream,
               .async = true,
               .context = nullptr,
               .ref = {}});
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy({.direction = Direction::FromDevice,
               .device_at = from,
               .host = writable(to),
               .bytes = bytes,
               .stream = stream,
               .async = true,
               .context = nullptr,
               .ref = {}});
}

// Each address may be device memory, pinned memory or the program's own memory. The map of addresses determines the
// kind.
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  const bool to_device = is_on_device(to), from_device = is_on_device(from);
  if (to_device && from_device) return Stub<api::id_of::cuMemcpyDtoD_v2>::call(to, from, bytes);
  if (to_device) return calls::cuMemcpyHtoD_v2(to, reinterpret_cast<const void*>(from), bytes);
  if (from_device) return calls::cuMemcpyDtoH_v2(reinterpret_cast<void*>(to), from, bytes);
  if (const CUresult r = Stub<api::id_of::cuStreamSynchronize>::call(nullptr); r != CUDA_SUCCESS) return r;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  if (const CUresult r = ready(); r != CUDA_SUCCESS) return r;
  const bool to_device = is_on_device(to), from_device = is_on_device(from);
  if (to_device && from_device) return Stub<api::id_of::cuMemcpyDtoDAsync_v2>::call(to, from, bytes, stream);
  if (to_device) return calls::cuMemcpyHtoDAsync_v2(to, reinterpret_cast<const void*>(from), bytes, stream);
  if (from_device) return calls::cuMemcpyDtoHAsync_v2(reinterpret_cast<void*>(to), from, bytes, stream);
  if (const CUresult r = Stub<api::id_of::cuStreamSynchronize>::call(stream); r != CUDA_SUCCESS) return r;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}

}  // namespace guest::calls
