// What is special in a struct that crosses as bytes, and how long a value is that an enum describes.
#pragma once

#include <cstddef>

#include "ring/api/cuda.h"

namespace api {

// visit(s, v) calls for each member of `s` that may not cross as it is:
//   v.location(l)  it names a device by its ordinal
//   v.unused(p)    a pointer that only other systems use: NULL on the wire and for the driver
inline void visit(CUmemLocation& s, auto& v) { v.location(s); }
inline void visit(CUmemAccessDesc& s, auto& v) { v.location(s.location); }
inline void visit(CUmemPoolProps& s, auto& v) {
  v.location(s.location);
  v.unused(s.win32SecurityAttributes);
}
inline void visit(CUmemAllocationProp& s, auto& v) {
  v.location(s.location);
  v.unused(s.win32HandleMetaData);
}

struct NoVisitor {
  void location(CUmemLocation&);
  void unused(void*&);
};
template <class T>
concept visited = requires(T& s, NoVisitor& v) {
  visit(s, v);
};

// The bytes behind a `void*` beside the enum. 0: the driver has no such value.
constexpr std::size_t value_bytes(CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return sizeof(int);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return sizeof(cuuint64_t);
    default: return 0;
  }
}

}  // namespace api
