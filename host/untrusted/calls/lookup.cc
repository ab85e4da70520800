#include "host/untrusted/calls/lookup.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace host::calls {
namespace {

struct Params {
  std::vector<std::uint32_t> layout;  // offset, size, offset, size...
  std::uint32_t bytes = 0;
};

template <class Ask>
Params layout_of(Ask ask) {
  Params params;
  std::size_t offset = 0, size = 0;
  for (std::size_t i = 0; ask(i, &offset, &size) == CUDA_SUCCESS; ++i) {
    params.layout.push_back(static_cast<std::uint32_t>(offset));
    params.layout.push_back(static_cast<std::uint32_t>(size));
    params.bytes = std::max(params.bytes, static_cast<std::uint32_t>(offset + size));
  }
  return params;
}

// Appends what a guest needs to know of a function or kernel.
template <class Attribute>
void describe(Request& r, std::uint64_t id, const Params& params, Attribute attribute, std::string_view name) {
  const api::FunctionReply reply{.id = id,
                                 .params = static_cast<std::uint32_t>(params.layout.size() / 2),
                                 .param_bytes = params.bytes,
                                 .max_threads = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                                 .static_shared = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
                                 .max_dynamic_shared = attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
                                 .name_bytes = static_cast<std::uint32_t>(name.size() + 1)};
  r.out.bytes(&reply, sizeof reply);
  r.out.bytes(params.layout.data(), params.layout.size() * sizeof(std::uint32_t));
  r.out.bytes(std::string(name).c_str(), name.size() + 1);
}

// Whether the description fits into a reply. If not, nothing is made: the guest could not read it and would give the id
// that it has proposed to something else.
CUresult told(Request& r, std::uint64_t id, std::uint64_t proposed) {
  if (r.out.ok()) return CUDA_SUCCESS;
  if (id == proposed) r.session.objects.drop(id);
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

std::string_view read_name(Request& r, std::uint64_t bytes) {
  const auto* at = reinterpret_cast<const char*>(r.in.take(bytes));
  if (at == nullptr || bytes == 0 || at[bytes - 1] != 0 || std::memchr(at, 0, bytes) != at + bytes - 1) {
    r.in.fail();
    return {};
  }
  return {at, bytes - 1};
}

CUresult describe_function(Request& r, CUfunction function, std::uint64_t proposed, std::uint64_t owner,
                           std::string_view name) {
  const std::uint64_t id = r.session.objects.put_once(proposed, Handle::Function, function, r.place(owner));
  if (id == 0) return r.broken();
  const Driver& d = r.session.driver;
  const Params params =
      layout_of([&](std::size_t i, std::size_t* o, std::size_t* s) { return d.cuFuncGetParamInfo(function, i, o, s); });
  describe(
      r, id, params,
      [&](CUfunction_attribute a) {
        int value = 0;
        d.cuFuncGetAttribute(&value, a, function);
        return static_cast<std::uint32_t>(value);
      },
      name);
  return told(r, id, proposed);
}

CUresult describe_kernel(Request& r, CUkernel kernel, std::uint64_t proposed, std::uint64_t owner,
                         std::string_view name) {
  const std::uint64_t id = r.session.objects.put_once(proposed, Handle::Kernel, kernel, r.place(owner));
  if (id == 0) return r.broken();
  const Driver& d = r.session.driver;
  const CUdevice device = static_cast<CUdevice>(ring::device_of(r.header.flags));
  const Params params =
      layout_of([&](std::size_t i, std::size_t* o, std::size_t* s) { return d.cuKernelGetParamInfo(kernel, i, o, s); });
  describe(
      r, id, params,
      [&](CUfunction_attribute a) {
        int value = 0;
        d.cuKernelGetAttribute(&value, a, kernel, device);
        return static_cast<std::uint32_t>(value);
      },
      name);
  return told(r, id, proposed);
}

}  // namespace host::calls
