#include "host/untrusted/calls/lookup.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "host/untrusted/calls/calls.h"

namespace host::calls {
namespace {

template <class Ask>
void ask_layout(KernelInfo& info, Ask ask) {
  std::size_t offset = 0, size = 0;
  for (std::size_t i = 0; ask(i, &offset, &size) == CUDA_SUCCESS; ++i) {
    info.layout.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
    info.param_bytes = std::max(info.param_bytes, static_cast<std::uint32_t>(offset + size));
  }
}

template <class Ask>
void ask_limits(KernelInfo& info, Ask ask) {
  const auto value = [&](CUfunction_attribute attribute) {
    int v = 0;
    ask(&v, attribute);
    return static_cast<std::uint32_t>(v);
  };
  info.max_threads = value(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  info.static_shared = value(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  info.max_dynamic_shared = value(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
}

}  // namespace

KernelInfo info_of(const Request& r, CUfunction function) {
  const Driver& d = r.session.driver;
  KernelInfo info;
  ask_layout(info,
             [&](std::size_t i, std::size_t* at, std::size_t* n) { return d.cuFuncGetParamInfo(function, i, at, n); });
  ask_limits(info, [&](int* value, CUfunction_attribute a) { return d.cuFuncGetAttribute(value, a, function); });
  return info;
}

KernelInfo info_of(const Request& r, CUkernel kernel) {
  const Driver& d = r.session.driver;
  const auto device = r.session.contexts.device_of(ring::context_of(r.header.flags));
  KernelInfo info;
  ask_layout(info,
             [&](std::size_t i, std::size_t* at, std::size_t* n) { return d.cuKernelGetParamInfo(kernel, i, at, n); });
  ask_limits(info,
             [&](int* value, CUfunction_attribute a) { return d.cuKernelGetAttribute(value, a, kernel, device); });
  return info;
}

// The worker copies the name before it checks the name.
CUresult bring_name(call_of::bring_name& a) {
  std::string name(a.record.bytes, '\0');
  a.arena().copy_out(name.data(), 0, name.size());
  if (a.request.brought_name == nullptr || name.find('\0') != name.size() - 1) return a.request.broken();
  name.pop_back();
  *a.request.brought_name = std::move(name);
  return CUDA_SUCCESS;
}

CUresult take_name(call_of::take_name& a) {
  const api::TakeNameRecord& r = a.record;
  if ((r.function == 0) == (r.kernel == 0)) return a.request.broken();
  const Driver& d = a.driver();
  const char* name = nullptr;
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (r.function != 0 && d.cuFuncGetName != nullptr)
    result = d.cuFuncGetName(&name, a.handle<CUfunction>(&api::TakeNameRecord::function));
  else if (r.kernel != 0 && d.cuKernelGetName != nullptr)
    result = d.cuKernelGetName(&name, a.handle<CUkernel>(&api::TakeNameRecord::kernel));
  if (result != CUDA_SUCCESS) return result;
  const std::string_view all(name);
  const std::string_view rest = all.substr(std::min<std::uint64_t>(r.offset, all.size()), r.room);
  return a.answer(CUDA_SUCCESS, {.length = 0}, std::span(rest));
}

}  // namespace host::calls
