// The host's half of every CALL line: translates bytes of a guest into arguments of a driver call, and makes the reply.
//
// A record has the slots first and then the bytes that the slots describe, as guest/marshal/marshal.h writes them. A
// record that no correct guest sends ends the session: a length that the call does not imply, bytes left over, a number
// that does not fit its type. An unknown handle or address yields the driver's error, since a correct guest can be
// late.
#pragma once

#include <cstring>
#include <optional>
#include <shared_mutex>
#include <tuple>
#include <utility>

#include "host/untrusted/marshal/captured.h"
#include "host/untrusted/marshal/request.h"
#include "host/untrusted/marshal/structs.h"
#include "ring/api/call.h"
#include "ring/base/mutex.h"

namespace host {

using api::Arg, api::Dir, api::Extent;

template <class S>
class Unmarshal;

template <class... P, Arg... A>
class Unmarshal<api::Shape<CUresult(P...), A...>> {
  using Params = std::tuple<P...>;
  static constexpr std::array<Arg, sizeof...(A)> args{A...};
  static constexpr auto indices = std::make_index_sequence<sizeof...(P)>{};

 public:
  explicit Unmarshal(Request& r) : r_(r) {}

  // `function`: the driver's function, or an accounting function (counted.h).
  template <class F>
  CUresult run(F function) {
    [[maybe_unused]] const auto changing = changing_ranges();
    if (!take_all()) return r_.broken();
    if (refused_ != CUDA_SUCCESS) return refused_;
    if (makes() && !r_.session.may_make_another()) return CUDA_ERROR_OUT_OF_MEMORY;
    [[maybe_unused]] const auto ending = closes_family() ? r_.session.ending() : std::unique_lock<ring::SharedMutex>();
    const auto making = makes() ? r_.session.making() : std::shared_lock<ring::SharedMutex>();
    each([&]<std::size_t I>() { begin<I>(); });
    if (refused_ != CUDA_SUCCESS) return refused_;
    const CUresult result = std::apply(function, params_);
    if (freed_) r_.session.asked_to_free(*freed_, result);
    if (result == CUDA_SUCCESS) each([&]<std::size_t I>() { commit<I>(); });
    if (broken_) return r_.broken();
    return result == CUDA_SUCCESS ? refused_ : result;
  }

  // For a call that the driver does not have. The record is still checked.
  CUresult refuse() { return take_all() ? CUDA_ERROR_NOT_SUPPORTED : r_.broken(); }

 private:
  template <class F>
  static constexpr void each(F f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f.template operator()<I>(), ...); }
    (indices);
  }
  template <std::size_t I>
  using Param = std::tuple_element_t<I, Params>;

  template <std::size_t I>
  static constexpr api::Handle kind = api::kind_of_param<Param<I>, args[I]>;
  template <std::size_t I>
  static constexpr bool is_visited = api::visited<api::Pointee<Param<I>>>;

  // Returns false if no correct guest sends this record.
  bool take_all() {
    each([&]<std::size_t I>() { slots_[I] = r_.in.slot(); });
    each([&]<std::size_t I>() { take<I>(); });
    return r_.complete() && !broken_;
  }

  // Returns whether the call gives the session another object or range.
  static constexpr bool makes() {
    return ((A.dir == Dir::Creates || A.dir == Dir::Finds || A.dir == Dir::Memory || A.range == api::Range::Mapped) ||
            ...);
  }

  // Returns whether the call ends an object and the objects that it owns.
  static constexpr bool closes_family() {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return ((args[I].closes && api::has_family(kind<I>)) || ...);
    }
    (indices);
  }
  // Returns the id in the call of an object that may own the found object; 0: none.
  template <std::size_t I>
  std::uint64_t owner_of_found() const {
    std::uint64_t owner = 0;
    each([&]<std::size_t J>() {
      if constexpr (args[J].dir == Dir::Value && api::may_own(kind<J>, kind<I>))
        if (owner == 0) owner = slots_[J];
    });
    return owner;
  }

  // The lock that a call on a reserved range holds until its commit.
  auto changing_ranges() {
    if constexpr (((A.range != api::Range::Stays) || ...))
      return r_.session.memory.reserved.changing();
    else
      return nullptr;
  }

  template <std::size_t I>
  void take() {
    constexpr Arg a = args[I];
    if constexpr (a.dir == Dir::Value)
      take_value<I>();
    else if constexpr (a.dir == Dir::Device)
      take_device<I>();
    else if constexpr (a.dir == Dir::Creates)
      std::get<I>(params_) = reinterpret_cast<Param<I>>(&created_[I]);
    else if constexpr (a.dir == Dir::Finds || a.dir == Dir::Knows || a.dir == Dir::Memory)
      take_answer<I>();
    else if constexpr (a.dir == Dir::Frees || a.dir == Dir::Reserved || a.dir == Dir::Inside)
      take_address<I>();
    else if constexpr (a.dir == Dir::Ids)
      take_ids<I>();
    else
      take_pointer<I>();
  }

  // The driver writes a handle or an address into this place, and settle() puts the id or the address into the reply.
  template <std::size_t I>
  void take_answer() {
    if (slots_[I] != sizeof(std::uint64_t)) broken_ = true;
    answer_[I] = r_.out.reserve(sizeof(std::uint64_t));
    std::get<I>(params_) = reinterpret_cast<Param<I>>(&created_[I]);
  }

  template <std::size_t I>
  void take_address() {
    constexpr Arg a = args[I];
    const std::uint64_t at = slots_[I];
    std::get<I>(params_) = api::from_number<Param<I>>(at);
    if constexpr (a.dir == Dir::Reserved)
      if (!r_.session.memory.reserved.holds(at, slots_[static_cast<std::size_t>(a.count)]))
        refused_ = CUDA_ERROR_INVALID_VALUE;
    if constexpr (a.dir == Dir::Inside)
      if (!r_.session.memory.knows(at)) refused_ = CUDA_ERROR_INVALID_VALUE;
  }

  // Removes the memory from the session's map before the driver can return the address to another call.
  template <std::size_t I>
  void begin() {
    if constexpr (args[I].dir == Dir::Frees)
      if (refused_ == CUDA_SUCCESS && !(freed_ = r_.session.free(slots_[I]))) refused_ = CUDA_ERROR_INVALID_VALUE;
  }

  template <std::size_t I>
  void take_value() {
    using T = Param<I>;
    const std::uint64_t v = slots_[I];
    if constexpr (args[I].ordinal) {
      take_ordinal<I>(v);
    } else if constexpr (api::crosses_as_number(kind<I>)) {
      take_context<I>(v);
    } else if constexpr (kind<I> == api::Handle::None) {
      std::get<I>(params_) = api::from_number<T>(v);
      if (api::number_of(std::get<I>(params_)) != v) broken_ = true;
    } else if (kind<I> == api::Handle::Stream && !args[I].closes && api::special_stream(v)) {
      std::get<I>(params_) = api::from_number<T>(v);
    } else {
      void* handle = r_.session.objects.find(v, kind<I>);
      // The driver ends an owned object together with its owner.
      const bool goes_alone = !args[I].closes || args[I].removes || !r_.session.objects.is_owned(v);
      if (handle == nullptr || !goes_alone) refused_ = api::kind_of(kind<I>).unknown;
      if constexpr (args[I].closes) r_.ending = v;
      std::get<I>(params_) = api::from_number<T>(reinterpret_cast<std::uint64_t>(handle));
    }
  }

  // Handles overwrite the ids in place, since the record is private.
  template <std::size_t I>
  void take_ids() {
    const std::uint64_t bytes = slots_[I], count = slots_[static_cast<std::size_t>(args[I].count)];
    if (count > ring::max_record || bytes != count * sizeof(std::uint64_t)) return void(broken_ = true);
    auto* const at = const_cast<std::byte*>(r_.in.take(bytes));
    if (at == nullptr) return void(broken_ = true);
    for (std::uint64_t k = 0; k < count; ++k) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + k * sizeof word, sizeof word);
      void* const handle = r_.session.objects.find(word, kind<I>);
      if (handle == nullptr) refused_ = api::kind_of(kind<I>).unknown;
      std::memcpy(at + k * sizeof word, &handle, sizeof handle);
    }
    std::get<I>(params_) = count == 0 ? nullptr : reinterpret_cast<Param<I>>(at);
  }

  template <std::size_t I>
  void take_ordinal(std::uint64_t ordinal) {
    if (ordinal >= ring::max_devices) return void(broken_ = true);
    const CUresult r = r_.session.driver.cuDeviceGet(&std::get<I>(params_), static_cast<int>(ordinal));
    if (r != CUDA_SUCCESS) refused_ = r;
  }

  // For a parameter that the record gives as a context's number.
  template <std::size_t I>
  void take_context(std::uint64_t number) {
    if (number >= ring::max_contexts) return void(broken_ = true);
    const auto at = static_cast<unsigned>(number);
    if constexpr (kind<I> == api::Handle::GreenContext)
      std::get<I>(params_) = r_.session.contexts.find_green(r_.context = at);
    else
      std::get<I>(params_) = r_.session.contexts.find(at);
    if (std::get<I>(params_) == nullptr) refused_ = CUDA_ERROR_INVALID_CONTEXT;
  }

  template <std::size_t I>
  void take_device() {
    constexpr Arg a = args[I];
    if (a.may_be_null && slots_[I] == 0) return;
    const auto bytes = api::device_bytes<a>([&](int n) { return slots_[static_cast<std::size_t>(n)]; });
    const bool some = bytes && (a.extent != Extent::Rows || *bytes != 0);
    if (!some ||
        !(r_.session.memory.addresses.contains(slots_[I], *bytes) || (a.judged_later && is_captured_to_the_end())))
      refused_ = CUDA_ERROR_INVALID_VALUE;
    std::get<I>(params_) = slots_[I];
  }

  // Returns whether the call's stream is captured; if so, the stream stays captured until the driver was called. A
  // graph node with another session's address can do no more than a kernel can.
  bool is_captured_to_the_end() {
    if (!r_.session.graphs.captures.any()) return false;
    captures_stay_ = r_.session.making();
    const bool captured = is_on_captured_stream(r_);
    if (!captured) captures_stay_.unlock();
    return captured;
  }

  // The guest sends the length that the call implies. The worker computes this length, too, and compares both values.
  template <std::size_t I>
  void take_pointer() {
    constexpr Arg a = args[I];
    using T = api::Pointee<Param<I>>;
    const std::uint64_t length = slots_[I];
    if (length == ring::absent) {
      if (!a.may_be_null || (a.dir == Dir::In && !a.optional && slots_[static_cast<std::size_t>(a.count)] != 0))
        broken_ = true;
      std::get<I>(params_) = nullptr;
      return;
    }
    if constexpr (a.extent == Extent::One) {
      if (length != sizeof(T)) broken_ = true;
    } else if constexpr (a.extent == Extent::Row) {
      if (length != sizeof(T) * std::size_t{a.count}) broken_ = true;
    } else if constexpr (a.extent == Extent::Valued) {
      if (length == 0 || length != api::value_bytes(std::get<static_cast<std::size_t>(a.count)>(params_)))
        broken_ = true;
    } else if constexpr (a.extent == Extent::Counted) {
      const std::uint64_t count = slots_[static_cast<std::size_t>(a.count)];
      if (count > ring::max_record || length != count * sizeof(T) || (a.some && count == 0)) broken_ = true;
    }
    if (broken_ || length > ring::max_record) {
      broken_ = true;
      return;
    }
    if constexpr (a.dir == Dir::In) {
      const std::byte* at = r_.in.take(length);
      if (at == nullptr || (a.extent == Extent::String && (length == 0 || at[length - 1] != std::byte{0})))
        broken_ = true;
      // Private memory, because the record was copied.
      std::get<I>(params_) = reinterpret_cast<Param<I>>(const_cast<std::byte*>(at));
      if constexpr (is_visited<I>)
        if (!broken_) visit_structs<I>(ToDriver{r_.session});
    } else {
      std::byte* at = r_.out.reserve(length);
      if (at != nullptr) std::memset(at, 0, length);  // the driver may write less than the length
      std::get<I>(params_) = reinterpret_cast<Param<I>>(at);
    }
  }

  template <std::size_t I, class V>
  void visit_structs(V visitor) {
    using T = api::Pointee<Param<I>>;
    auto* at = const_cast<T*>(std::get<I>(params_));
    for (std::size_t i = 0; at != nullptr && i < slots_[I] / sizeof(T); ++i) api::visit(at[i], visitor);
    if (visitor.broken) broken_ = true;
    if (visitor.refused != CUDA_SUCCESS) refused_ = visitor.refused;
  }

  // The driver may return a handle whose object has ended. The guest then gets an error.
  template <std::size_t I>
  void commit_known() {
    const std::uint64_t id = r_.session.objects.id_of(kind<I>, created_[I]);
    if (id == 0) refused_ = CUDA_ERROR_INVALID_VALUE;
    std::memcpy(answer_[I], &id, sizeof id);
  }

  template <std::size_t I>
  void commit_memory() {
    const auto at = reinterpret_cast<std::uint64_t>(created_[I]);
    const std::uint64_t bytes = slots_[static_cast<std::size_t>(args[I].count)];
    if constexpr (args[I].range == api::Range::Made)
      r_.session.memory.reserved.add(at, bytes);
    else if (at != 0)
      r_.session.memory.addresses.add({.start = at,
                                       .bytes = bytes,
                                       .context = r_.context_of_memory(),
                                       .device = r_.charge.device(),
                                       .charged = r_.charge.hand_over(),
                                       .pool = r_.pool});
    std::memcpy(answer_[I], &at, sizeof at);
  }

  // A memory object exists as long as it is mapped, even if the guest has released it.
  template <std::size_t I>
  void commit_range() {
    constexpr Arg a = args[I];
    std::uint64_t mapped = 0;
    each([&]<std::size_t J>() {
      if constexpr (a.range == api::Range::Mapped && kind<J> == api::Handle::Allocation)
        if (r_.session.objects.keep(slots_[J])) mapped = slots_[J];
    });
    for (const std::uint64_t id :
         r_.session.memory.reserved.commit(a.range, slots_[I], slots_[static_cast<std::size_t>(a.count)], mapped))
      r_.session.close(id);
  }

  template <std::size_t I>
  void commit() {
    constexpr Arg a = args[I];
    if constexpr (a.dir == Dir::Creates) {
      r_.session.memory.charges.keep(slots_[I], std::move(r_.charge));
      if (!r_.session.objects.put_new(slots_[I], kind<I>, created_[I], r_.place(kind<I>))) broken_ = true;
    } else if constexpr (a.dir == Dir::Finds) {
      const std::uint64_t id =
          r_.session.objects.put_found(kind<I>, created_[I], r_.place(kind<I>, owner_of_found<I>()));
      std::memcpy(answer_[I], &id, sizeof id);
    } else if constexpr (a.dir == Dir::Knows) {
      commit_known<I>();
    } else if constexpr (a.dir == Dir::Memory) {
      commit_memory<I>();
    } else if constexpr (a.dir == Dir::Reserved) {
      commit_range<I>();
    } else if constexpr (a.dir == Dir::Out && is_visited<I>) {
      visit_structs<I>(ToGuest{r_.session});
    } else if constexpr (a.closes) {
      r_.session.close(slots_[I]);
    }
  }

  Request& r_;
  Params params_{};
  std::uint64_t slots_[sizeof...(P) + 1] = {};
  void* created_[sizeof...(P) + 1] = {};
  std::byte* answer_[sizeof...(P) + 1] = {};  // found ids and new addresses in the reply
  std::shared_lock<ring::SharedMutex> captures_stay_;
  std::optional<Session::Freed> freed_;  // the memory that the driver is about to free
  CUresult refused_ = CUDA_SUCCESS;
  bool broken_ = false;
};

}  // namespace host
