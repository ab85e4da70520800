// The worker's half of a GUEST line: makes the driver's arguments from the decoded and checked record, as the words of
// the line describe (ring/api/pass.h), calls the driver, and fills the reply.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "host/untrusted/calls/driver_structs.h"
#include "host/untrusted/calls/kept_number.h"
#include "host/untrusted/calls/lookup.h"
#include "host/untrusted/calls/node_parts.h"
#include "host/untrusted/marshal/call_context.h"

namespace host::calls {

template <int Id>
using RecordOf = typename api::Call<Id>::Record;
template <int Id>
using ReplyTo = typename api::ReplyOf<RecordOf<Id>>::Type;
template <int Id, std::size_t I>
using ParameterOf = typename api::ParametersOf<typename api::Call<Id>::Function>::template Type<I>;
template <int Id, std::size_t I>
using WordOf = std::tuple_element_t<I, std::remove_cvref_t<decltype(api::Call<Id>::arguments)>>;
template <int Id, std::size_t I>
inline constexpr WordOf<Id, I> word_of = std::get<I>(api::Call<Id>::arguments);

// Converts a number to a parameter's type. An enum gets the number's bits, since the guest's number may be outside the
// enumeration.
template <class P, class T>
P as_parameter(T number) {
  if constexpr (sizeof(P) == sizeof(T))
    return std::bit_cast<P>(number);
  else
    return api::from_number<P>(number);
}

// ---- arguments: argument I of call Id, by the line's word ----------------------------------------------------------

// Defaults of the functions that most arguments do not need.
struct PlainArgument {
  // Returns false for a record that no correct guest sends. The driver is then not called.
  bool is_sound() const { return true; }
  // Writes the argument's result to the reply, after success. Returns false if the protocol is broken.
  template <class A, class Reply>
  bool settle(A&, Reply&) const {
    return true;
  }
};

template <int Id, std::size_t I, class Word = WordOf<Id, I>>
class Argument;

// An argument that is a member of the record.
template <int Id, std::size_t I, class C, class T>
class Argument<Id, I, T C::*> : public PlainArgument {
  using P = ParameterOf<Id, I>;
  using R = RecordOf<Id>;
  static constexpr T C::*member = word_of<Id, I>;
  static constexpr bool is_handle = api::checks_handle<R>(member);
  // cuda.h declares CUdeviceptr and some handles as unsigned long long, and no other parameter of these calls.
  static constexpr bool may_be_address = std::is_same_v<P, unsigned long long> || std::is_pointer_v<P>;
  static_assert(std::is_array_v<T> || is_handle || !may_be_address || api::checks_address<R>(member),
                "the record's list must check what the driver takes for an address or a handle");

 public:
  explicit Argument(CallContext<Id>& a) : a_(a) {}
  P get() const {
    if constexpr (std::is_array_v<T>)
      return reinterpret_cast<P>(&(a_.record.*member));
    else if constexpr (!is_handle)
      return as_parameter<P>(a_.record.*member);
    else if constexpr (std::is_pointer_v<P>)
      return a_.template handle<P>(member);
    else
      return kept_number(a_.template handle<void*>(member));
  }

 private:
  const CallContext<Id>& a_;
};

template <int Id, std::size_t I, std::size_t index, class M>
class Argument<Id, I, api::pass::Element<index, M>> : public PlainArgument {
 public:
  explicit Argument(CallContext<Id>& a) : value_((a.record.*word_of<Id, I>.member)[index]) {}
  ParameterOf<Id, I> get() const { return value_; }

 private:
  const ParameterOf<Id, I> value_;
};

template <int Id, std::size_t I, class T, class M>
class Argument<Id, I, api::pass::PointerTo<T, M>> : public PlainArgument {
 public:
  explicit Argument(CallContext<Id>& a) : value_(static_cast<T>(a.record.*word_of<Id, I>.member)) {}
  const T* get() const { return &value_; }

 private:
  const T value_;
};

template <int Id, std::size_t I, class T>
class Argument<Id, I, api::pass::Constant<T>> : public PlainArgument {
 public:
  explicit Argument(CallContext<Id>&) {}
  T get() const { return word_of<Id, I>.value; }
};

template <int Id, std::size_t I, class T>
class Argument<Id, I, api::pass::Built<T>> : public PlainArgument {
 public:
  explicit Argument(CallContext<Id>& a) : built_(a) {}
  const T* get() const { return built_.get(); }

 private:
  const DriverStruct<T, RecordOf<Id>> built_;
};

template <int Id, std::size_t I>
class Argument<Id, I, api::pass::Text> : public PlainArgument {
 public:
  explicit Argument(CallContext<Id>& a) : text_(a.text().data()) {}
  const char* get() const { return text_; }

 private:
  const char* const text_;
};

template <int Id, std::size_t I>
class Argument<Id, I, api::pass::CurrentContext> : public PlainArgument {
 public:
  explicit Argument(CallContext<Id>& a) : context_(context_of(a.request)) {}
  CUcontext get() const { return context_; }

 private:
  const CUcontext context_;
};

template <int Id, std::size_t I>
class Argument<Id, I, api::pass::AttributeTag> : public PlainArgument {
 public:
  explicit Argument(CallContext<Id>& a) : tag_(a.attributes()->id) {}
  bool is_sound() const { return api::is_streams(tag_); }
  CUlaunchAttributeID get() const { return tag_; }

 private:
  const CUlaunchAttributeID tag_;
};

template <int Id, std::size_t I>
class Argument<Id, I, api::pass::AttributeValue> : public PlainArgument {
 public:
  explicit Argument(CallContext<Id>& a) : value_(&a.attributes()->value) {}
  const CUlaunchAttributeValue* get() const { return value_; }

 private:
  const CUlaunchAttributeValue* const value_;
};

// A value that the driver returns, for a member of the reply.
template <int Id, std::size_t I>
class ResultArgument : public PlainArgument {
 public:
  using Value = std::remove_pointer_t<ParameterOf<Id, I>>;

  Value* get() { return &value_; }
  template <class A, class Reply>
  bool settle(A&, Reply& reply) const {
    auto& member = reply.*word_of<Id, I>.member;
    if constexpr (std::is_array_v<std::remove_cvref_t<decltype(member)>>) {
      static_assert(sizeof member == sizeof value_);
      std::memcpy(&member, &value_, sizeof value_);
    } else {
      member = static_cast<std::remove_cvref_t<decltype(member)>>(value_);
    }
    return true;
  }

 protected:
  Value value_{};
};

template <int Id, std::size_t I, class M>
class Argument<Id, I, api::pass::Result<M>> : public ResultArgument<Id, I> {
 public:
  explicit Argument(CallContext<Id>&) {}
};

template <int Id, std::size_t I, class G, class M>
class Argument<Id, I, api::pass::Changed<G, M>> : public ResultArgument<Id, I> {
 public:
  explicit Argument(CallContext<Id>& a) {
    const auto& given = a.record.*word_of<Id, I>.given;
    static_assert(sizeof given == sizeof this->value_);
    std::memcpy(&this->value_, &given, sizeof given);
  }
};

// A handle that the driver returns. The reply to a lookup of a function has more than the function's id (lookup.h).
template <int Id, std::size_t I, class M>
class Argument<Id, I, api::pass::Found<M>> : public PlainArgument {
 public:
  explicit Argument(CallContext<Id>&) {}
  ParameterOf<Id, I> get() { return &found_; }
  auto found() const { return found_; }
  template <class A, class Reply>
  bool settle(A& a, Reply& reply) const {
    return (reply.*word_of<Id, I>.member = a.put_once(found_)) != 0;
  }

 private:
  std::remove_pointer_t<ParameterOf<Id, I>> found_ = nullptr;
};

// ---- the call ------------------------------------------------------------------------------------------------------

template <int Id, class... Arguments>
CUresult call_with(CallContext<Id>& a, Arguments&&... arguments) {
  using Reply = ReplyTo<Id>;
  if (!(arguments.is_sound() && ...)) return a.request.broken();
  const CUresult result = a.call(arguments.get()...);
  if (result != CUDA_SUCCESS) return result;
  if constexpr (std::is_same_v<Reply, api::Nothing>) {
    return result;
  } else if constexpr (std::derived_from<Reply, api::FunctionReply>) {
    return answer_found(a, std::get<0>(std::tie(arguments...)).found(), a.text());
  } else {
    Reply reply{};
    return (arguments.settle(a, reply) && ...) ? a.answer(result, reply) : a.request.broken();
  }
}

// Serves a GUEST line.
template <int Id>
CUresult call_by_line(CallContext<Id>& a) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return call_with(a, Argument<Id, I>(a)...); }
  (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(api::Call<Id>::arguments)>>>{});
}

}  // namespace host::calls
