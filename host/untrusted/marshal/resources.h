// Converts a device resource between guest and driver. The guest's resource has an id in place of the driver's private
// bytes (host/session/resources.h).
#pragma once

#include <cstring>

#include "host/session/session.h"
#include "ring/api/structs.h"

namespace host {

// Replaces the guest's resource by the driver's stored resource. If a program writes to its copy, this has no effect.
inline CUresult to_driver(const Session& session, CUdevResource& r) {
  if (r.type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const void* kept = session.objects.find(api::resource_id(r), api::Handle::Resource);
  if (kept == nullptr) return api::kind_of(api::Handle::Resource).unknown;
  std::memcpy(&r, kept, sizeof r);
  return CUDA_SUCCESS;
}

// Replaces the driver's resource by a resource for the guest. An empty part of a split has type 0 and no id.
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
