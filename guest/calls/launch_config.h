// The configuration of a launch, which is a parameter of cuLaunchKernelEx and of occupancy queries.
#pragma once

#include <cstring>
#include <span>

#include "guest/base/log.h"
#include "ring/api/cuda.h"
#include "ring/api/launch_attributes.h"

namespace guest {

// Returns the error of a configuration that contains something that the worker does not serve.
inline CUresult check_config(const char* call, const CUlaunchConfig* c) {
  if (c == nullptr || (c->numAttrs != 0 && c->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (c->numAttrs > api::max_launch_attributes) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < c->numAttrs; ++i)
    if (c->attrs[i].id < 0 || c->attrs[i].id >= CU_LAUNCH_ATTRIBUTE_MAX) {
      return CUDA_ERROR_INVALID_VALUE;
    } else if (!api::crosses_boundary(c->attrs[i].id)) {
      log(Level::Warn, "%s: launch attribute %d is not served yet", call, c->attrs[i].id);
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  return CUDA_SUCCESS;
}

// Copies one member that the attribute's line describes from the program's value to the sent value. Members that are
// zero stay zero.
template <class V, class W>
void keep(V& to, const V& from, const W& word) {
  std::memcpy(&api::member_of(to, word.member), &api::member_of(from, word.member),
              sizeof api::member_of(to, word.member));
}
template <class V, class M>
void keep(V&, const V&, const api::field::Zero<M>&) {}

// Returns the attribute to send: the members that the attribute's line describes, and zeros elsewhere. The other bytes
// of the program's union are not sent.
template <class Lines = api::LaunchAttributes>
CUlaunchAttribute described(const CUlaunchAttribute& given) {
  CUlaunchAttribute sent{};
  api::with_attribute<Lines>(given.id, [&](const auto& line) {
    using Value = typename std::remove_cvref_t<decltype(line)>::Value;
    const Value from = api::value_of(line, given);
    Value to{};
    api::each_field<Value>([&](const auto& word) { keep(to, from, word); });
    sent.id = line.tag;
    api::put_value(line, sent, to);
  });
  return sent;
}

// Finds the first id in the attributes that `is_known(handle, kind)` rejects, and returns the error that the driver
// reports at once.
template <class Lines = api::LaunchAttributes, class F>
CUresult check_ids(std::span<const CUlaunchAttribute> attributes, F is_known) {
  bool known = true;
  for (const CUlaunchAttribute& given : attributes)
    api::with_attribute<Lines>(given.id, [&](const auto& line) {
      using Value = typename std::remove_cvref_t<decltype(line)>::Value;
      const Value value = api::value_of(line, given);
      api::each_field<Value>([&]<class W>(const W& word) {
        if constexpr (api::names_id<W>) known = known && is_known(api::member_of(value, word.member), word.kind);
      });
    });
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace guest
