// Makes the words of ring/api/fields.h for a list. A record's struct has one list, `fields`, after its members.
//
// ```cpp
// #include <tuple>
// struct FillRecord {
//   std::uint64_t device, bytes;
//   static constexpr std::tuple fields{api::field::address("to", &FillRecord::device, &FillRecord::bytes),
//                                      api::field::number("bytes", &FillRecord::bytes)};
// };
// ```
#pragma once

#include <cstdint>

#include "ring/api/fields.h"

namespace api::field {

template <class C, class S, class T>
constexpr InnerMember<C, S, T> of(S C::*outer, T S::*inner) {
  return {outer, inner};
}

template <class M>
constexpr Number<M> number(const char* name, M member) {
  return {name, member};
}
template <class M>
constexpr Number<M> unsaid(M member) {
  return {"", member};
}
template <class M>
constexpr Between<M> between(const char* name, M member, std::uint64_t least, std::uint64_t most) {
  return {name, member, least, most};
}
template <class M, class F>
constexpr AtLeast<M, F> at_least(const char* name, M member, F least) {
  return {name, member, least};
}
template <class M>
constexpr Flag<M> flag(M member) {
  return {member};
}
template <class M>
constexpr Zero<M> zero(M member) {
  return {member};
}
template <class M>
constexpr Bits<M> bits(const char* name, M member, std::uint64_t mask) {
  return {name, member, mask};
}
template <class M, class C>
constexpr OnlyIf<M, C> only_if(const char* name, M member, C condition) {
  return {name, member, condition};
}
template <class M>
constexpr CreatedContext<M> created_context(const char* name, M member) {
  return {name, member};
}
template <class M>
constexpr NewContext<M> new_context(const char* name, M member) {
  return {name, member};
}
template <class M>
constexpr Ordinal<M> ordinal(const char* name, M member) {
  return {name, member};
}
template <class M>
constexpr Pages<M> page(const char* name, M member) {
  return {name, member, true};
}
template <class M>
constexpr Pages<M> pages(const char* name, M member) {
  return {name, member, false};
}
template <class M>
constexpr Triple<M> triple(const char* name, M member) {
  return {name, member};
}
template <class M, class L>
constexpr Address<M, L> address(const char* name, M member, L length) {
  return {name, member, length};
}
template <class M, class L>
constexpr MaybeAddress<M, L> maybe_address(const char* name, M member, L length) {
  return {name, member, length};
}
template <class M>
constexpr Frees<M> frees(const char* name, M member) {
  return {name, member};
}
template <class M, class L>
constexpr Place<M, L> place(const char* name, M member, L length, Otherwise otherwise) {
  return {name, member, length, otherwise};
}
template <class M, class L>
constexpr Memory<M, L> memory(const char* name, M member, L length) {
  return {name, member, length};
}
template <class M>
constexpr Arena<M> arena(const char* name, M member) {
  return {name, member};
}
template <class M>
constexpr Stream<M> stream(M member, const char* name = "stream") {
  return {name, member};
}
template <class M>
constexpr Id<M> id(Handle kind, M member) {
  return {kind_of(kind).text, member, kind};
}
template <class M>
constexpr MaybeId<M> maybe_id(const char* name, Handle kind, M member) {
  return {name, member, kind};
}
template <class M>
constexpr Closes<M> closes(Handle kind, M member) {
  return {kind_of(kind).text, member, kind};
}
template <class M>
constexpr Proposed<M> proposed(Handle kind, M member) {
  return {kind_of(kind).text, member, kind};
}
template <class M>
constexpr Made<M> made(Handle kind, M member) {
  return {kind_of(kind).text, member, kind};
}
template <class M>
constexpr Text<M> text(const char* name, M length) {
  return {name, length};
}
template <class M>
constexpr Characters<M> characters(const char* name, M length) {
  return {name, length};
}
template <class M>
constexpr Words<M> words(const char* name, M length) {
  return {name, length};
}
template <class M>
constexpr Layout<M> layout(const char* name, M count, M bytes) {
  return {name, count, bytes};
}
template <class M>
constexpr Parameters<M> parameters(const char* name, M length) {
  return {name, length};
}
template <class M>
constexpr JitOptions<M> jit_options(M count) {
  return {count};
}
template <class M>
constexpr Ids<M> ids(const char* name, Handle kind, M count) {
  return {name, count, kind};
}
template <class M>
constexpr Attributes<M> attributes(M count) {
  return {count};
}
template <class M>
constexpr PartSizes<M> part_sizes(const char* name, M count) {
  return {name, count};
}
template <class M, class C>
constexpr Parts<M, C> parts(M arena, C count) {
  return {arena, count};
}

}  // namespace api::field
