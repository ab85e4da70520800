// The guest's half of every CALL line: puts arguments into a record in the ring, and reads the results from the reply.
//
// Each call first finds the errors that CUDA reports at once: context, handles, NULL pointers, addresses. The call then
// waits for calls that it must not overtake, and writes and publishes its record. No function here allocates memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "guest/marshal/done_question.h"
#include "guest/marshal/kept_objects.h"
#include "guest/marshal/lengths.h"
#include "guest/marshal/new_memory.h"
#include "guest/marshal/order.h"
#include "guest/marshal/sending.h"
#include "guest/marshal/structs.h"
#include "ring/api/call.h"

namespace guest {

using api::Arg, api::Dir, api::Extent, api::Handle;

template <class S>
class Marshal;

template <class... P, Arg... A>
class Marshal<api::Shape<CUresult(P...), A...>> {
  using Params = std::tuple<P...>;
  static constexpr std::array<Arg, sizeof...(A)> args{A...};
  static constexpr auto indices = std::make_index_sequence<sizeof...(P)>{};

 public:
  explicit Marshal(const Params& params) : params_(params) {}

  // `refused`: the error of the call's rules (guest/calls/rules.h), or CUDA_SUCCESS.
  CUresult run(std::uint16_t call, api::Way way, api::Manner manner, CUresult refused) {
    const CUresult entered = manner.contextless ? enter_without_context(context_) : enter_by_name();
    if (entered != CUDA_SUCCESS) return entered;
    refused_ = refused;
    each([&]<std::size_t I>() { check<I>(); });
    if (refused_ != CUDA_SUCCESS || nothing_) return refused_;
    if (session()->graphs.captures.any() || std::ranges::any_of(objects_, is_event_of_capture)) way = api::Way::Waited;
    Channel& channel = this_channel();
    std::optional<DoneQuestion> question = done_question(manner.asks);
    if (question && question->answered() && !channel.has_deferred_error()) return CUDA_SUCCESS;
    if (!wait_for_order(manner.order, channel)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    each([&]<std::size_t I>() { begin<I>(); });
    CUresult result = exchange(channel, call, way);
    if constexpr (makes_memory()) {
      NewMemory fitting(*context_, new_range());
      while (result == CUDA_SUCCESS && !fitting.keep(made_, made_bytes(), result))
        result = exchange(channel, call, way);
    }
    if (question && result == CUDA_SUCCESS) question->succeeded();
    done_ = way == api::Way::Posted || unanswered_ ? use_.position != 0 : result == CUDA_SUCCESS;
    each([&]<std::size_t I>() { commit<I>(manner.asks); });
    if (unanswered_ && manner.order == api::Order::Null) remember(context_->null_stream, use_);
    return result;
  }

  // Returns the object that the call created. Null: the call creates no object, or the call failed.
  Object* created() const { return created_; }

 private:
  template <class F>
  static void each(F f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (f.template operator()<I>(), ...); }
    (indices);
  }
  template <std::size_t I>
  using Param = std::tuple_element_t<I, Params>;
  template <std::size_t I>
  static constexpr Handle kind = api::kind_of_param<Param<I>, args[I]>;
  template <std::size_t I>
  static constexpr bool is_context = args[I].dir == Dir::Value&& api::crosses_as_number(kind<I>);
  template <std::size_t I>
  static constexpr bool is_object = args[I].dir == Dir::Value&& kind<I> != Handle::None && !is_context<I>;

  // Enters the current context, or else the context of the first passed object that has one.
  CUresult enter_by_name() {
    return std::apply([&](const P&... p) { return enter(context_, {named(p)...}); }, params_);
  }
  Context& where() const { return green_ != nullptr ? *green_ : *context_; }  // the context that owns the new object
  template <class T>
  static const void* named(T p) {
    if constexpr (api::handle_of<T> != Handle::None && !api::crosses_as_number(api::handle_of<T>))
      return p;
    else
      return nullptr;
  }

  template <std::size_t I>
  void check() {
    constexpr Arg a = args[I];
    const auto p = std::get<I>(params_);
    if constexpr (is_context<I>) {
      Context* context = p == nullptr && a.may_be_null ? context_ : find_context(p);
      if constexpr (kind<I> == Handle::GreenContext) green_ = context;
      if (context == nullptr) return refuse(CUDA_ERROR_INVALID_CONTEXT);
      if (!context->lives()) return refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED);
      length_[I] = context->number;
    } else if constexpr (is_object<I>) {
      Object* object = nullptr;
      if constexpr (kind<I> == Handle::Stream) {
        stream_ = resolve_stream(p, *context_);
        object = stream_.object;
        if (a.closes && api::special_stream(to_slot(p))) object = nullptr;
      } else {
        object = session()->objects.find(reinterpret_cast<const void*>(to_slot(p)), kind<I>);
        if (a.closes && !a.removes && object != nullptr && object->owner != 0)
          object = nullptr;  // the object's owner destroys it
      }
      objects_[I] = object;
      if (object == nullptr) refuse(unknown<I>(p));
    } else if constexpr (a.dir == Dir::Frees) {
      length_[I] = p;
      if (p == 0) nothing_ = true;
    } else if constexpr (a.dir == Dir::Reserved) {
      length_[I] = p;
      if (!session()->memory.reserved.holds(p, element_count<I>())) refuse(CUDA_ERROR_INVALID_VALUE);
    } else if constexpr (a.dir == Dir::Inside) {
      length_[I] = to_slot(p);
      if (!session()->memory.knows(length_[I])) refuse(CUDA_ERROR_INVALID_VALUE);
    } else if constexpr (a.dir == Dir::Ids) {
      length_[I] = ids_length(p, element_count<I>());
      if (const CUresult r = check_ids(p, element_count<I>(), kind<I>); r != CUDA_SUCCESS) return refuse(r);
    } else if constexpr (a.dir == Dir::Device) {
      const DeviceArgument given = device_argument<a>(p, params_);
      if (given.nothing) return void(nothing_ = true);
      if (given.refused != CUDA_SUCCESS) return refuse(given.refused);
      length_[I] = given.at;
    } else if constexpr (a.ordinal) {
      if (p < 0 || static_cast<std::uint32_t>(p) >= device_count()) return refuse(CUDA_ERROR_INVALID_DEVICE);
      length_[I] = primary(static_cast<std::uint32_t>(p)).number;
    } else if constexpr (a.dir != Dir::Value) {
      if (p == nullptr && !a.may_be_null) return refuse(CUDA_ERROR_INVALID_VALUE);
      if constexpr (a.dir == Dir::Finds || a.dir == Dir::Knows || a.dir == Dir::Memory)
        length_[I] = sizeof(std::uint64_t);
      if constexpr (a.dir == Dir::In || a.dir == Dir::Out) length_[I] = byte_length<a>(p, params_);
      if ((a.extent == Extent::Valued || a.some) && length_[I] == 0) return refuse(CUDA_ERROR_INVALID_VALUE);
      if constexpr (a.dir == Dir::In && is_visited<I>)
        if (refused_ == CUDA_SUCCESS && length_[I] != ring::absent) refuse(check_structs(p, length_[I] / sizeof *p));
    }
  }

  // Sends a struct with members that need translation (ring/api/structs.h).
  template <std::size_t I>
  static constexpr bool is_visited = api::visited<api::Pointee<Param<I>>>;

  template <std::size_t I>
  CUresult unknown(Param<I> p) {
    if constexpr (kind<I> == Handle::Stream || kind<I> == Handle::Event) return no_such(p);
    return api::kind_of(kind<I>).unknown;
  }

  void refuse(CUresult why) {
    if (refused_ == CUDA_SUCCESS) refused_ = why;
  }

  template <std::size_t I>
  std::uint64_t element_count() const {
    return guest::element_count<args[I]>(params_);
  }

  bool wait_for_order(api::Order order, const Channel& channel) {
    if (follows_all(order, stream_.object != nullptr)) return wait_for_all(channel);
    if (order == api::Order::Null) return wait_for_stream(resolve_stream(nullptr, *context_), channel);
    if (stream_.object != nullptr && !wait_for_stream(stream_, channel)) return false;
    bool alive = true;
    each([&]<std::size_t I>() {
      if constexpr (is_object<I>) {
        if (objects_[I] != stream_.object) alive = alive && wait_for_object(*objects_[I], channel);
        // A launch of a graph does not name the events that the graph uses.
        if (kind<I> == Handle::GraphExec && session()->graphs.use_events.load(std::memory_order_relaxed))
          alive = alive && (ring::wrong(ring::Mutant::launch_overtakes) || wait_for_all(channel));
      }
    });
    return alive;
  }

  // Called before the record is sent. Makes the object that the call creates, and removes the memory that the call
  // frees.
  template <std::size_t I>
  void begin() {
    if constexpr (args[I].dir == Dir::Creates) {
      created_ = session()->objects.create(kind<I>, owning_context(kind<I>, where()));
      if (created_ == nullptr) refused_ = CUDA_ERROR_OUT_OF_MEMORY;
    } else if constexpr (args[I].dir == Dir::Frees) {
      freed_ = session()->memory.addresses.take(length_[I], Place::Kind::Device);
      if (!freed_) refused_ = no_allocation(length_[I]);
    }
  }

  CUresult exchange(Channel& channel, std::uint16_t call, api::Way way) {
    if (refused_ != CUDA_SUCCESS) return refused_;
    const auto write = [&](ring::Writer& w) {
      each([&]<std::size_t I>() { put_slot<I>(w); });
      each([&]<std::size_t I>() { put_payload<I>(w); });
    };
    const auto read = [&](CUresult result, ring::SharedReader& r) {
      if (result == CUDA_SUCCESS) each([&]<std::size_t I>() { take_output<I>(r); });
    };
    const Sent sent = send(channel, sending(call, way, *context_, payload_bytes(), Earlier::Returned), write, read);
    use_ = sent.use, unanswered_ = sent.unanswered;
    note_answer(sent.result);
    return sent.result;
  }

  std::size_t payload_bytes() const {
    std::size_t sum = sizeof...(P) * 8;
    each([&]<std::size_t I>() {
      if constexpr (args[I].dir == Dir::In || args[I].dir == Dir::Ids)
        if (length_[I] != ring::absent)
          sum += length_[I] > ring::max_record ? ring::max_record : ring::padded(length_[I]);
    });
    return sum;
  }

  template <std::size_t I>
  void put_slot(ring::Writer& w) const {
    constexpr Arg a = args[I];
    if constexpr (a.dir == Dir::Value && !a.ordinal && !is_context<I>)
      w.slot(to_slot(std::get<I>(params_)));
    else if constexpr (a.dir == Dir::Creates)
      w.slot(created_->id.load(std::memory_order_relaxed));
    else
      w.slot(length_[I]);
  }

  template <std::size_t I>
  void put_payload(ring::Writer& w) const {
    if constexpr (args[I].dir == Dir::In || args[I].dir == Dir::Ids) {
      const auto p = std::get<I>(params_);
      if (p == nullptr) return;
      if constexpr (is_visited<I>)
        put_structs(w, p, length_[I] / sizeof *p);
      else
        w.bytes(p, length_[I]);
    }
  }

  template <std::size_t I>
  void take_output(ring::SharedReader& r) {
    const auto p = std::get<I>(params_);
    if constexpr (args[I].dir == Dir::Finds) {
      found_ = session()->objects.adopt(r.slot(), kind<I>, owning_context(kind<I>, where()), device_named());
      if (found_ == nullptr) return r.fail();
      if (Object* const owner = owner_of(kind<I>); owner != nullptr && found_->owner == 0)
        session()->objects.give(*found_, *owner);
      *p = api::from_number<api::Pointee<Param<I>>>(found_->id.load(std::memory_order_relaxed));
    } else if constexpr (args[I].dir == Dir::Knows) {
      // The worker's table contains this object. If another thread has destroyed it in the guest's table, the program
      // gets the handle of a destroyed object.
      const std::uint64_t id = r.slot();
      const api::Id parts = api::Id::of(id);
      if (parts.kind != kind<I> || parts.index == 0) return r.fail();
      *p = api::from_number<api::Pointee<Param<I>>>(id);
    } else if constexpr (args[I].dir == Dir::Memory) {
      made_ = r.slot();
    } else if constexpr (args[I].dir == Dir::Out) {
      if (p == nullptr) return;
      r.copy(p, length_[I]);
      if constexpr (is_visited<I>) translate_back(p, length_[I] / sizeof *p);
    }
  }

  // Called after the call. Remembers the call as the objects' last use, gives the created object to the program, and
  // retires the destroyed object.
  template <std::size_t I>
  void commit(Asks asks) {
    if constexpr (args[I].dir == Dir::Creates) {
      if (created_ == nullptr) return;
      remember(*created_, use_);
      created_->device = device_named();
      if (done_)
        *std::get<I>(params_) = api::from_number<api::Pointee<Param<I>>>(created_->id.load(std::memory_order_relaxed));
      else
        session()->objects.retire(*std::exchange(created_, nullptr), {});
    } else if constexpr (args[I].dir == Dir::Memory) {
      if (!done_ || unanswered_) return;
      *std::get<I>(params_) = made_;
      remember_memory<I>();
    } else if constexpr (args[I].dir == Dir::Frees) {
      if (use_.position == 0 && freed_)
        session()->memory.addresses.add(*freed_);  // nothing was sent, so the memory stays allocated
    } else if constexpr (args[I].dir == Dir::Reserved) {
      if (done_) commit_range<I>();
    } else if constexpr (is_object<I>) {
      if (use_.position == 0) return;
      if constexpr (args[I].closes) {
        if (done_) close_object(*objects_[I], to_slot(std::get<I>(params_)), use_);
      } else if constexpr (kind<I> == Handle::Stream || kind<I> == Handle::Event || kind<I> == Handle::GraphExec) {
        // Remembers even a call that was answered, since the stream or event is no longer known to be done.
        if (asks == Asks::Nothing || unanswered_) remember(*objects_[I], use_);
      }
    }
    (void)asks;
  }

  // Returns the first passed object that may own the object that the driver returned.
  Object* owner_of(api::Handle found) const {
    Object* owner = nullptr;
    each([&]<std::size_t I>() {
      if constexpr (is_object<I>)
        if (owner == nullptr && api::may_own(kind<I>, found)) owner = objects_[I];
    });
    return owner;
  }

  // A memory object exists as long as it is mapped, even if the program has released it.
  template <std::size_t I>
  void commit_range() {
    Objects& objects = session()->objects;
    std::uint64_t mapped = 0;
    std::uint32_t device = 0;
    each([&]<std::size_t J>() {
      if constexpr (args[I].range == api::Range::Mapped && is_object<J>)
        if (const std::uint64_t id = to_slot(std::get<J>(params_)); objects.keep(*objects_[J], id))
          mapped = id, device = objects_[J]->device;
    });
    for (const std::uint64_t id :
         session()->memory.reserved.commit(args[I].range, length_[I], element_count<I>(), mapped, device))
      if (Object* object = objects.find(reinterpret_cast<const void*>(id), Handle::Allocation))
        objects.close(*object, id, use_);
  }

  static constexpr bool makes_memory() { return ((A.dir == Dir::Memory) || ...); }
  static constexpr std::size_t memory_at() {
    for (std::size_t i = 0; i < sizeof...(A); ++i)
      if (args[i].dir == Dir::Memory) return i;
    return 0;
  }
  static constexpr api::Range new_range() { return args[memory_at()].range; }
  std::uint64_t made_bytes() const { return element_count<memory_at()>(); }

  template <std::size_t I>
  void remember_memory() {
    if constexpr (args[I].range == api::Range::Made)
      session()->memory.reserved.add(made_, made_bytes());
    else if (made_ != 0)
      keep_allocation(made_, made_bytes(), pool_of_memory(), device_of_memory(), home_of_memory());
  }
  // Returns the owner of the new memory. For an allocation in a stream, that is the stream's context, even if another
  // context is current.
  Context& home_of_memory() const { return *(stream_.object != nullptr ? stream_.context : context_)->home; }
  std::uint32_t device_of_memory() const {
    std::uint32_t device = home_of_memory().device;
    each([&]<std::size_t I>() {
      if constexpr (kind<I> == Handle::MemPool) device = objects_[I]->device;
    });
    return device;
  }
  // Returns the device that the call names by ordinal or in a struct, else the device of the current context.
  std::uint32_t device_named() const {
    std::uint32_t device = context_->device;
    each([&]<std::size_t I>() {
      if constexpr (args[I].ordinal) device = static_cast<std::uint32_t>(std::get<I>(params_));
      if constexpr (args[I].dir == Dir::In && is_visited<I>)
        if (const auto p = std::get<I>(params_); p != nullptr) device = device_in(*p, device);
    });
    return device;
  }
  // Returns the pool that the call names, else the pool that the program has set for the device.
  std::uint64_t pool_of_memory() const {
    std::uint64_t pool = session()->memory.pools.of(home_of_memory().device);
    each([&]<std::size_t I>() {
      if constexpr (kind<I> == Handle::MemPool) pool = to_slot(std::get<I>(params_));
    });
    return pool;
  }

  std::optional<DoneQuestion> done_question(Asks asks) {
    using Question = std::optional<DoneQuestion>;
    if (asks == Asks::Nothing || session()->graphs.captures.any()) return std::nullopt;
    if constexpr (sizeof...(P) == 0) return Question(std::in_place, asks, context_->done);
    if (stream_.null_stream) return Question(std::in_place, asks, objects_[0]->done);
    return objects_[0] == nullptr ? std::nullopt : Question(std::in_place, asks, *objects_[0]);
  }

  const Params& params_;
  // Indexed by parameter: a length in bytes, an address, or the host's number of a device or context.
  std::uint64_t length_[sizeof...(P) + 1] = {};
  Object* objects_[sizeof...(P) + 1] = {};
  Object* created_ = nullptr;
  Object* found_ = nullptr;
  std::uint64_t made_ = 0;  // the address of new memory
  std::optional<Place> freed_;
  StreamRef stream_;
  Context *context_ = nullptr, *green_ = nullptr;  // green_: a green context that the call names
  Use use_;
  bool unanswered_ = false;  // the call was sent, but the guest gave up waiting for the reply
  bool nothing_ = false;     // a length of 0: there is nothing to do
  bool done_ = false;        // the guest knows that the call has succeeded, or expects that a posted call will succeed
  CUresult refused_ = CUDA_SUCCESS;
};

}  // namespace guest
