// Iterates over a list of fields (ring/api/fields.h), and reads the members that the list names. All functions are
// constexpr or pure.
//
// ```cpp
// template <class Record>
// constexpr std::size_t count_words() {
//   std::size_t words = 0;
//   api::each_field<Record>([&](const auto&) { ++words; });
//   return words;
// }
// ```
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ring/api/fields.h"

namespace api {

template <class R, class C, class T>
constexpr auto& member_of(R& record, T C::*member) {
  return record.*member;
}
template <class R, class C, class S, class T>
constexpr auto& member_of(R& record, InnerMember<C, S, T> member) {
  return record.*member.outer.*member.inner;
}
// Returns a length: a member's value, or a function's result for the record. Returns nothing if no memory can have that
// length.
template <class R, class L>
constexpr std::optional<std::uint64_t> length_of(const R& record, L length) {
  if constexpr (std::is_invocable_v<L, const R&> && !std::is_member_pointer_v<L>)
    return length(record);
  else
    return std::uint64_t{member_of(record, length)};
}

// Calls `f(word)` for each field description (word) of a record's list, in order.
template <class R, class F>
constexpr void each_field(F f) {
  std::apply([&](const auto&... word) { (f(word), ...); }, R::fields);
}
// Calls `f(word, index)` for each word of a record's list, in order.
template <class R, class F>
constexpr void each_field_at(F f) {
  std::apply(
      [&](const auto&... word) {
        [[maybe_unused]] std::size_t i = 0;
        (f(i++, word), ...);
      },
      R::fields);
}
template <class R>
inline constexpr std::size_t field_count = std::tuple_size_v<decltype(R::fields)>;

template <class W>
inline constexpr bool names_id = false;
template <class M>
inline constexpr bool names_id<field::Id<M>> = true;

// True if a word stands for bytes that follow a reply.
template <class W>
inline constexpr bool follows_reply_v = false;
template <class M>
inline constexpr bool follows_reply_v<field::Layout<M>> = true;
template <class M>
inline constexpr bool follows_reply_v<field::Text<M>> = true;
template <class M>
inline constexpr bool follows_reply_v<field::Characters<M>> = true;
template <class M>
inline constexpr bool follows_reply_v<field::Words<M>> = true;
template <class... W>
constexpr std::size_t count_runs(const std::tuple<W...>*) {
  return (std::size_t{0} + ... + (follows_reply_v<W> ? 1U : 0U));
}
template <class R>
inline constexpr std::size_t runs_behind = count_runs(static_cast<std::remove_const_t<decltype(R::fields)>*>(nullptr));

// A record or reply without fields.
struct Nothing {
  static constexpr std::tuple<> fields{};
};
template <class R>
struct ReplyOf {
  using Type = Nothing;
};
template <class R>
requires requires { typename R::Reply; }
struct ReplyOf<R> {
  using Type = typename R::Reply;
};

}  // namespace api
