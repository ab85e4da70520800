// Lookups by name in modules and libraries. The reply has the data that the guest needs to check and pack launches.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/untrusted/marshal/decoded_request.h"

namespace host::calls {

// The data about a function or kernel that the guest needs. Sizes are in bytes.
struct KernelInfo {
  std::vector<api::ParameterPlace> layout;
  std::uint32_t param_bytes = 0, max_threads = 0, static_shared = 0, max_dynamic_shared = 0;
};
KernelInfo info_of(const Request& r, CUfunction function);
KernelInfo info_of(const Request& r, CUkernel kernel);

// Returns whether a reply has enough space for the function's description with this name.
inline bool fits_into_reply(const KernelInfo& info, std::string_view name) {
  const std::size_t layout = ring::padded(info.layout.size() * sizeof(api::ParameterPlace));
  return sizeof(api::FunctionReply) + layout + ring::padded(name.size() + 1) <= ring::reply_bytes;
}

// Commits and answers a lookup that has found a function or kernel. If the name does not fit into the reply, the reply
// omits the name, and the guest asks for it separately. If the rest does not fit, the session drops the proposed id:
// the guest could not read the reply, and would use the id for another object.
template <class T, class R>
CUresult answer_found(DecodedRequest<R>& t, T found, std::string_view called) {
  const std::uint64_t id = t.put_once(found);
  if (id == 0) return t.request.broken();
  const KernelInfo info = info_of(t.request, found);
  const std::string name(fits_into_reply(info, called) ? called : std::string_view());
  t.answer(CUDA_SUCCESS,
           {{.id = id,
             .params = 0,
             .param_bytes = info.param_bytes,
             .max_threads = info.max_threads,
             .static_shared = info.static_shared,
             .max_dynamic_shared = info.max_dynamic_shared,
             .name_bytes = 0}},
           info.layout, std::span(name.c_str(), name.size() + 1));
  if (t.request.out.ok()) return CUDA_SUCCESS;
  if (id == t.record.id) t.session().objects.drop(id);
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Answers a query for one entry of an owner's list. `a`: the call. The driver fills lists from the start, so the query
// reads up to that entry.
template <class T, class Owner, class Count, class Name, class A>
CUresult find_in_list(A& a, Count count_of, Name name_of) {
  const auto owner = a.template handle<Owner>(&api::PartRecord::from);
  unsigned count = 0;
  if (const CUresult result = count_of(&count, owner); result != CUDA_SUCCESS) return result;
  if (a.record.which >= count) return CUDA_ERROR_INVALID_VALUE;
  std::vector<T> list(a.record.which + 1);
  if (const CUresult result = a.call(list.data(), static_cast<unsigned>(list.size()), owner); result != CUDA_SUCCESS)
    return result;
  const char* name = nullptr;
  if (const CUresult result = name_of(&name, list.back()); result != CUDA_SUCCESS) return result;
  return answer_found(a, list.back(), name);
}

// Returns whether a global that the driver has returned is in managed memory.
inline bool is_managed(const Driver& driver, CUdeviceptr address) {
  unsigned managed = 0;
  const auto ask = driver.cuPointerGetAttribute;
  return ask != nullptr && ask(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS && managed != 0;
}

// Managed: the call finds only managed variables.
enum class Globals : std::uint8_t { Any, Managed };

// A managed variable ends with its library, even if the call searched a module of the library. Such a variable ends
// with no context.
template <class A>
void note_variable(A& a, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t from = a.record.from, library = a.session().objects.owner_of(from);
  const std::uint64_t owner = library != 0 ? library : from;
  const std::uint16_t context = a.request.context_of_memory(from);
  a.session().memory.shadow_copies.found(
      {.start = address, .bytes = bytes, .owner = owner, .context = context, .name = std::string(a.text())});
  const bool is_librarys = api::Id::of(owner).kind == api::Handle::Library;
  a.session().memory.addresses.add(
      {.start = address, .bytes = bytes, .owner = owner, .context = is_librarys ? no_context : context});
}

template <class Owner, Globals which = Globals::Any, class A>
CUresult find_global(A& a) {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  const CUresult result = a.call(&address, &bytes, a.template handle<Owner>(&api::GlobalRecord::from), a.text().data());
  if (result != CUDA_SUCCESS) return result;
  const bool managed = bytes != 0 && (which == Globals::Managed || is_managed(a.driver(), address));
  a.answer(result, {.address = address, .bytes = bytes, .managed = managed ? 1U : 0U});
  if (managed) note_variable(a, address, bytes);
  return result;
}

}  // namespace host::calls
