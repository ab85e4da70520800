// The structs of cuda.h that CALL lines take: those that are plain bytes, and the members of others that may not cross
// as bytes. Also the length of a value that an enum describes. A struct needs an entry in this file only.
//
// A visitor changes the struct in place, so visit a private copy. All other functions are pure.
//
// ```cpp
// static_assert(api::visited<CUmemAllocationProp> && !api::visited<CUuuid> && api::plain<CUuuid>);
// static_assert(api::value_bytes(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == sizeof(cuuint64_t));
// ```
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ring/api/cuda.h"
#include "ring/api/types.h"

namespace api {

// visit(s, v) makes one call for each member of `s` that needs translation:
//   v.location(l)  `l` names a device by its ordinal
//   v.unused(p)    `p` is a pointer that only other systems use: NULL on the wire and for the driver
//   v.word(a, n)   `a` is the address of a word of n bytes
//   v.range(a, n)  `a` is the address of n bytes; n may exceed what memory can have
//   v.unknown()    the struct's meaning is unknown
//   v.resource(r)  `r` has private bytes of the driver, which never cross: an id replaces them
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

// Keeps the members of a batch operation that cuda.h documents, and clears the others, which are private to the driver.
template <class Word>
void keep_word(Word& to, const Word& from, bool wide, auto& v) {
  to.address = from.address;
  if (wide)
    to.value64 = from.value64;
  else
    to.value = from.value;
  to.flags = from.flags;
  v.word(to.address, wide ? sizeof to.value64 : sizeof to.value);
}
// Returns the kind of an operation, which may be a number that cuda.h does not define.
inline unsigned operation_of(const CUstreamBatchMemOpParams& s) {
  unsigned operation = 0;
  std::memcpy(&operation, &s, sizeof operation);
  return operation;
}
inline void visit(CUstreamBatchMemOpParams& s, auto& v) {
  const unsigned operation = operation_of(s);
  CUstreamBatchMemOpParams kept;
  std::memset(&kept, 0, sizeof kept);
  switch (operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      keep_word(kept.waitValue, s.waitValue, operation == CU_STREAM_MEM_OP_WAIT_VALUE_64, v);
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      keep_word(kept.writeValue, s.writeValue, operation == CU_STREAM_MEM_OP_WRITE_VALUE_64, v);
      break;
    case CU_STREAM_MEM_OP_BARRIER: kept.memoryBarrier.flags = s.memoryBarrier.flags; break;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: kept.flushRemoteWrites.flags = s.flushRemoteWrites.flags; break;
    default: v.unknown();
  }
  std::memcpy(&kept, &operation, sizeof operation);
  s = kept;
}
inline void visit(CUdevResource& s, auto& v) { v.resource(s); }

// Visits the address; the driver checks the other members.
inline void visit(CUDA_MEMSET_NODE_PARAMS& s, auto& v) {
  std::uint64_t row = 0, all = 0;
  const std::uint64_t pitch = s.height > 1 ? s.pitch : 0;
  const bool fits = !__builtin_mul_overflow(s.width, s.elementSize, &row) &&
                    !__builtin_mul_overflow(s.height - (s.height != 0), pitch, &all) &&
                    !__builtin_add_overflow(all, row, &all);
  if (!fits)
    v.unknown();
  else if (row != 0 && s.height != 0)
    v.range(s.dst, all);
}

struct NoVisitor {
  void location(CUmemLocation&);
  void unused(void*&);
  void word(CUdeviceptr&, std::size_t);
  void range(CUdeviceptr&, std::uint64_t);
  void unknown();
  void resource(CUdevResource&);
};
template <class T>
concept visited = requires(T& s, NoVisitor& v) {
  visit(s, v);
};

// True for types that may cross as bytes, once their members are visited. Before a struct is listed here, check that
// the struct contains no pointer, address or ordinal.
template <class T>
inline constexpr bool plain = std::is_arithmetic_v<T> || std::is_enum_v<T> || visited<T>;
template <>
inline constexpr bool plain<CUuuid> = true;
template <>
inline constexpr bool plain<CUexecAffinityParam> = true;
template <>
inline constexpr bool plain<CUDA_ARRAY_DESCRIPTOR> = true;
template <>
inline constexpr bool plain<CUDA_ARRAY3D_DESCRIPTOR> = true;
template <>
inline constexpr bool plain<CUDA_ARRAY_SPARSE_PROPERTIES> = true;
template <>
inline constexpr bool plain<CUDA_ARRAY_MEMORY_REQUIREMENTS> = true;
template <>
inline constexpr bool plain<CUgraphEdgeData> = true;

template <class T>
inline constexpr bool crosses = plain<T> || handle_of<T> != Handle::None;

// Returns the id in a program's copy of a resource.
inline std::uint64_t resource_id(const CUdevResource& r) {
  std::uint64_t id = 0;
  std::memcpy(&id, r._internal_padding, sizeof id);
  return id;
}
inline void set_resource_id(CUdevResource& r, std::uint64_t id) { std::memcpy(r._internal_padding, &id, sizeof id); }
static_assert(sizeof(CUdevResource::_internal_padding) >= sizeof(std::uint64_t));

constexpr std::size_t value_bytes(CUgraphMem_attribute attribute) {
  return attribute >= CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT && attribute <= CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH
             ? sizeof(cuuint64_t)
             : 0;
}
// Returns the length of the value behind a `void*` that the enum describes, or 0 if the driver has no such value.
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
