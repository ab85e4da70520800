// Serves a CUSTOM or SESSION call in the worker: everything except the call's own function (host/untrusted/calls/).
#pragma once

#include <mutex>
#include <shared_mutex>

#include "host/untrusted/marshal/decoded_request.h"
#include "host/untrusted/marshal/form.h"
#include "ring/api/lives.h"
#include "ring/base/mutex.h"

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

// The argument of a call's function: the decoded and checked record.
template <int Id>
class CallContext : public DecodedRequest<typename api::Call<Id>::Record> {
 public:
  using Form = typename FormOf<Id>::Type;

  CallContext(Request& r, Form form) : DecodedRequest<typename api::Call<Id>::Record>(r), form_(form) {}

  // Calls the driver's function of the same name, or its per-thread variant.
  template <class... P>
  CUresult call(P... p) const {
    if (form_ == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    const Session& session = this->request.session;
    const ProgramsMode here(session.driver, session.graphs.captures, this->request.capture_mode());
    return per_thread_or<Id>(this->request, form_)(p...);
  }

 private:
  const Form form_;
};

// The lock that a call holds until its commit. The lock keeps a reset or an unload on another channel from ending
// objects that the session does not know yet.
template <class R>
auto hold(Session& session) {
  constexpr api::Lives lives = api::lives_of<R>();
  if constexpr (lives.ends)
    return session.ending();
  else if constexpr (lives.with_another)
    return session.making();
  else
    return std::shared_lock<ring::SharedMutex>();
}

template <int Id>
CUresult serve(CallContext<Id>& context, CUresult (*function)(CallContext<Id>&)) {
  using Record = typename api::Call<Id>::Record;
  if (!context.take()) return context.request.broken();
  const auto held = hold<Record>(context.session());
  if (const CUresult refused = context.check(); refused != CUDA_SUCCESS) return refused;
  if (api::lives_of<Record>().makes && !context.session().may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = function(context);
  context.end_freed(result);
  if (result == CUDA_SUCCESS) context.commit();
  return result;
}

}  // namespace host
