#include "host/untrusted/calls/lookup.h"

#include <algorithm>

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

}  // namespace host::calls
