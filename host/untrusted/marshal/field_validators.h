// The field validators: the steps `take` and `check` of request.h for the fields (ring/api/fields.h) of a struct from
// the guest, which is a record or a part of a record. decoded_request.h handles the data after a record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "host/session/session.h"
#include "ring/api/records.h"

namespace host {

namespace field = api::field;

template <class R>
class FieldValidators {
 public:
  FieldValidators(Session& session, const R& copied) : record(copied), session_(session) {}
  FieldValidators(const FieldValidators&) = delete;
  FieldValidators& operator=(const FieldValidators&) = delete;

  Session& session() const { return session_; }

  const R record;

 protected:
  template <class M>
  std::uint64_t value(M member) const {
    return static_cast<std::uint64_t>(api::member_of(record, member));
  }

  // ---- take: returns false if the protocol is broken ---------------------------------------------------------------

  template <class M>
  bool take(std::size_t, const field::Number<M>&) {
    return true;
  }
  template <class M>
  bool take(std::size_t, const field::Between<M>& w) {
    return value(w.member) >= w.least && value(w.member) <= w.most;
  }
  template <class M, class F>
  bool take(std::size_t, const field::AtLeast<M, F>& w) {
    return value(w.member) >= w.least(record);
  }
  template <class M>
  bool take(std::size_t, const field::Flag<M>& w) {
    return value(w.member) <= 1;
  }
  template <class M>
  bool take(std::size_t, const field::Zero<M>& w) {
    return value(w.member) == 0;
  }
  template <class M>
  bool take(std::size_t, const field::Bits<M>& w) {
    return (value(w.member) & ~w.mask) == 0;
  }
  template <class M, class C>
  bool take(std::size_t, const field::OnlyIf<M, C>& w) {
    return value(w.condition) != 0 || value(w.member) == 0;
  }
  template <class M>
  bool take(std::size_t, const field::CreatedContext<M>& w) {
    return is_created_context(value(w.member));
  }
  template <class M>
  bool take(std::size_t, const field::NewContext<M>& w) {
    return is_created_context(value(w.member));
  }
  static bool is_created_context(std::uint64_t number) {
    return number >= ring::first_created_context && number < ring::max_contexts;
  }
  template <class M>
  bool take(std::size_t, const field::Ordinal<M>& w) {
    return value(w.member) < ring::max_devices;
  }
  template <class M>
  bool take(std::size_t, const field::Pages<M>& w) {
    return value(w.member) % ring::huge_page == 0;
  }
  template <class M>
  bool take(std::size_t, const field::Triple<M>&) {
    return true;
  }
  template <class M, class L>
  bool take(std::size_t, const field::Address<M, L>&) {
    return true;
  }
  template <class M, class L>
  bool take(std::size_t, const field::MaybeAddress<M, L>&) {
    return true;
  }
  template <class M>
  bool take(std::size_t, const field::MaybeId<M>&) {
    return true;
  }
  template <class M>
  bool take(std::size_t, const field::Frees<M>&) {
    return true;
  }
  template <class M>
  bool take(std::size_t, const field::Stream<M>&) {
    return true;
  }
  template <class M>
  bool take(std::size_t, const field::Id<M>&) {
    return true;
  }
  template <class M>
  bool take(std::size_t, const field::Closes<M>&) {
    return true;
  }
  template <class M>
  bool take(std::size_t, const field::Proposed<M>&) {
    return true;
  }
  // ---- check: returns the error of the first handle or memory that the session does not have -----------------------

  template <class W>
  CUresult check(std::size_t, const W&) {
    return CUDA_SUCCESS;  // take() has already checked the field completely
  }
  template <class M, class L>
  CUresult check(std::size_t, const field::Address<M, L>& w) {
    const auto bytes = api::length_of(record, w.length);
    if (bytes && *bytes == 0 && value(w.member) == 0) return CUDA_SUCCESS;  // null, with length 0
    return bytes && session().memory.addresses.contains(value(w.member), *bytes) ? CUDA_SUCCESS
                                                                                 : CUDA_ERROR_INVALID_VALUE;
  }
  template <class M, class L>
  CUresult check(std::size_t i, const field::MaybeAddress<M, L>& w) {
    const bool none = value(w.member) == 0 && api::length_of(record, w.length) == std::uint64_t{0};
    return none ? CUDA_SUCCESS : check(i, field::Address<M, L>{w.name, w.member, w.length});
  }
  template <class M>
  CUresult check(std::size_t i, const field::MaybeId<M>& w) {
    return value(w.member) == 0 ? CUDA_SUCCESS : find(i, value(w.member), w.kind);
  }
  // Removes the memory from the session's map before the driver can return the address to another call.
  template <class M>
  CUresult check(std::size_t, const field::Frees<M>& w) {
    return (freed_ = session().free(value(w.member))) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  template <class M>
  CUresult check(std::size_t i, const field::Stream<M>& w) {
    if (!api::special_stream(value(w.member))) return find(i, value(w.member), api::Handle::Stream);
    found_[i] = reinterpret_cast<const void*>(value(w.member));
    return CUDA_SUCCESS;
  }
  template <class M>
  CUresult check(std::size_t i, const field::Id<M>& w) {
    return find(i, value(w.member), w.kind);
  }
  template <class M>
  CUresult check(std::size_t i, const field::Closes<M>& w) {
    return find(i, value(w.member), w.kind);
  }
  CUresult find(std::size_t i, std::uint64_t id, api::Handle kind) {
    return (found_[i] = session().objects.find(id, kind)) != nullptr ? CUDA_SUCCESS : api::kind_of(kind).unknown;
  }

  std::array<const void*, api::field_count<R> + 1> found_{};  // the driver's handles, by position in the list
  std::optional<Session::Freed> freed_;                       // the memory that the driver is about to free

 private:
  Session& session_;
};

}  // namespace host
