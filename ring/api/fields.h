// The words for the meaning of a record's fields. Each record has one list of them beside its struct
// (ring/api/records.h). The worker reads the record by that list, `ivgpu trace` prints by it, and the fuzzers make
// records by it. The parts of the payload that follow the struct are in the list as well, behind the fields.
//
// Each word is a type. Worker, trace and fuzzers each have an overload for every word, so a new word does not compile
// before all of them know it. The name is for `ivgpu trace`, which leaves out fields without a name.
// ring/api/field_makers.h writes the words down, ring/api/field_list.h walks a list.
//
// ```cpp
// template <class Record, class Member>
// auto shown(const api::field::Number<Member>& word, const Record& record) {  // an overload for one word
//   return record.*word.member;
// }
// ```
#pragma once

#include <cstdint>

#include "ring/api/types.h"

namespace api {

// A member of a record's member.
template <class C, class S, class T>
struct InnerMember {
  S C::*outer;
  T S::*inner;
  bool operator==(const InnerMember&) const = default;
};

// Where a kernel's packed parameters have one of them.
struct ParameterPlace {
  std::uint32_t offset, size;
};

namespace field {

// ---- numbers -------------------------------------------------------------------------------------------------------

template <class M>
struct Number {
  const char* name;
  M member;
};
// A number from `least` to `most`. Any other breaks the protocol.
template <class M>
struct Between {
  const char* name;
  M member;
  std::uint64_t least, most;
};
// A number that must not be below the function's value for the record. A smaller one breaks the protocol.
template <class M, class F>
struct AtLeast {
  const char* name;
  M member;
  F least;
};
// A flag: 0 or 1.
template <class M>
struct Flag {
  M member;
};
// Must be 0: padding, or a member that this call does not use.
template <class M>
struct Zero {
  M member;
};
// Flags. A bit outside of the mask breaks the protocol.
template <class M>
struct Bits {
  const char* name;
  M member;
  std::uint64_t mask;
};
// A number that must be 0 if the other member is 0.
template <class M, class C>
struct OnlyIf {
  const char* name;
  M member;
  C condition;
};
// A device, as the host counts.
template <class M>
struct Ordinal {
  const char* name;
  M member;
};
// A multiple of ring::huge_page: bytes, or an offset in the arena.
template <class M>
struct Pages {
  const char* name;
  M member;
  bool is_offset;
};
// Numbers in a row: one for each dimension, or words whose meaning only the driver knows.
template <class M>
struct Triple {
  const char* name;
  M member;
};

// ---- addresses -----------------------------------------------------------------------------------------------------

// A device address. The bytes from there are the session's: as many as a member or a function of the record says.
template <class M, class L>
struct Address {
  const char* name;
  M member;
  L length;
};
// The same, or 0 where the length is 0: the record names no memory there.
template <class M, class L>
struct MaybeAddress {
  const char* name;
  M member;
  L length;
};
// The length where the first byte alone must be the session's, and the driver judges the rest: of memory that the call
// does not touch. A kernel that uses it may reach every address of its context without a record.
inline constexpr auto first_byte = [](const auto&) -> std::uint64_t { return 1; };
// The start of an allocation, which ends with the call.
template <class M>
struct Frees {
  const char* name;
  M member;
};
// Where the bytes are when they are not in the arena.
enum class Otherwise : std::uint8_t { Nowhere, InRecord, InReply };
// An offset in the arena, with a length; or ring::absent.
template <class M, class L>
struct Place {
  const char* name;
  M member;
  L length;
  Otherwise otherwise;
};
// A device address in a reply. The bytes from there are the session's from then on.
template <class M, class L>
struct Memory {
  const char* name;
  M member;
  L length;
};
// The arena's own device address, in a reply.
template <class M>
struct Arena {
  const char* name;
  M member;
};

// ---- ids -----------------------------------------------------------------------------------------------------------

// A stream of the session, or a special one.
template <class M>
struct Stream {
  const char* name;
  M member;
};
template <class M>
struct Id {
  const char* name;
  M member;
  Handle kind;
};
// The same, or 0: no object. What the call makes is not owned by it.
template <class M>
struct MaybeId {
  const char* name;
  M member;
  Handle kind;
};
// The id of an object that the call ends, with everything that it owns.
template <class M>
struct Closes {
  const char* name;
  M member;
  Handle kind;
};
// The id that the guest has chosen for the object that the call makes. The first id of the record names its owner.
template <class M>
struct Proposed {
  const char* name;
  M member;
  Handle kind;
};
// In a reply: the proposed id, or the one that the object already had.
template <class M>
struct Made {
  const char* name;
  M member;
  Handle kind;
};

// The number of a context that the program has created (ring/wire/record.h).
template <class M>
struct CreatedContext {
  const char* name;
  M member;
};
// A number that the guest has chosen for a context that is made.
template <class M>
struct NewContext {
  const char* name;
  M member;
};

// ---- what follows the struct ---------------------------------------------------------------------------------------

// Characters and their only NUL.
template <class M>
struct Text {
  const char* name;
  M length;
};
// Characters without a NUL.
template <class M>
struct Characters {
  const char* name;
  M length;
};
// In a reply: words of 64 bits, as many as fill so many bytes.
template <class M>
struct Words {
  const char* name;
  M length;
};
// In a reply: a ParameterPlace for each of a kernel's parameters. Each lies inside of so many bytes.
template <class M>
struct Layout {
  const char* name;
  M count, bytes;
};
// Packed parameters of a kernel.
template <class M>
struct Parameters {
  const char* name;
  M length;
};
// So many ids (u64).
template <class M>
struct Ids {
  const char* name;
  M count;
  Handle kind;
};
// CUjit_option, a u64 each; and as many values (u64).
template <class M>
struct JitOptions {
  M count;
};
// CUlaunchAttribute, at most max_launch_attributes.
template <class M>
struct Attributes {
  M count;
};
// The length of each part of an image (u64).
template <class M>
struct PartSizes {
  const char* name;
  M count;
};
// The parts themselves, each padded to 8; in the arena, where the member is a place there.
template <class M, class C>
struct Parts {
  M arena;
  C count;
};

}  // namespace field

}  // namespace api
