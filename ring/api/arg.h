// How one argument of a driver call crosses to the worker.
//
// An argument's description is data: a direction and an extent. Guest (guest/marshal/marshal.h) and host
// (host/untrusted/marshal/unmarshal.h) read the same data, so they cannot disagree about a line of the table.
//
// ```cpp
// // The argument descriptions of cuMemcpyHtoD(device, source, bytes). Argument 2 is the length of both memories.
// inline constexpr api::Arg words[] = {api::device(2), api::in(2), api::_};
// static_assert(words[1].dir == api::Dir::In && words[1].count == 2);
// ```
#pragma once

#include <cstdint>

namespace api {

enum class Handle : std::uint8_t;  // defined in ring/api/types.h

enum class Dir : std::uint8_t {
  Value,     // passed by value: a number, an enum or a handle
  In,        // the guest's memory, which the call reads
  Out,       // the guest's memory, which the call writes
  Creates,   // pointer to a handle that the call makes; the guest has chosen the handle's id, so the call can be posted
  Finds,     // pointer to a handle that the driver has or finds; the worker chooses the handle's id
  Knows,     // pointer to a handle that the call returns; the handle belongs to an object of the session
  Device,    // a device address by value; the host checks that the session owns this address and the bytes after it
  Frees,     // the start of an allocation, which the call frees; 0: nothing to free
  Reserved,  // an address by value; the address and the bytes after it lie in one reservation of the session
  Inside,    // an address by value, which lies in memory or in a reservation of the session
  Ids,       // handles in the guest's memory, counted by another argument; or NULL
  Memory,    // pointer to a device address, which the driver chooses for new memory or a new reservation
};

enum class Extent : std::uint8_t {
  One,      // one object of the pointee type
  Counted,  // another argument is the number of elements (bytes, for void and char)
  Row,      // `count` objects
  String,   // a string with its NUL
  Valued,   // another argument is an enum that determines the length (ring/api/structs.h)
  Rows,     // rows of memory: other arguments are the pitch in bytes, the elements of a row, and the number of rows
};

// The state of a reserved range after the call's success.
enum class Range : std::uint8_t {
  Stays,
  Mapped,    // the range has memory, as one mapped section
  Unmapped,  // no section of the range has memory any more
  Freed,     // the reservation has ended
  Made,      // the range is a new reservation
};

struct Arg {
  Dir dir = Dir::Value;
  Extent extent = Extent::One;
  std::int8_t count = -1;             // Counted, Valued, Rows: an argument's index; Row: the number itself
  std::int8_t pitch = -1, rows = -1;  // Rows: the arguments' indices
  std::uint8_t bytes = 1;             // Device: the size of an element, or of the only element
  Handle kind{};                      // the kind of a handle that has an integer type in cuda.h; else None
  Range range = Range::Stays;
  bool closes = false;  // the handle passed here is dead once the call succeeds
  // Out, and In with a count of 0: the call allows NULL. Device: 0 means no memory. A context: NULL means the current
  // context.
  bool may_be_null = false;
  bool removes = false;    // the call closes the object, which may have an owner; the owner stays alive
  bool optional = false;   // In: NULL means that the program specifies nothing
  bool some = false;       // Counted: there must be at least one element; drivers do not check for none
  bool ordinal = false;    // a device: the program's ordinal in the guest, the host's ordinal on the wire
  bool is_number = false;  // a number whose type can also be an address, an object or a handle
  // Device: in a captured stream the driver accepts any address until it instantiates the graph
  bool judged_later = false;

  consteval Arg operator()(int count_arg, int element_bytes = 1) const {
    Arg a = *this;
    a.extent = Extent::Counted;
    a.count = static_cast<std::int8_t>(count_arg);
    a.bytes = static_cast<std::uint8_t>(element_bytes);
    return a;
  }
  consteval Arg operator()(Extent e) const {
    Arg a = *this;
    a.extent = e;
    return a;
  }
  consteval Arg operator()(Handle integer) const {
    Arg a = *this;
    a.kind = integer;
    return a;
  }
};

// The descriptions that the table uses. A by-value argument needs none (`_`), except an unsigned long long, which
// cuda.h also uses for device addresses, texture objects and handles. A pointer always needs a description.
inline constexpr Arg _{};
inline constexpr Arg in{.dir = Dir::In};
inline constexpr Arg maybe_in{.dir = Dir::In, .may_be_null = true};
inline constexpr Arg in_some{.dir = Dir::In, .some = true};
inline constexpr Arg out{.dir = Dir::Out};
inline constexpr Arg maybe_out{.dir = Dir::Out, .may_be_null = true};
inline constexpr Arg creates{.dir = Dir::Creates};
inline constexpr Arg finds{.dir = Dir::Finds};
inline constexpr Arg knows{.dir = Dir::Knows};
inline constexpr Arg closes{.closes = true};
inline constexpr Arg removes{.closes = true, .removes = true};
inline constexpr Arg ids{.dir = Dir::Ids};
inline constexpr Arg optional_in{.dir = Dir::In, .may_be_null = true, .optional = true};
// handle(kind), creates(kind), finds(kind), closes(kind): for handles that are integers in cuda.h
inline constexpr Arg handle{};
// device(n): argument n is the length in bytes; device(n, 4): in words
inline constexpr Arg device{.dir = Dir::Device};
// Memory to fill. In a capture, the driver accepts a fill of any address, and refuses a bad address when it
// instantiates the graph.
inline constexpr Arg filled{.dir = Dir::Device, .judged_later = true};
consteval Arg filled_rows(int pitch, int width, int rows, int element_bytes) {
  Arg a = filled(width, element_bytes);
  a.extent = Extent::Rows;
  a.pitch = static_cast<std::int8_t>(pitch);
  a.rows = static_cast<std::int8_t>(rows);
  return a;
}
// Memory that only kernels read, or 0. The host checks that the session owns the first byte; the driver checks the
// length.
inline constexpr Arg bound{.dir = Dir::Device, .may_be_null = true};
inline constexpr Arg ordinal{.ordinal = true};
inline constexpr Arg or_current{.may_be_null = true};
inline constexpr Arg number{.is_number = true};
inline constexpr Arg frees{.dir = Dir::Frees};
inline constexpr Arg inside{.dir = Dir::Inside};
// Argument n is the length in bytes.
inline constexpr Arg reserved{.dir = Dir::Reserved};
inline constexpr Arg maps{.dir = Dir::Reserved, .range = Range::Mapped};
inline constexpr Arg unmaps{.dir = Dir::Reserved, .range = Range::Unmapped};
inline constexpr Arg reserves{.dir = Dir::Memory, .range = Range::Made};
inline constexpr Arg memory{.dir = Dir::Memory};
inline constexpr Arg unreserves{.dir = Dir::Reserved, .range = Range::Freed};
// The enum in argument n determines the length.
consteval Arg in_value(int n) {
  return {.dir = Dir::In, .extent = Extent::Valued, .count = static_cast<std::int8_t>(n)};
}
consteval Arg out_value(int n) {
  return {.dir = Dir::Out, .extent = Extent::Valued, .count = static_cast<std::int8_t>(n)};
}
// in_row(n): n objects; word(bytes): one word.
consteval Arg in_row(int n) { return {.dir = Dir::In, .extent = Extent::Row, .count = static_cast<std::int8_t>(n)}; }
consteval Arg out_row(int n) { return {.dir = Dir::Out, .extent = Extent::Row, .count = static_cast<std::int8_t>(n)}; }
consteval Arg word(int bytes) { return {.dir = Dir::Device, .bytes = static_cast<std::uint8_t>(bytes)}; }
inline constexpr Extent string = Extent::String;

enum class Way : std::uint8_t { Local, Posted, Waited };
using enum Way;

// The posted calls of other threads that a call must not overtake.
enum class Order : std::uint8_t {
  Own,   // the last use of each handle that the call names, and the NULL stream's rules if it names a stream
  Null,  // the call runs on the NULL stream
  All,   // the posted calls of every channel
};

// Whether a call is a query or a wait. Both concern completed work and change nothing.
enum class Asks : std::uint8_t { Nothing, Query, Wait };

// When the driver refuses a call because a stream is being captured (docs/design/021-prohibited-in-capture.md).
enum class InCapture : std::uint8_t {
  Allowed,       // refused depending at most on the stream or event that the call names
  Unsafe,        // CUDA's "potentially unsafe" calls: the capture mode decides
  WholeContext,  // always refused, since the call concerns all streams of the context
};

// The order and the traits of a call, for example "own | contextless".
struct Manner {
  Order order = Order::Own;
  bool contextless = false;  // needs no context, and works after a fault
  Asks asks = Asks::Nothing;
  bool submits = false;   // puts a command into a stream, so that the GPU gets work
  bool compiles = false;  // the driver may run a compiler during the call, which takes long
  InCapture in_capture = InCapture::Allowed;

  bool operator==(const Manner&) const = default;
};

enum class Trait : std::uint8_t { contextless, queries, awaits, submits, compiles, unsafe, whole_context };
using enum Trait;
consteval Manner operator|(Manner manner, Trait trait) {
  switch (trait) {
    case contextless: manner.contextless = true; break;
    case queries: manner.asks = Asks::Query; break;
    case awaits: manner.asks = Asks::Wait; break;
    case submits: manner.submits = true; break;
    case compiles: manner.compiles = true; break;
    case unsafe: manner.in_capture = InCapture::Unsafe; break;
    case whole_context: manner.in_capture = InCapture::WholeContext; break;
  }
  return manner;
}
// Returns whether the traits are consistent. A query or a wait changes nothing, so it may neither submit nor compile.
consteval bool sound(Manner m) { return m.asks == Asks::Nothing || (!m.submits && !m.compiles); }
inline constexpr Manner own{.order = Order::Own};
inline constexpr Manner null{.order = Order::Null};
inline constexpr Manner all{.order = Order::All};

}  // namespace api
