// Chooses the driver's function that serves a record.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "host/untrusted/marshal/request.h"
#include "ring/api/call.h"

namespace host {

// A VARIANT line: an entry point, its _ptsz or _ptds variant, and the offset of that variant in host::Driver.
struct VariantOf {
  std::string_view of, name;
  std::size_t offset;
};
inline constexpr VariantOf variants[] = {
#define CALL(...)
#define CUSTOM(...)
#define LOCAL(...)
#define ABSENT(...)
#define VARIANT(fn, since, of) {#of, #fn, offsetof(Driver, fn)},
#include "ring/api/driver.def"
};

constexpr std::size_t per_thread_offset(std::string_view name) {
  for (const VariantOf& v : variants)
    if (v.of == name && (v.name.ends_with("_ptsz") || v.name.ends_with("_ptds"))) return v.offset;
  return 0;
}

template <int Id, class F>
F per_thread_or(const Request& r, F base) {
  constexpr std::size_t offset = per_thread_offset(api::Call<Id>::name);
  if constexpr (offset != 0) {
    if (!r.per_thread()) return base;
    F form;
    std::memcpy(&form, reinterpret_cast<const std::byte*>(&r.session.driver) + offset, sizeof form);
    return form;
  } else {
    return base;
  }
}

}  // namespace host
