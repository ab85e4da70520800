// Words of GUEST lines: the arguments that the worker passes to the driver, one for each parameter of the declaration.
// All are data. host/untrusted/calls/guest_line.h makes the arguments from the decoded and checked record.
//
// A member of the record, `&R::member`, is passed as its value: a number, an array, a checked address, or, if the
// record's list names an object there, the driver's handle. The words below are for all other arguments. In a line, R
// is the record and Reply is its reply.
//
// ```cpp
// struct Asked {
//   std::uint64_t function;
// };
// struct Answer {
//   std::uint64_t blocks;
// };
// constexpr std::tuple arguments{api::pass::result(&Answer::blocks), &Asked::function};
// static_assert(std::get<0>(arguments).member == &Answer::blocks);
// ```
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "ring/api/field_list.h"

namespace api {

namespace pass {

// A pointer to a zeroed value. After the call, this member of the reply gets the value.
template <class M>
struct Result {
  M member;
};
template <class M>
constexpr Result<M> result(M member) {
  return {member};
}
// Like a result, but the value is first set to the record's member.
template <class G, class M>
struct Changed {
  G given;
  M member;
};
template <class G, class M>
constexpr Changed<G, M> changed(G given, M member) {
  return {given, member};
}
// A pointer to a handle that the driver has or finds. The reply gets the handle's id in this member.
template <class M>
struct Found {
  M member;
};
template <class M>
constexpr Found<M> found(M member) {
  return {member};
}
// One element of an array.
template <std::size_t index, class M>
struct Element {
  M member;
};
template <std::size_t index, class M>
constexpr Element<index, M> element(M member) {
  return {member};
}
// A pointer to the member's value, as a T.
template <class T, class M>
struct PointerTo {
  M member;
};
template <class T, class M>
constexpr PointerTo<T, M> pointer_to(M member) {
  return {member};
}
// An argument that is the same in each call.
template <class T>
struct Constant {
  T value;
};
template <class T>
constexpr Constant<T> constant(T value) {
  return {value};
}
// A pointer to the driver's struct T, built from the record (host/untrusted/calls/driver_structs.h).
template <class T>
struct Built {};
template <class T>
inline constexpr Built<T> built{};
// The name after the record.
struct Text {};
inline constexpr Text text{};
// The tag and the value of the record's only attribute, which streams and kernel nodes may have.
struct AttributeTag {};
inline constexpr AttributeTag attribute_tag{};
struct AttributeValue {};
inline constexpr AttributeValue attribute_value{};
// The driver's context in which the call is made.
struct CurrentContext {};
inline constexpr CurrentContext current_context{};

}  // namespace pass

// Whether a word of a list refers to an object of the session, or to memory of the session.
template <class W>
inline constexpr bool is_checked_handle = false;
template <class M>
inline constexpr bool is_checked_handle<field::Id<M>> = true;
template <class M>
inline constexpr bool is_checked_handle<field::MaybeId<M>> = true;
template <class M>
inline constexpr bool is_checked_handle<field::Closes<M>> = true;
template <class M>
inline constexpr bool is_checked_handle<field::Stream<M>> = true;
template <class W>
inline constexpr bool is_checked_address = false;
template <class M, class L>
inline constexpr bool is_checked_address<field::Address<M, L>> = true;
template <class M, class L>
inline constexpr bool is_checked_address<field::MaybeAddress<M, L>> = true;
template <class M>
inline constexpr bool is_checked_address<field::Frees<M>> = true;

// Whether record R's list checks the member as an object's id, or as an address.
template <class R, class M>
constexpr bool checks_handle(M member) {
  bool checks = false;
  each_field<R>([&]<class W>(const W& word) {
    if constexpr (is_checked_handle<W>)
      if constexpr (std::is_same_v<decltype(word.member), M>) checks = checks || word.member == member;
  });
  return checks;
}
template <class R, class M>
constexpr bool checks_address(M member) {
  bool checks = false;
  each_field<R>([&]<class W>(const W& word) {
    if constexpr (is_checked_address<W>)
      if constexpr (std::is_same_v<decltype(word.member), M>) checks = checks || word.member == member;
  });
  return checks;
}

}  // namespace api
