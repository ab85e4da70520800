// Words that describe a record's fields. Each struct of ring/api/records.h contains one list of words. The worker uses
// the list to read the record, `ivgpu trace` to print it, and the fuzzers to make records. After the fields, the list
// describes the payload that follows the struct.
//
// Each word is a type. Worker, trace and fuzzers have an overload for every word, so a new word compiles only when all
// of them know it. `ivgpu trace` prints fields that have a name. ring/api/field_list.h iterates over a list.
//
// A list is a std::tuple beside the members of its struct. A deduction guide behind each word finds the word's type.
//
// ```cpp
// #include <tuple>
// struct FillRecord {
//   std::uint64_t device, bytes;
//   static constexpr std::tuple fields{api::field::Address{"to", &FillRecord::device, &FillRecord::bytes},
//                                      api::field::Number{"bytes", &FillRecord::bytes}};
// };
// template <class Record, class Member>
// auto shown(const api::field::Number<Member>& word, const Record& record) {  // an overload for one word
//   return record.*word.member;
// }
// ```
#pragma once

#include <cstdint>

#include "ring/api/types.h"

namespace api {

// A member of a struct that is itself a member of the record.
template <class C, class S, class T>
struct InnerMember {
  S C::*outer;
  T S::*inner;
  bool operator==(const InnerMember&) const = default;
};

// The place of a parameter in a kernel's packed parameters.
struct ParameterPlace {
  std::uint32_t offset, size;
};

namespace field {

// The member `inner` of the record's member `outer`.
template <class C, class S, class T>
constexpr InnerMember<C, S, T> of(S C::*outer, T S::*inner) {
  return {outer, inner};
}

// ---- numbers -------------------------------------------------------------------------------------------------------

template <class M>
struct Number {
  const char* name;
  M member;
};
template <class M>
Number(const char*, M) -> Number<M>;
// A number from `least` to `most`. Any other number ends the session.
template <class M>
struct Between {
  const char* name;
  M member;
  std::uint64_t least, most;
};
template <class M>
Between(const char*, M, std::uint64_t, std::uint64_t) -> Between<M>;
// A number that is at least the function's value for the record. A smaller number ends the session.
template <class M, class F>
struct AtLeast {
  const char* name;
  M member;
  F least;
};
template <class M, class F>
AtLeast(const char*, M, F) -> AtLeast<M, F>;
// A flag: 0 or 1.
template <class M>
struct Flag {
  M member;
};
template <class M>
Flag(M) -> Flag<M>;
// A number that must be 0: padding, or a member that this call does not use.
template <class M>
struct Zero {
  M member;
};
template <class M>
Zero(M) -> Zero<M>;
// Flags. A bit outside the mask ends the session.
template <class M>
struct Bits {
  const char* name;
  M member;
  std::uint64_t mask;
};
template <class M>
Bits(const char*, M, std::uint64_t) -> Bits<M>;
// A number that must be 0 if the other member is 0.
template <class M, class C>
struct OnlyIf {
  const char* name;
  M member;
  C condition;
};
template <class M, class C>
OnlyIf(const char*, M, C) -> OnlyIf<M, C>;
// A device, as the host's ordinal.
template <class M>
struct Ordinal {
  const char* name;
  M member;
};
template <class M>
Ordinal(const char*, M) -> Ordinal<M>;
// A multiple of ring::huge_page: a number of bytes, or an offset in the arena.
template <class M>
struct Pages {
  const char* name;
  M member;
  bool is_offset = false;
};
template <class M>
Pages(const char*, M) -> Pages<M>;
template <class M>
Pages(const char*, M, bool) -> Pages<M>;
// Consecutive numbers: one number for each dimension, or numbers that only the driver interprets.
template <class M>
struct Triple {
  const char* name;
  M member;
};
template <class M>
Triple(const char*, M) -> Triple<M>;

// ---- addresses -----------------------------------------------------------------------------------------------------

// A device address. The session must own the bytes from this address on; a member or a function of the record gives
// their number.
template <class M, class L>
struct Address {
  const char* name;
  M member;
  L length;
};
template <class M, class L>
Address(const char*, M, L) -> Address<M, L>;
// A device address that is 0 if the length is 0: the record then names no memory.
template <class M, class L>
struct MaybeAddress {
  const char* name;
  M member;
  L length;
};
template <class M, class L>
MaybeAddress(const char*, M, L) -> MaybeAddress<M, L>;
// The length of an address whose first byte the session must own. The driver checks the other bytes. For memory that
// the call does not access. A kernel may access every address of its context without a record anyway.
inline constexpr auto first_byte = [](const auto&) -> std::uint64_t { return 1; };
// The start of an allocation that the call frees.
template <class M>
struct Frees {
  const char* name;
  M member;
};
template <class M>
Frees(const char*, M) -> Frees<M>;
// Where the bytes are if they are not in the arena.
enum class Otherwise : std::uint8_t { Nowhere, InRecord, InReply };
// An offset in the arena with a length, or ring::absent.
template <class M, class L>
struct Place {
  const char* name;
  M member;
  L length;
  Otherwise otherwise;
};
template <class M, class L>
Place(const char*, M, L, Otherwise) -> Place<M, L>;
// A device address in a reply. From then on the session owns the bytes from this address on.
template <class M, class L>
struct Memory {
  const char* name;
  M member;
  L length;
};
template <class M, class L>
Memory(const char*, M, L) -> Memory<M, L>;
// The arena's own device address, in a reply.
template <class M>
struct Arena {
  const char* name;
  M member;
};
template <class M>
Arena(const char*, M) -> Arena<M>;

// ---- ids -----------------------------------------------------------------------------------------------------------

// A stream of the session, or one of CUDA's special streams.
template <class M>
struct Stream {
  M member;
  const char* name = "stream";
};
template <class M>
Stream(M) -> Stream<M>;
template <class M>
Stream(M, const char*) -> Stream<M>;
template <class M>
struct Id {
  Handle kind;
  M member;
  const char* name = kind_of(kind).text;
};
template <class M>
Id(Handle, M) -> Id<M>;
// An object of the session, or 0 for no object. This object does not own the object that the call makes.
template <class M>
struct MaybeId {
  const char* name;
  Handle kind;
  M member;
};
template <class M>
MaybeId(const char*, Handle, M) -> MaybeId<M>;
// The id of an object that the call destroys, together with everything that the object owns.
template <class M>
struct Closes {
  Handle kind;
  M member;
  const char* name = kind_of(kind).text;
};
template <class M>
Closes(Handle, M) -> Closes<M>;
// The guest's id for the object that the call makes. The first id of the record is the object's owner.
template <class M>
struct Proposed {
  Handle kind;
  M member;
  const char* name = kind_of(kind).text;
};
template <class M>
Proposed(Handle, M) -> Proposed<M>;
// In a reply: the proposed id, or the id that the object already had.
template <class M>
struct Made {
  Handle kind;
  M member;
  const char* name = kind_of(kind).text;
};
template <class M>
Made(Handle, M) -> Made<M>;

// The number of a context that the program has created (ring/wire/record.h).
template <class M>
struct CreatedContext {
  const char* name;
  M member;
};
template <class M>
CreatedContext(const char*, M) -> CreatedContext<M>;
// The guest's number for a context that the call makes.
template <class M>
struct NewContext {
  const char* name;
  M member;
};
template <class M>
NewContext(const char*, M) -> NewContext<M>;

// ---- what follows the struct ---------------------------------------------------------------------------------------

// Characters and a single NUL, at the end of the record.
template <class M>
struct Text {
  const char* name;
  M length;
};
template <class M>
Text(const char*, M) -> Text<M>;
// Characters without a NUL.
template <class M>
struct Characters {
  const char* name;
  M length;
};
template <class M>
Characters(const char*, M) -> Characters<M>;
// 64-bit words in a reply; `length` is their size in bytes.
template <class M>
struct Words {
  const char* name;
  M length;
};
template <class M>
Words(const char*, M) -> Words<M>;
// A ParameterPlace for each of a kernel's parameters, in a reply. Each place lies within `bytes` bytes.
template <class M>
struct Layout {
  const char* name;
  M count, bytes;
};
template <class M>
Layout(const char*, M, M) -> Layout<M>;
// The packed parameters of a kernel.
template <class M>
struct Parameters {
  const char* name;
  M length;
};
template <class M>
Parameters(const char*, M) -> Parameters<M>;
// `count` ids, 64 bits each.
template <class M>
struct Ids {
  const char* name;
  Handle kind;
  M count;
};
template <class M>
Ids(const char*, Handle, M) -> Ids<M>;
// `count` values of CUjit_option, 64 bits each, then the options' values, 64 bits each.
template <class M>
struct JitOptions {
  M count;
};
template <class M>
JitOptions(M) -> JitOptions<M>;
// An array of CUlaunchAttribute, with at most max_launch_attributes elements.
template <class M>
struct Attributes {
  M count;
};
template <class M>
Attributes(M) -> Attributes<M>;
// The length of each section of an image, 64 bits each.
template <class M>
struct PartSizes {
  const char* name;
  M count;
};
template <class M>
PartSizes(const char*, M) -> PartSizes<M>;
// The sections of an image, each padded to 8 bytes. They are in the arena if the member is an offset in the arena.
template <class M, class C>
struct Parts {
  M arena;
  C count;
};
template <class M, class C>
Parts(M, C) -> Parts<M, C>;

}  // namespace field

}  // namespace api
