// A CUSTOM or SESSION call in the worker: everything but what its function does (host/untrusted/calls/).
#pragma once

#include <mutex>
#include <shared_mutex>

#include "host/untrusted/form.h"
#include "host/untrusted/taken.h"

namespace host {

template <int Id>
struct FormOf {
  using Type = std::nullptr_t;
};
template <int Id>
requires requires { typename api::Call<Id>::Function; }
struct FormOf<Id> {
  using Type = typename api::Call<Id>::Function*;
};

// What a call's function gets.
template <int Id>
class Asked : public Taken<typename api::Call<Id>::Record> {
 public:
  using Form = typename FormOf<Id>::Type;

  Asked(Request& r, Form form) : Taken<typename api::Call<Id>::Record>(r), form_(form) {}

  // The driver's function of the same name, or its form for a thread's own stream.
  template <class... P>
  CUresult call(P... p) const {
    return form_ == nullptr ? CUDA_ERROR_NOT_SUPPORTED : per_thread_or<Id>(this->request, form_)(p...);
  }

 private:
  const Form form_;
};

// ---- what a call makes or ends, by its list ------------------------------------------------------------------------

struct Lives {
  bool makes = false;         // something that counts
  bool with_another = false;  // and that ends with something else
  bool ends = false;          // something, with all that goes with it
};
template <class W>
constexpr void see(const W&, Lives&) {}
template <class M>
constexpr void see(const field::Proposed<M>& w, Lives& l) {
  l.makes = true;
  l.with_another = l.with_another || api::ends_with_context(w.kind) || api::kind_of(w.kind).owners != api::unowned;
}
// Its locks are the session's own affair, as those of a context's end are.
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
  api::each_field<R>([&](const auto& word) { see(word, l); });
  api::each_field<typename api::ReplyOf<R>::Type>([&](const auto& word) { see(word, l); });
  return l;
}

// Held until the call is settled: what a reset or an unload of another channel takes along is known to be gone.
template <class R>
auto hold(Session& session) {
  constexpr Lives lives = lives_of<R>();
  if constexpr (lives.ends)
    return session.ending();
  else if constexpr (lives.with_another)
    return session.making();
  else
    return std::shared_lock<std::shared_mutex>();
}

template <int Id>
CUresult serve(Asked<Id>& asked, CUresult (*function)(Asked<Id>&)) {
  using Record = typename api::Call<Id>::Record;
  if (!asked.take()) return asked.request.broken();
  const auto held = hold<Record>(asked.session());
  if (const CUresult refused = asked.check(); refused != CUDA_SUCCESS) return refused;
  if (lives_of<Record>().makes && !asked.session().may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = function(asked);
  if (result == CUDA_SUCCESS) asked.settle();
  return result;
}

}  // namespace host
