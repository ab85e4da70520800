// Computes whether a call makes or ends an object, from the field descriptions of the call's record and reply.
//
// ```cpp
// template <class Record>
// constexpr bool counts_against_the_bound() {
//   return api::lives_of<Record>().makes;
// }
// ```
#pragma once

#include "ring/api/field_list.h"
#include "ring/api/records.h"

namespace api {

struct Lives {
  bool makes = false;         // makes an object or memory that counts against the session's bound
  bool with_another = false;  // the object that the call makes may end with another object or a context
  bool ends = false;          // ends an object and everything that the object owns
};
template <class W>
constexpr void see(const W&, Lives&) {}
template <class M>
constexpr void see(const field::Proposed<M>& w, Lives& l) {
  l.makes = true;
  l.with_another = l.with_another || ends_with_context(w.kind) || kind_of(w.kind).owners != unowned;
}
// Leaves `with_another` false: the session itself takes the locks to make and end a context.
template <class M>
constexpr void see(const field::NewContext<M>&, Lives& l) {
  l.makes = true;
}
template <class M, class L>
constexpr void see(const field::Memory<M, L>&, Lives& l) {
  l.makes = l.with_another = true;
}
template <class M>
constexpr void see(const field::Closes<M>&, Lives& l) {
  l.ends = true;
}
template <class R>
constexpr Lives lives_of() {
  Lives l;
  each_field<R>([&](const auto& word) { see(word, l); });
  each_field<typename ReplyOf<R>::Type>([&](const auto& word) { see(word, l); });
  return l;
}

}  // namespace api
