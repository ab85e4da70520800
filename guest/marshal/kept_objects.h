// Creates, frees and closes the objects and memory that the guest remembers, as a CALL line demands. These functions do
// not need marshal.h's templates.
#pragma once

#include <cstdint>

#include "guest/process/context.h"
#include "guest/session/session.h"
#include "ring/api/types.h"

namespace guest {

// Returns the length of `count` ids in a record, or ~0 if they fit into no record.
template <class T>
std::uint64_t ids_length(const T* ids, std::uint64_t count) {
  if (ids == nullptr) return 0;
  return count > ring::max_record / sizeof(std::uint64_t) ? ~std::uint64_t{0} : count * sizeof(std::uint64_t);
}
// Returns the error of an array of handles in the program's memory: a handle has ended, or the array is too long.
template <class T>
CUresult check_ids(const T* ids, std::uint64_t count, api::Handle kind) {
  if (ids == nullptr) return count == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (ids_length(ids, count) > ring::max_record) return CUDA_ERROR_INVALID_VALUE;
  for (std::uint64_t k = 0; k < count; ++k)
    if (session()->objects.find(ids[k], kind) == nullptr) return api::kind_of(kind).unknown;
  return CUDA_SUCCESS;
}

// Returns whether a call on this object may fail at once. A wait for an event of a capture may.
inline bool is_event_of_capture(const Object* object) {
  return object != nullptr && object->in_capture.load(std::memory_order_relaxed);
}

// Called after the program has closed a handle. Retires the objects that the closed object owns. Closing a stream ends
// a capture that began in the stream.
inline void close_object(Object& object, std::uint64_t id, Use last) {
  Objects& objects = session()->objects;
  const api::Handle kind = api::Id::of(id).kind;
  if (kind == api::Handle::Stream) session()->graphs.captures.disturb(), session()->graphs.captures.over(object);
  if (kind == api::Handle::GraphExec) session()->graphs.accepted.forget(id);
  for (Object* owned : objects.owned_by(object)) objects.retire(*owned, last);
  if (kind == api::Handle::Module || kind == api::Handle::Library) {
    session()->code.variables->drop_of(id, last);
    session()->memory.addresses.drop_owned(id);
  }
  objects.close(object, id, last);
}

// Returns the error of cuMemFreeAsync for an address that is no device memory.
inline CUresult no_allocation(std::uint64_t at) {
  const bool managed = session()->memory.addresses.find(at).kind == Place::Kind::Managed;
  return managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

// Records memory that was allocated from a pool.
inline void keep_allocation(std::uint64_t at, std::uint64_t bytes, std::uint64_t pool, std::uint32_t device,
                            Context& home) {
  session()->memory.addresses.add({.kind = Place::Kind::Device,
                                   .start = at,
                                   .bytes = bytes,
                                   .id = session()->memory.next_buffer_id.fetch_add(1, std::memory_order_relaxed),
                                   .pool = pool,
                                   .pooled = true,
                                   .device = device,
                                   .context = &home});
}

}  // namespace guest
