// A device's resource on its way between guest and driver: the guest's has an id where the driver's has bytes of its own
// (host/session/resources.h).
#pragma once

#include <cstring>

#include "host/session/session.h"
#include "ring/api/structs.h"

namespace host {

// The driver's own in place of what the guest has sent. What a program writes into a copy does not count.
inline CUresult to_driver(const Session& session, CUdevResource& r) {
  if (r.type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const void* kept = session.objects.find(api::resource_id(r), api::Handle::Resource);
  if (kept == nullptr) return api::kind_of(api::Handle::Resource).unknown;
  std::memcpy(&r, kept, sizeof r);
  return CUDA_SUCCESS;
}

// What the guest gets of what the driver has written. A part of which nothing is left has type 0 and no id.
inline CUresult to_guest(Session& session, CUdevResource& r) {
  const CUdevResource given = r;
  std::memset(&r, 0, sizeof r);
  if (given.type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_SUCCESS;
  if (!session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  void* kept = const_cast<CUdevResource*>(session.contexts.resources.keep(given));
  const std::uint64_t id = session.objects.put_found(api::Handle::Resource, kept, {});
  if (id == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  r.type = given.type;
  r.sm = given.sm;
  api::set_resource_id(r, id);
  return CUDA_SUCCESS;
}

}  // namespace host
