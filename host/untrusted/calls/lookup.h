// What modules and libraries hold, found by its name; and their end. The reply to a lookup brings what the guest needs to
// check and pack launches.
#pragma once

#include <string_view>

#include "host/untrusted/request.h"
#include "ring/api/records.h"

namespace host::calls {

using api::Handle;

// A name that follows a record. Empty: the record is malformed.
std::string_view read_name(Request& r, std::uint64_t bytes);

// Puts what was found behind the proposed id, or finds the one that it has, and replies what a guest needs to know.
CUresult describe_function(Request& r, CUfunction function, std::uint64_t proposed, std::uint64_t owner,
                           std::string_view name);
CUresult describe_kernel(Request& r, CUkernel kernel, std::uint64_t proposed, std::uint64_t owner,
                         std::string_view name);

template <class Owner, class Get>
CUresult find_global(Request& r, Handle kind, Get get) {
  const auto record = r.in.read<api::GlobalRecord>();
  const std::string_view name = read_name(r, record.name_bytes);
  if (!r.complete()) return r.broken();
  const auto making = r.session.making();
  auto* owner = static_cast<Owner>(r.session.objects.find(record.from, kind));
  if (owner == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!r.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  const CUresult result = get(&address, &bytes, owner, name.data());
  if (result != CUDA_SUCCESS) return result;
  r.session.ranges.add(address, bytes, record.from, ring::device_of(r.header.flags));
  const api::GlobalReply reply{.address = address, .bytes = bytes};
  r.out.bytes(&reply, sizeof reply);
  return CUDA_SUCCESS;
}

template <class T, class Unload>
CUresult close(Request& r, Handle kind, Unload unload) {
  const auto record = r.in.read<api::CloseRecord>();
  if (!r.complete()) return r.broken();
  const auto ending = r.session.ending();
  auto* handle = static_cast<T>(r.session.objects.find(record.id, kind));
  if (handle == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = unload(handle);
  if (result == CUDA_SUCCESS) r.session.forget(r.session.objects.drop_with_owned(record.id));
  return result;
}

}  // namespace host::calls
