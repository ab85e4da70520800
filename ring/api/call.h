// One line of the table as a type. The compiler checks the line against cuda.h.
//
// api::Call<id> has the line's name, way and manner, and its Shape or its Record. A line that contradicts its
// declaration does not compile, and the compiler's message is one sentence. Everything in this file is a compile-time
// constant.
//
// ```cpp
// using Synchronize = api::Call<api::id_of::cuStreamSynchronize>;
// static_assert(Synchronize::name == "cuStreamSynchronize" && Synchronize::way == api::Way::Waited);
// static_assert(Synchronize::Shape::arity == 1);
// ```
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "ring/api/arg.h"
#include "ring/api/known_ids.h"
#include "ring/api/pass.h"
#include "ring/api/records.h"
#include "ring/api/structs.h"
#include "ring/api/texture_records.h"
#include "ring/api/types.h"

namespace api {

// The size of an element; void and char count as bytes.
template <class P>
using Pointee = std::conditional_t<std::is_void_v<std::remove_pointer_t<P>>, std::byte,
                                   std::remove_const_t<std::remove_pointer_t<P>>>;

// The kind of the handle that a parameter is or points to.
template <class P, Arg A>
inline constexpr Handle kind_of_param =
    A.kind != Handle::None                                                                     ? A.kind
    : A.dir == Dir::Creates || A.dir == Dir::Finds || A.dir == Dir::Knows || A.dir == Dir::Ids ? handle_of<Pointee<P>>
                                                                                               : handle_of<P>;
// Converts a parameter to a number: a handle (a pointer or an integer in cuda.h), a number, or the bits of a float.
template <class T>
std::uint64_t number_of(T handle) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<std::uint64_t>(handle);
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(handle);
  else
    return static_cast<std::uint64_t>(handle);
}
template <class T>
T from_number(std::uint64_t number) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<T>(number);
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(number));
  else
    return static_cast<T>(number);
}

// Returns the number of bytes from a Device argument's address to the end of the call's access; 0 if the call accesses
// none. Returns nothing if no memory has that shape, or if the rows overlap. `slot(n)` is argument n as a number.
template <Arg A, class Slot>
constexpr std::optional<std::uint64_t> device_bytes(Slot slot) {
  if constexpr (A.extent == Extent::Rows) {
    const std::uint64_t pitch = slot(A.pitch), rows = slot(A.rows);
    const auto row = product(slot(A.count), A.bytes);
    if (!row || (rows > 1 && (pitch < *row || pitch % A.bytes != 0))) return std::nullopt;
    return span_of_rows(*row, rows, pitch);
  } else if constexpr (A.extent == Extent::Counted) {
    return product(slot(A.count), A.bytes);
  } else {
    return A.bytes;
  }
}

template <class P, Arg A>
consteval void check_arg() {
  if constexpr (A.kind != Handle::None) {
    static_assert(std::is_same_v<std::conditional_t<A.dir == Dir::Value, P, Pointee<P>>, unsigned long long>,
                  "a line names a kind only where cuda.h has an unsigned long long");
  } else if constexpr (A.dir == Dir::Value) {
    static_assert(crosses<P>, "a pointer parameter needs a word: in, out, in(n), out(n), creates");
    static_assert(!std::is_same_v<P, unsigned long long> || A.is_number,
                  "an unsigned long long may be an address, an object or a handle: say device(n), or number");
    static_assert(!std::is_floating_point_v<P> || std::is_same_v<P, float>, "of floating numbers, only float crosses");
    static_assert(!A.closes || handle_of<P> != Handle::None, "only a handle can be closed");
    static_assert(!A.ordinal || std::is_same_v<P, CUdevice>, "ordinal is for devices");
  } else if constexpr (A.dir == Dir::Device) {
    static_assert(std::is_same_v<P, CUdeviceptr>, "device is for device addresses");
    static_assert(A.extent == Extent::Counted || A.extent == Extent::Rows || A.bytes > 1 || A.may_be_null,
                  "device needs its length: device(n), filled_rows(...), or word(bytes)");
  } else if constexpr (A.dir == Dir::Frees || A.dir == Dir::Reserved) {
    static_assert(std::is_same_v<P, CUdeviceptr>, "frees and reserved are for device addresses");
    static_assert(A.dir == Dir::Frees || A.extent == Extent::Counted, "reserved needs its length: reserved(n)");
  } else if constexpr (A.dir == Dir::Memory) {
    static_assert(std::is_same_v<P, CUdeviceptr*> && A.extent == Extent::Counted,
                  "memory and reserves are for a pointer to a device address, and need the length: memory(n)");
  } else if constexpr (A.dir == Dir::Ids) {
    static_assert(std::is_pointer_v<P> && handle_of<Pointee<P>> != Handle::None && A.extent == Extent::Counted,
                  "ids is for an array of handles, and needs their number: ids(n)");
  } else if constexpr (A.dir == Dir::Inside) {
    static_assert(std::is_same_v<P, CUdeviceptr> || std::is_same_v<P, void*>, "inside is for an address");
  } else if constexpr (A.dir == Dir::Creates || A.dir == Dir::Finds || A.dir == Dir::Knows) {
    static_assert(std::is_pointer_v<P> && handle_of<Pointee<P>> != Handle::None,
                  "creates, finds and knows are for a pointer to a handle");
    static_assert(A.dir != Dir::Finds || kind_of(handle_of<Pointee<P>>).given != once,
                  "a handle that is found may have been given before");
  } else {
    static_assert(std::is_pointer_v<P>, "in and out are for pointers");
    static_assert(A.dir == Dir::In || !std::is_const_v<std::remove_pointer_t<P>>, "out needs a pointer to non-const");
    static_assert(std::is_same_v<Pointee<P>, std::byte> || plain<Pointee<P>>,
                  "this struct is not known to be plain bytes: see ring/api/structs.h, or make the call GUEST");
    static_assert(!std::is_void_v<std::remove_pointer_t<P>> || A.extent != Extent::One, "void needs a length");
    static_assert(A.dir != Dir::In || !A.may_be_null || A.extent == Extent::Counted,
                  "maybe_in is NULL where there are none, so it needs their number: maybe_in(n)");
  }
}

// The facts about a call that marshalling needs. Calls with equal facts share one instantiation of the marshalling
// code.
template <class F, Arg... A>
struct Shape;

// True if arguments of this type determine the length of a value.
template <class T>
inline constexpr bool carries_length = requires(T t) {
  value_bytes(t);
};

template <class... P, Arg... A>
struct Shape<CUresult(P...), A...> {
  static_assert(sizeof...(P) == sizeof...(A), "one word per parameter of the declaration in cuda.h");
  using Params = std::tuple<P...>;
  using Pointer = CUresult (*)(P...);
  static constexpr std::array<Arg, sizeof...(A)> args{A...};
  static constexpr std::size_t arity = sizeof...(P);

  static consteval bool check() {
    (check_arg<P, A>(), ...);
    constexpr bool integral[] = {std::is_integral_v<P>..., false};
    constexpr bool enums[] = {carries_length<P>..., false};
    for (const Arg& a : args) {
      const bool names = a.count >= 0 && a.count < int{arity};
      if ((a.extent == Extent::Counted || a.extent == Extent::Rows) && (!names || !integral[a.count])) return false;
      if (a.extent == Extent::Rows && (!integral[a.pitch] || !integral[a.rows])) return false;
      if (a.extent == Extent::Valued && (!names || !enums[a.count])) return false;
    }
    return true;
  }
  static_assert(check(), "a length must name an integer parameter of the same call, or an enum with value_bytes()");
};

// The parameters of a declaration in cuda.h.
template <class F>
struct ParametersOf;
template <class... P>
struct ParametersOf<CUresult(P...)> {
  static constexpr std::size_t count = sizeof...(P);
  template <std::size_t I>
  using Type = std::tuple_element_t<I, std::tuple<P...>>;
};

template <int Id>
struct Call;  // each line that crosses specialises this template

namespace id_of {
#define CALL(id, fn, ...) inline constexpr int fn = id;
#define CUSTOM(id, fn, ...) inline constexpr int fn = id;
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, name, ...) inline constexpr int name = id;
#include "ring/api/session.def"
}  // namespace id_of

#define CALL(id, fn, since, way_, manner_, ...)                       \
  template <>                                                         \
  struct Call<id> {                                                   \
    static constexpr std::string_view name = #fn;                     \
    static constexpr Way way = Way::way_;                             \
    static constexpr Manner manner = manner_;                         \
    static_assert(sound(manner), "a call that asks submits nothing"); \
    using Function = decltype(::fn);                                  \
    using Shape = api::Shape<Function __VA_OPT__(, ) __VA_ARGS__>;    \
  };
#define CUSTOM(id, fn, since, way_, manner_, record)                  \
  template <>                                                         \
  struct Call<id> {                                                   \
    static constexpr std::string_view name = #fn;                     \
    static constexpr Way way = Way::way_;                             \
    static constexpr Manner manner = manner_;                         \
    static_assert(sound(manner), "a call that asks submits nothing"); \
    using Function = decltype(::fn);                                  \
    using Record = record;                                            \
  };
#define GUEST(id, fn, since, way_, manner_, record, ...)                                      \
  template <>                                                                                 \
  struct Call<id> {                                                                           \
    static constexpr std::string_view name = #fn;                                             \
    static constexpr Way way = Way::way_;                                                     \
    static constexpr Manner manner = manner_;                                                 \
    static_assert(sound(manner), "a call that asks submits nothing");                         \
    using Function = decltype(::fn);                                                          \
    using Record = record;                                                                    \
    static constexpr auto arguments = [] {                                                    \
      using namespace pass;                                                                   \
      using R [[maybe_unused]] = record;                                                      \
      using Reply [[maybe_unused]] = typename ReplyOf<record>::Type;                          \
      return std::tuple{__VA_ARGS__};                                                         \
    }();                                                                                      \
    static_assert(ParametersOf<Function>::count == std::tuple_size_v<decltype(arguments)>,    \
                  "one argument of a GUEST line per parameter of the declaration in cuda.h"); \
  };
#define LOCAL(...)
#define VARIANT(...)
#define ABSENT(...)
#include "ring/api/driver.def"
#define SESSION(id, fn, way_, record)             \
  template <>                                     \
  struct Call<id> {                               \
    static constexpr std::string_view name = #fn; \
    static constexpr Way way = Way::way_;         \
    using Record = record;                        \
  };
#include "ring/api/session.def"

}  // namespace api
